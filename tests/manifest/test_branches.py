"""Branches: whole graphs that cost nothing until they are written to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.manifest.support import (
    LostLock,
    create_branch,
    delete_branch,
    files,
    interrupted,
    move,
    new_graph,
    publish,
    reopened,
    schema,
)

from omnigraph.errors import (
    BranchExists,
    BranchInUse,
    BranchNotFound,
    BranchProtected,
    LockLost,
    ObjectDamaged,
    OmniError,
)
from omnigraph.manifest.publisher import BranchName, Change, CommitDraft
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import TablePin
from omnigraph.storage import layout
from omnigraph.storage.tables import TableRef

PERSON, CITY = "node:Person", "node:City"


@pytest.fixture
def graph(tmp_path: Path) -> Repository:
    return new_graph(tmp_path)


def names(graph: Repository) -> list[str]:
    return [branch.name for branch in reopened(graph, read_only=True).branches.all()]


class TestCreate:
    def test_a_branch_begins_as_its_parent_is(self, graph: Repository) -> None:
        state = publish(graph, PERSON)
        branch = create_branch(graph, "dev")
        fresh = reopened(graph)
        assert fresh.branches.find("dev") == branch
        assert fresh.manifest.latest(branch.native) == state
        assert (branch.parent, branch.fork_version) == ("main", state.version)
        assert state.head is not None
        assert branch.fork_commit == state.head.graph_commit_id

    def test_it_then_goes_its_own_way(self, graph: Repository) -> None:
        branch = create_branch(graph, "dev")
        on_branch = publish(graph, PERSON, branch=branch.ref)
        on_main = publish(graph, CITY)
        fresh = reopened(graph)
        assert fresh.manifest.latest(branch.native) == on_branch
        assert fresh.manifest.latest(None) == on_main
        assert on_branch.head is not None
        assert (on_branch.head.branch, on_branch.head.parents) == ("dev", (branch.fork_commit,))

    def test_a_branch_can_have_branches(self, graph: Repository) -> None:
        child = create_branch(graph, "dev")
        state = publish(graph, PERSON, branch=child.ref)
        grandchild = create_branch(graph, "dev2", from_="dev")
        great_grandchild = create_branch(graph, "x/y", from_="dev2")
        publish(graph, CITY, branch=great_grandchild.ref)
        fresh = reopened(graph)
        assert fresh.manifest.latest(grandchild.native) == state
        assert fresh.manifest.latest(great_grandchild.native).tables[PERSON] == state.tables[PERSON]
        assert [(b.name, b.parent) for b in fresh.branches.all()] == [
            ("main", None),
            ("dev", "main"),
            ("dev2", "dev"),
            ("x/y", "dev2"),
        ]

    def test_a_name_is_taken_once(self, graph: Repository) -> None:
        create_branch(graph, "dev")
        before = files(graph.address.root)
        with pytest.raises(BranchExists, match="dev"):
            create_branch(graph, " dev")
        assert files(graph.address.root) == before

    def test_an_unknown_parent_is_named_with_the_nearest_that_exists(self, graph: Repository) -> None:
        create_branch(graph, "review/1")
        with pytest.raises(BranchNotFound) as caught:
            create_branch(graph, "dev", from_="review/l")
        assert (caught.value.name, caught.value.suggestion) == ("review/l", "review/1")

    def test_whoever_lost_the_lock_creates_nothing(self, graph: Repository) -> None:
        with pytest.raises(LockLost):
            graph.branches.create("dev", "main", LostLock())
        assert names(graph) == ["main"]

    def test_the_cost_does_not_depend_on_the_number_of_tables(self, tmp_path: Path) -> None:
        written = {}
        for types in (2, 60):
            root = tmp_path / str(types)
            graph = new_graph(root, schema(types))
            before = files(root)
            create_branch(graph, "dev")
            written[types] = {name for name in files(root) if name not in before}
        assert len(written[2]) == len(written[60]) < 10
        assert not any(name.startswith((layout.NODES, layout.EDGES)) for name in written[60])


class TestLazyForks:
    def test_the_tables_of_a_fresh_branch_are_its_parents(self, graph: Repository) -> None:
        branch = create_branch(graph, "dev")
        pins = graph.manifest.latest(branch.native).tables.values()
        assert {pin.table_branch for pin in pins} == {None}
        assert graph.tables.native_branches(layout.table_location(PERSON)) == []

    def test_the_first_write_forks_one_table(self, graph: Repository) -> None:
        branch = create_branch(graph, "dev")
        pin = write(graph, branch, PERSON)
        state = reopened(graph).manifest.latest(branch.native)
        assert state.tables[PERSON] == pin
        assert pin.table_branch == branch.native
        assert state.tables[CITY].table_branch is None
        assert graph.manifest.latest(None).tables[PERSON].table_branch is None

    def test_a_branch_of_it_shares_the_fork_until_it_writes(self, graph: Repository) -> None:
        child = create_branch(graph, "dev")
        pin = write(graph, child, PERSON)
        grandchild = create_branch(graph, "dev2", from_="dev")
        assert graph.manifest.latest(grandchild.native).tables[PERSON] == pin
        assert write(graph, grandchild, PERSON).table_branch == grandchild.native

    def test_deleting_the_branch_removes_its_forks(self, graph: Repository) -> None:
        branch = create_branch(graph, "dev")
        pin = write(graph, branch, PERSON)
        delete_branch(graph, "dev")
        assert graph.tables.native_branches(pin.location) == []
        assert graph.tables.native_branches(layout.MANIFEST) == []
        left = [name for name in files(graph.address.root) if "dev" in name]
        assert left == []


def write(graph: Repository, branch: Branch, table_key: str) -> TablePin:
    """Fork a table for a branch and publish where it is now, as the first write to it does."""
    assert branch.native is not None
    pin = graph.manifest.latest(branch.native).tables[table_key]
    forked = graph.tables.fork(TableRef(pin.location, pin.table_branch, pin.table_version), branch.native)
    moved = replace(pin, table_branch=forked.branch, table_version=forked.version)
    expected = {table_key: pin.table_version}
    graph.manifest.publish(branch.ref, Change({table_key: moved}), expected, CommitDraft("load"))
    return moved


class TestDelete:
    def test_a_deleted_branch_is_gone(self, graph: Repository) -> None:
        create_branch(graph, "dev")
        assert delete_branch(graph, "dev").name == "dev"
        assert names(graph) == ["main"]
        with pytest.raises(BranchNotFound):
            delete_branch(graph, "dev")

    def test_a_branch_with_descendants_stays(self, graph: Repository) -> None:
        for name, parent in [("dev", "main"), ("dev2", "dev"), ("dev3", "dev"), ("other", "main")]:
            create_branch(graph, name, from_=parent)
        before = files(graph.address.root)
        with pytest.raises(BranchInUse) as caught:
            delete_branch(graph, "dev")
        assert (caught.value.name, caught.value.descendants) == ("dev", ("dev2", "dev3"))
        assert files(graph.address.root) == before
        for name in ("dev3", "dev2", "dev"):
            delete_branch(graph, name)
        assert names(graph) == ["main", "other"]

    def test_the_main_branch_stays(self, graph: Repository) -> None:
        with pytest.raises(BranchProtected, match="cannot be deleted"):
            delete_branch(graph, " main ")

    def test_whoever_lost_the_lock_deletes_nothing(self, graph: Repository) -> None:
        create_branch(graph, "dev")
        with pytest.raises(LockLost):
            graph.branches.delete("dev", LostLock())
        assert names(graph) == ["main", "dev"]

    def test_its_commits_stay_in_the_archive_for_the_histories_they_were_merged_into(
        self, graph: Repository
    ) -> None:
        branch = create_branch(graph, "dev")
        commits = [publish(graph, PERSON, branch=branch.ref).head for _ in range(3)]
        delete_branch(graph, "dev")
        archived = reopened(graph).manifest.archive.read()
        assert list(archived.values()) == commits

    def test_a_store_that_cannot_remove_the_files_still_has_no_branch(self, graph: Repository) -> None:
        """A native branch that others of Lance's descend from is refused by Lance; what is left is unreachable."""
        branch = create_branch(graph, "dev")
        assert branch.native is not None
        graph.tables.fork(TableRef(layout.MANIFEST, branch.native, branch.fork_version or 0), "leftover.01")
        delete_branch(graph, "dev")
        assert names(graph) == ["main"]
        create_branch(graph, "dev")
        assert names(graph) == ["main", "dev"]


