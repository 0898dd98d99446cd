"""Native branches of a table: free to make, independent, and whole after a crash."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import lance
import pytest
from tests.storage.rows import LOCATION, ages, appended, change, populated, row_ids, with_row_ids
from tests.storage.threads import meanwhile
from tests.stores import Store

from omnigraph.errors import HistoryReclaimed, StorageUnavailable
from omnigraph.storage.stage.indexes import IndexSpec, stage_create_index
from omnigraph.storage.tables import TableRef, Tables

ADA_AND_BO = {"ada": 36, "bo": 7}


@pytest.fixture
def tables(store: Store) -> Tables:
    return store.tables()


@pytest.fixture
def trunk(tables: Tables) -> TableRef:
    return populated(tables, ADA_AND_BO)


class TestFork:
    def test_it_starts_with_what_its_parent_has(self, tables: Tables, trunk: TableRef) -> None:
        fork = tables.fork(trunk, "dev")
        assert fork == TableRef(LOCATION, "dev", trunk.version)
        assert ages(tables.scan(fork)) == ADA_AND_BO
        assert row_ids(tables, fork) == row_ids(tables, trunk)
        assert tables.newest(LOCATION, "dev") == fork.version

    def test_it_copies_no_rows(self, shared_store: Store) -> None:
        tables, objects = shared_store.tables(), shared_store.objects()
        tables.fork(populated(tables, ADA_AND_BO), "dev")
        assert not objects.exists(f"{LOCATION}/tree/dev/data")
        assert len(objects.list(f"{LOCATION}/data")) == 1

    def test_parent_and_child_go_their_own_ways(self, store: Store, tables: Tables, trunk: TableRef) -> None:
        fork = tables.fork(trunk, "dev")
        mine = change(tables, fork, {"ada": 1}, ["bo"])
        theirs = change(tables, trunk, {"ada": 2, "cy": 3})
        for client in (tables, store.tables()):
            assert ages(client.scan(mine)) == {"ada": 1}
            assert ages(client.scan(theirs)) == {"ada": 2, "bo": 7, "cy": 3}
            assert ages(client.scan(trunk)) == ages(client.scan(fork)) == ADA_AND_BO

    def test_a_branch_may_start_in_the_past(self, tables: Tables, trunk: TableRef) -> None:
        change(tables, trunk, {"ada": 2})
        assert ages(tables.scan(tables.fork(trunk, "old"))) == ADA_AND_BO

    def test_a_branch_of_a_branch_of_a_branch(self, store: Store, tables: Tables, trunk: TableRef) -> None:
        child = change(tables, tables.fork(trunk, "child"), {"cy": 1})
        grandchild = change(tables, tables.fork(child, "grand/child"), {"ada": 0})
        last = change(tables, tables.fork(grandchild, "grand/grand/child"), {"di": 2}, ["bo"])
        again = store.tables()
        assert ages(again.scan(last)) == {"ada": 0, "cy": 1, "di": 2}
        assert ages(again.scan(child)) == {"ada": 36, "bo": 7, "cy": 1}
        assert again.fork_points(LOCATION) == {
            "child": trunk,
            "grand/child": child,
            "grand/grand/child": grandchild,
        }

    def test_forking_does_not_disturb_whoever_reads_the_parent(self, tables: Tables, trunk: TableRef) -> None:
        with meanwhile(lambda _: read_all(tables, trunk)):
            for number in range(10):
                assert ages(tables.scan(change(tables, tables.fork(trunk, f"b{number}"), {"cy": 1}))) != ADA_AND_BO

    def test_indexes_of_the_parent_are_used_on_the_branch(self, tables: Tables, trunk: TableRef) -> None:
        specs = [IndexSpec("id", "BTREE", "by_id"), IndexSpec("age", "BTREE", "by_age")]
        indexed = tables.commit_staged(stage_create_index(tables.open(trunk), LOCATION, None, specs, "test"))
        fork = tables.fork(indexed, "dev")
        changed = change(tables, fork, {"ada": 1, "cy": 2})
        for ref in (fork, changed, tables.fork(changed, "dev2")):
            plan = tables.open(ref).scanner(columns=["id"], filter="id = 'bo'").explain_plan()
            assert "ScalarIndexQuery" in plan
            assert ages(tables.scan(ref, where="age = 36")) == ({"ada": 36} if ref == fork else {})
            assert ages(tables.scan(ref, where="id = 'ada'")) == {"ada": 36 if ref == fork else 1}

    def test_the_delta_of_a_branch_since_it_forked(self, tables: Tables, trunk: TableRef) -> None:
        before = row_ids(tables, trunk)
        child = change(tables, tables.fork(trunk, "child"), {"cy": 1, "ada": 37})
        change(tables, trunk, {"elsewhere": 1})
        grandchild = change(tables, tables.fork(child, "grandchild"), {"cy": 2}, ["bo"])

        delta = tables.delta(child, since=trunk.version)
        assert list(with_row_ids(tables, child, delta.inserted).values()) == ["cy"]
        assert delta.updated.to_pylist() == [before["ada"]]
        assert delta.deleted.to_pylist() == []
        delta = tables.delta(grandchild, since=child.version)
        assert delta.inserted.to_pylist() == []
        assert list(with_row_ids(tables, grandchild, delta.updated).values()) == ["cy"]
        assert delta.deleted.to_pylist() == [before["bo"]]

    def test_a_branch_knows_no_versions_from_before_it(self, shared_store: Store) -> None:
        tables = shared_store.tables()
        fork = tables.fork(populated(tables, ADA_AND_BO), "dev")
        with pytest.raises(HistoryReclaimed, match="version 1 of table nodes/people on branch dev"):
            tables.open(TableRef(LOCATION, "dev", 1))
        with pytest.raises(HistoryReclaimed, match=r"version 1 .* on branch dev"):
            tables.delta(fork, since=1)

    def test_cleaning_the_trunk_leaves_the_branch_readable(self, shared_store: Store) -> None:
        tables = shared_store.tables()
        trunk = populated(tables, ADA_AND_BO)
        fork = change(tables, tables.fork(trunk, "dev"), {"cy": 1})
        change(tables, trunk, {"ada": 0, "bo": 0})
        clean(shared_store, tables)
        assert ages(shared_store.tables().scan(fork)) == ADA_AND_BO | {"cy": 1}


class TestForkAgain:
    def test_an_equal_branch_is_taken_over(self, store: Store, tables: Tables, trunk: TableRef) -> None:
        fork = tables.fork(trunk, "dev")
        assert tables.fork(trunk, "dev") == fork
        change(tables, fork, {"cy": 1})
        assert store.tables().fork(trunk, "dev") == fork
        assert tables.moved(fork)

    def test_a_branch_that_starts_elsewhere_is_refused(self, tables: Tables, trunk: TableRef) -> None:
        """Also when it has reached the same version by changes of its own."""
        fork = tables.fork(trunk, "dev")
        change(tables, fork, {"mine": 1})
        later = change(tables, trunk, {"theirs": 1})
        with pytest.raises(StorageUnavailable, match=r"dev starts at version 2 .* not at version 3"):
            tables.fork(later, "dev")

    @pytest.mark.parametrize("lost", ["entry", "files"])
    def test_an_interrupted_fork_is_made_again(self, shared_store: Store, lost: str) -> None:
        """Lance writes files and entry one after the other; a crash leaves one without the other."""
        tables, objects = shared_store.tables(), shared_store.objects()
        trunk = populated(tables, ADA_AND_BO)
        tables.fork(trunk, "dev")
        if lost == "entry":
            objects.delete(f"{LOCATION}/_refs/branches/dev.json")
        else:
            objects.delete_prefix(f"{LOCATION}/tree/dev")
        again = shared_store.tables()
        fork = change(again, again.fork(trunk, "dev"), {"cy": 1})
        assert again.fork_points(LOCATION) == {"dev": trunk}
        change(again, trunk, {"ada": 0, "bo": 0})
        clean(shared_store, again)
        assert ages(shared_store.tables().scan(fork)) == ADA_AND_BO | {"cy": 1}


class TestDrop:
    def test_nothing_of_a_dropped_branch_is_left(self, shared_store: Store) -> None:
        tables, objects = shared_store.tables(), shared_store.objects()
        trunk = populated(tables, ADA_AND_BO)
        fork = change(tables, tables.fork(trunk, "dev"), {"cy": 1})
        other = tables.fork(trunk, "dev2")
        tables.drop_branch(LOCATION, "dev")
        assert tables.native_branches(LOCATION) == ["dev2"]
        assert not objects.exists(f"{LOCATION}/tree/dev")
        for client in (tables, shared_store.tables()):
            with pytest.raises(HistoryReclaimed):
                client.open(fork)
            assert ages(client.scan(trunk)) == ages(client.scan(other)) == ADA_AND_BO

    def test_dropping_what_is_not_there_does_nothing(self, tables: Tables, trunk: TableRef) -> None:
        tables.drop_branch(LOCATION, "never")
        tables.drop_branch("nodes/never", "never")
        assert tables.native_branches("nodes/never") == []
        assert tables.native_branches(LOCATION) == []

    def test_what_a_crash_left_is_dropped_too(self, shared_store: Store) -> None:
        tables, objects = shared_store.tables(), shared_store.objects()
        tables.fork(populated(tables, ADA_AND_BO), "dev")
        objects.delete(f"{LOCATION}/_refs/branches/dev.json")
        tables.drop_branch(LOCATION, "dev")
        assert not objects.exists(f"{LOCATION}/tree/dev")

    def test_a_branch_with_children_is_kept(self, tables: Tables, trunk: TableRef) -> None:
        fork = tables.fork(trunk, "dev")
        child = tables.fork(fork, "child")
        with pytest.raises(StorageUnavailable, match="child"):
            tables.drop_branch(LOCATION, "dev")
        assert ages(tables.scan(child)) == ages(tables.scan(fork)) == ADA_AND_BO

    def test_a_name_may_be_used_again(self, tables: Tables, trunk: TableRef) -> None:
        """What was open under the old branch of that name is not mistaken for the new one."""
        change(tables, tables.fork(trunk, "dev"), {"old": 1})
        tables.drop_branch(LOCATION, "dev")
        new = tables.commit_staged(appended(tables, tables.fork(trunk, "dev"), {"new": 1}))
        assert ages(tables.scan(new)) == ADA_AND_BO | {"new": 1}


@pytest.mark.parametrize("name", ["a b", "a%20b", "über", "a#b", "a:b", "a+b&c=d"])
def test_branches_work_below_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    """A branch remembers where its parent is, as an address."""
    place = Store(str(tmp_path / name))
    tables = place.tables()
    fork = change(tables, tables.fork(populated(tables, ADA_AND_BO), "dev"), {"cy": 1})
    assert place.tables().exists(fork)
    assert ages(place.tables().scan(fork)) == ADA_AND_BO | {"cy": 1}


def clean(store: Store, tables: Tables) -> None:
    """Remove what no version and no branch needs any more."""
    trunk = lance.dataset(tables.uri(LOCATION), storage_options=store.options or None)
    trunk.cleanup_old_versions(older_than=dt.timedelta(0), delete_unverified=True)


def read_all(tables: Tables, ref: TableRef) -> None:
    """Read a version that has always been the same."""
    assert ages(tables.scan(ref)) == ADA_AND_BO
    assert tables.open(ref).version == ref.version
