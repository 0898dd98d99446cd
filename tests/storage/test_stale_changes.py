"""A change that was staged on a version which is no longer the newest is refused, and leaves no trace.

Lance would rebase most of these silently, and a restore would wipe what came between.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.processes import children, start_together
from tests.storage.rows import LOCATION, ages, appended, change, changed, people, populated
from tests.storage.table_writers import overwrite_once
from tests.stores import Store

from omnigraph.errors import TableMoved
from omnigraph.storage.stage.changes import Staged, stage_overwrite
from omnigraph.storage.stage.indexes import IndexSpec, stage_create_index
from omnigraph.storage.tables import TableRef, Tables

Stage = Callable[[Tables, TableRef], Staged]


def _index(tables: Tables, ref: TableRef) -> Staged:
    return stage_create_index(
        tables.open(ref), ref.location, ref.branch, [IndexSpec("id", "BTREE", "by_id")], "test"
    )


def _overwrite(tables: Tables, ref: TableRef) -> Staged:
    return stage_overwrite(tables.open(ref), ref.location, ref.branch, people({"zoe": 1}), "test")


KINDS: dict[str, Stage] = {
    "append": lambda tables, ref: appended(tables, ref, {"zoe": 1}),
    "append of nothing": lambda tables, ref: appended(tables, ref, {}),
    "insert": lambda tables, ref: changed(tables, ref, {"zoe": 1}).staged,
    "update": lambda tables, ref: changed(tables, ref, {"ada": 1}).staged,
    "delete": lambda tables, ref: changed(tables, ref, {}, ["ada"]).staged,
    "no change": lambda tables, ref: changed(tables, ref, {}).staged,
    "overwrite": _overwrite,
    "index": _index,
}
"""Every kind of staged change there is."""


@pytest.mark.parametrize("stale", KINDS)
@pytest.mark.parametrize("meanwhile", ["append", "update", "overwrite", "index"])
def test_it_is_refused_whatever_came_between(local_store: Store, stale: str, meanwhile: str) -> None:
    tables = local_store.tables()
    ref = populated(tables, {"ada": 36, "bo": 7})
    late = KINDS[stale](tables, ref)
    winner = tables.commit_staged(KINDS[meanwhile](tables, ref))
    kept = ages(tables.scan(winner))

    with pytest.raises(TableMoved) as caught:
        tables.commit_staged(late)

    assert (caught.value.location, caught.value.expected) == (LOCATION, ref.version)
    assert tables.newest(LOCATION) == winner.version, "no version was made"
    assert ages(tables.scan(winner)) == kept


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_refused_on_every_store_and_on_branches(store: Store, kind: str) -> None:
    tables = store.tables()
    ref = tables.fork(populated(tables, {"ada": 36, "bo": 7}), "dev")
    late = KINDS[kind](tables, ref)
    winner = change(tables, change(tables, ref, {"cy": 1}), {"di": 2})
    for client in (tables, store.tables()):
        with pytest.raises(TableMoved):
            client.commit_staged(late)
    assert tables.newest(LOCATION, "dev") == winner.version


def test_a_change_cannot_be_committed_twice(store: Store) -> None:
    tables = store.tables()
    ref = populated(tables, {"ada": 36})
    staged = appended(tables, ref, {"zoe": 1})
    tables.commit_staged(staged)
    with pytest.raises(TableMoved):
        tables.commit_staged(staged)
    assert tables.newest(LOCATION) == ref.version + 1


def test_a_restore_is_refused_when_the_table_has_moved_on(store: Store) -> None:
    tables = store.tables()
    ref = populated(tables, {"ada": 36})
    head = change(tables, ref, {"ada": 37})
    newer = change(tables, head, {"ada": 38})
    with pytest.raises(TableMoved):
        tables.restore(ref, head.version)
    assert tables.newest(LOCATION) == newer.version
    assert ages(tables.scan(newer)) == {"ada": 38}


def test_of_overwrites_without_a_lock_one_wins_each_version(shared_store: Store) -> None:
    """This is what publishing rests on: no lock, many processes, one winner."""
    tables = shared_store.tables()
    ref = populated(tables, {"start": 0})
    with children(*[(overwrite_once, shared_store, ref, f"p{number}") for number in range(4)]) as writers:
        start_together(writers)
        outcomes = [child.hear() for child in writers]
    assert sorted(outcomes) == ["moved", "moved", "moved", "won"]
    winner = f"p{outcomes.index('won')}"
    newest = tables.newest(LOCATION)
    assert newest == ref.version + 1
    assert ages(tables.scan(TableRef(LOCATION, None, newest))) == {winner: 1}