class TestIncarnations:
    """A branch that was deleted and created again is another branch."""

    def test_they_share_a_name_only(self, graph: Repository) -> None:
        old = create_branch(graph, "dev")
        publish(graph, PERSON, branch=old.ref)
        delete_branch(graph, "dev")
        new = create_branch(graph, "dev")
        assert (new.name, new.parent) == (old.name, old.parent)
        assert new.incarnation != old.incarnation
        assert new.native != old.native
        assert reopened(graph).manifest.latest(new.native) == graph.manifest.latest(None)

    @pytest.mark.parametrize("again", [True, False])
    def test_a_stale_handle_reads_nothing_and_publishes_nothing(self, graph: Repository, again: bool) -> None:
        """Also in a process that knew the branch well before another one deleted it."""
        old = create_branch(graph, "dev")
        stale, other = reopened(graph), reopened(graph)
        change = move(stale.manifest.latest(old.native), PERSON)
        delete_branch(other, "dev")
        state = other.manifest.latest(create_branch(other, "dev").native) if again else None
        with pytest.raises(BranchNotFound, match="dev"):
            stale.manifest.latest(old.native)
        with pytest.raises(BranchNotFound, match="dev"):
            stale.manifest.publish(old.ref, *change, CommitDraft("load"))
        assert names(graph) == (["main", "dev"] if again else ["main"])
        if state is not None:
            assert other.manifest.latest(other.branches.find("dev").native) == state

    def test_a_stale_handle_publishes_nothing_even_if_the_old_files_are_still_there(
        self, graph: Repository
    ) -> None:
        old = create_branch(graph, "dev")
        change = move(graph.manifest.latest(old.native), PERSON)
        with interrupted("branch_delete.after_ref", power_cut), pytest.raises(KeyboardInterrupt):
            delete_branch(graph, "dev")
        with pytest.raises(BranchNotFound):
            graph.manifest.publish(old.ref, *change, CommitDraft("load"))
        new = create_branch(graph, "dev")
        assert graph.manifest.publish(new.ref, *change, CommitDraft("load")).version == 2

    def test_a_name_that_never_was_takes_no_commits(self, graph: Repository) -> None:
        change = move(graph.manifest.latest(None), PERSON)
        with pytest.raises(OmniError):
            graph.manifest.publish(BranchName("ghost", "ghost.01"), *change, CommitDraft("load"))
        assert names(graph) == ["main"]


def power_cut() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b'{"native": 1}', b"\xff"])
def test_a_ref_that_cannot_be_read_is_named(graph: Repository, content: bytes) -> None:
    create_branch(graph, "dev")
    graph.objects.put(layout.branch_ref("dev"), content)
    with pytest.raises(ObjectDamaged, match=r"_refs/branches/dev\.json"):
        graph.branches.find("dev")


def test_a_branch_as_json_has_what_its_users_need(graph: Repository) -> None:
    branch = create_branch(graph, "dev")
    shown = json.loads(json.dumps(branch.as_json()))
    assert shown.keys() == {
        "name",
        "parent",
        "fork_manifest_version",
        "fork_commit_id",
        "created_at",
        "creator",
        "incarnation",
    }
    assert shown["created_at"].endswith("Z")
