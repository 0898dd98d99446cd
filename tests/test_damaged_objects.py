"""Damaged control objects: reading gives what was written, or an error that names the object; never anything else.

And one bad branch is in nobody's way but its own.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from tests.cli.command import omnigraph as command
from tests.copies import Copies
from tests.sampling import quick_and_long

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import BranchExists, BranchInUse, BranchNotFound, ObjectDamaged, SnapshotNotFound
from omnigraph.manifest.drafts import BranchName

SCHEMA = "node P { k: String @key }"
ADD = "query add($k: String) { insert P { k: $k } }"
ALL = "query every() { match { $p: P } return { $p.k } order { $p.k } }"
RUBBISH = {
    "empty": b"",
    "a list": b"[]",
    "null": b"null",
    "no text": b"\xff\xfe",
    "brackets": b"[" * 200_000,
    "another object": b"{}",
    "a number": b'{"native": 5}',
}


def make(place: Path) -> None:
    graph = omnigraph.init(place, SCHEMA)
    graph.mutate(ADD, {"k": "main"})
    for branch in ("dev", "other"):
        graph.create_branch(branch)
        graph.mutate(ADD, {"k": branch}, branch=branch)


@pytest.fixture
def graph(copies: Copies, tmp_path: Path) -> Graph:
    """A graph with a row on main, and one more on each of the branches dev and other."""
    return copies.graph(make, tmp_path / "g")


def rows(graph: Graph, branch: str) -> list[str]:
    return [row["p.k"] for row in graph.query(ALL, branch=branch).rows]


def what_is_read(place: Path) -> object:
    """Everything that control objects decide, as a new process reads it."""
    graph = omnigraph.open(place, read_only=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        listed = [branch.as_json() for branch in graph.branches()]
    if problems := graph.damaged_branches():
        raise problems[0]
    states = [graph.snapshot(name).as_json() for name in ("main", "dev")]
    return graph.schema, sorted(graph.catalog.nodes), listed, states


def outcome(place: Path) -> object:
    """What is read, or which object is said to be damaged."""
    try:
        return what_is_read(place)
    except ObjectDamaged as error:
        return error.key


def control_objects(place: Path) -> list[str]:
    listed = [path.relative_to(place) for path in place.rglob("*") if path.is_file()]
    return sorted(str(path) for path in listed if path.parts[0].startswith(("_schema", "__schema", "_refs")))


def test_the_objects_that_are_tried(graph: Graph) -> None:
    found = control_objects(Path(graph.address))
    assert found[:3] == ["__schema_state.json", "_refs/branches/dev.json", "_refs/branches/other.json"]
    assert [name for name in found if name.startswith("_schema")] == ["_schema.ir.json", "_schema.pg"]
    assert len([name for name in found if name.startswith("_refs/heads/")]) == 3


@pytest.mark.parametrize("step", quick_and_long(7, 1))
@pytest.mark.parametrize("name", ["_schema.pg", "_schema.ir.json", "__schema_state.json", "_refs"])
def test_a_changed_byte_gives_the_truth_or_names_the_object(graph: Graph, name: str, step: int) -> None:
    place = Path(graph.address)
    truth = what_is_read(place)
    for key in control_objects(place):
        if key.startswith(name) and "other" not in key:
            whole = (place / key).read_bytes()
            for at in range(0, len(whole), step):
                changed = bytearray(whole)
                changed[at] ^= 1 << at % 8
                (place / key).write_bytes(changed)
                assert outcome(place) in (truth, key), f"byte {at} of {key}"
            (place / key).write_bytes(whole)


@pytest.mark.parametrize("content", RUBBISH.values(), ids=RUBBISH)
@pytest.mark.parametrize("key", ["_schema.pg", "_schema.ir.json", "__schema_state.json", "_refs/heads/main.json"])
def test_rubbish_gives_the_truth_or_names_the_object(graph: Graph, key: str, content: bytes) -> None:
    place = Path(graph.address)
    truth = what_is_read(place)
    (place / key).write_bytes(content)
    assert outcome(place) in (truth, key)


class TestABadBranch:
    @pytest.fixture(params=RUBBISH.values(), ids=list(RUBBISH))
    def bad(self, graph: Graph, request: pytest.FixtureRequest) -> Graph:
        """A graph whose branch dev has a damaged ref, as a new process finds it."""
        (Path(graph.address) / "_refs/branches/dev.json").write_bytes(request.param)
        return omnigraph.open(graph.address)

    def test_is_named_and_the_others_are_listed(self, bad: Graph) -> None:
        with pytest.warns(RuntimeWarning, match=r"_refs/branches/dev\.json is damaged: .*branch delete dev"):
            assert [branch.name for branch in bad.branches()] == ["main", "other"]
        (problem,) = bad.damaged_branches()
        assert problem.key == "_refs/branches/dev.json"

    def test_cannot_be_used_and_the_others_can(self, bad: Graph) -> None:
        for use in (lambda: bad.branch("dev"), lambda: rows(bad, "dev"), lambda: bad.create_branch("dev")):
            with pytest.raises(ObjectDamaged, match="omnigraph branch delete dev"):
                use()
        for branch in ("main", "other"):
            bad.mutate(ADD, {"k": "new"}, branch=branch)
            assert "new" in rows(bad, branch)
            assert len(bad.commits(branch)) >= 2
        bad.create_branch("another", "other")

    def test_can_be_deleted_and_made_again(self, bad: Graph) -> None:
        assert bad.delete_branch("dev").name == "dev"
        assert bad.damaged_branches() == []
        with pytest.raises(BranchNotFound):
            bad.branch("dev")
        bad.create_branch("dev")
        assert rows(bad, "dev") == ["main"]


class TestHistory:
    def test_a_commit_that_may_be_a_damaged_branch_s_is_not_said_to_be_nowhere(self, graph: Graph) -> None:
        mine, others = graph.commits("dev")[0].graph_commit_id, graph.commits("other")[0].graph_commit_id
        ref = Path(graph.address) / "_refs/branches/dev.json"
        whole = ref.read_bytes()
        ref.write_bytes(b"")
        again = omnigraph.open(graph.address)
        assert again.commit(others).branch == "other"
        with pytest.raises(ObjectDamaged):
            again.commit(mine)
        ref.write_bytes(whole)
        assert again.commit(mine).branch == "dev"
        with pytest.raises(SnapshotNotFound):
            again.commit("01J00000000000000000000000")


class TestWhatIsNoRef:
    @pytest.mark.parametrize("name", ["notes.txt", ".DS_Store", "a b.json", "dev.json~", "main.json", "x.json/y"])
    def test_a_stray_file_is_no_branch(self, graph: Graph, name: str) -> None:
        path = Path(graph.address) / "_refs/branches" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine")
        again = omnigraph.open(graph.address)
        assert [branch.name for branch in again.branches()] == ["main", "dev", "other"]
        again.create_branch("new")
        again.delete_branch("new")


def test_a_parent_is_in_use_although_its_child_is_damaged(graph: Graph) -> None:
    graph.create_branch("child", "dev")
    (Path(graph.address) / "_refs/branches/child.json").write_bytes(b"")
    with pytest.raises(BranchInUse, match="child"):
        graph.delete_branch("dev")
    graph.delete_branch("other")
    graph.delete_branch("child")
    graph.delete_branch("dev")


def test_a_branch_is_known_by_its_own_ref_alone(graph: Graph) -> None:
    branches = graph._repository.branches
    other = branches.find("other").ref
    (Path(graph.address) / "_refs/branches/dev.json").write_bytes(b"")
    assert branches.has(other)
    assert branches.has(BranchName("main", None))
    assert not branches.has(BranchName("other", "other.01"))
    assert not branches.has(BranchName("gone", "gone.01"))
    with pytest.raises(ObjectDamaged):
        branches.has(BranchName("dev", "dev.01"))


def test_an_interrupted_write_to_main_is_finished_although_another_branch_is_damaged(graph: Graph) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with failpoints.armed("write.after_tables", interrupt), pytest.raises(KeyboardInterrupt):
        graph.mutate(ADD, {"k": "late"})
    (Path(graph.address) / "_refs/branches/dev.json").write_bytes(b"")
    again = omnigraph.open(graph.address)
    assert rows(again, "main") == ["late", "main"]
    assert [recovery.recovery_kind for recovery in again.recoveries()] == ["RolledForward"]


def test_a_name_that_is_taken_is_still_taken(graph: Graph) -> None:
    with pytest.raises(BranchExists):
        graph.create_branch("dev")


def test_the_command_lists_what_is_damaged(graph: Graph) -> None:
    (Path(graph.address) / "_refs/branches/dev.json").write_bytes(b"")
    shown = command("branch", "list", "--store", graph.address)
    assert shown.code == 0
    assert "other" in shown.out
    assert "_refs/branches/dev.json is damaged: it is not JSON" in shown.out.replace("\n", " ")
    listed = json.loads(command("branch", "list", "--store", graph.address, "--json").out)
    assert [branch["name"] for branch in listed["branches"]] == ["main", "other"]
    assert [problem["object"] for problem in listed["damaged"]] == ["_refs/branches/dev.json"]
    assert command("branch", "delete", "dev", "--store", graph.address).code == 0
