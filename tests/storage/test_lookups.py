"""Rows are found by the index on ids where that reads less than all ids, and by a pass where it does not."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from tests.storage.rows import LOCATION, appended, people, row_ids
from tests.stores import local_store

from omnigraph.storage.stage.indexes import IndexSpec, stage_create_index
from omnigraph.storage.stage.lookups import are_looked_up, locate_rows
from omnigraph.storage.tables import TableRef, Tables

ROWS = 60_000
NEAR = [f"p{number:05}" for number in range(30_000, 30_500)]
SPREAD = [f"p{number:05}" for number in range(0, ROWS, ROWS // 500)]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return local_store(tmp_path_factory.mktemp("lookups")).tables()


@pytest.fixture(scope="module")
def plain(tables: Tables) -> TableRef:
    return tables.create_filled(LOCATION, people({f"p{number:05}": number for number in range(ROWS)}))


@pytest.fixture(scope="module")
def indexed(tables: Tables, plain: TableRef) -> TableRef:
    """All rows have an index; two more come behind it."""
    spec = IndexSpec("id", "BTREE", "by_id")
    ref = tables.commit_staged(stage_create_index(tables.open(plain), LOCATION, None, [spec], "test"))
    return tables.commit_staged(appended(tables, ref, {"q1": 1, "q2": 2}))


def found(tables: Tables, ref: TableRef, ids: Sequence[str]) -> dict[str, int]:
    where = locate_rows(tables.open(ref), pa.array(ids))
    return dict(zip(where["id"].to_pylist(), where["row_id"].to_pylist(), strict=True))


def test_ids_side_by_side_are_looked_up_and_spread_ones_are_not(tables: Tables, indexed: TableRef) -> None:
    handle = tables.open(indexed)
    assert are_looked_up(handle, pa.array(NEAR))
    assert not are_looked_up(handle, pa.array(SPREAD))
    assert are_looked_up(handle, pa.array(SPREAD[::10])), "they are few"
    assert not are_looked_up(handle, pa.array(NEAR), 50), "they are more than filters may name"


def test_without_an_index_only_a_few_ids_are_looked_up(tables: Tables, plain: TableRef) -> None:
    handle = tables.open(plain)
    assert not are_looked_up(handle, pa.array(NEAR))
    assert are_looked_up(handle, pa.array(NEAR[:10]))


@pytest.mark.parametrize("ids", [NEAR, SPREAD], ids=["near", "spread"])
def test_rows_behind_the_index_are_found_too(tables: Tables, indexed: TableRef, ids: list[str]) -> None:
    known = row_ids(tables, indexed)
    wanted = [*ids, "q2", "nobody"]
    assert found(tables, indexed, wanted) == {name: known[name] for name in wanted if name != "nobody"}


def test_a_look_up_reads_less_than_a_pass(tables: Tables, indexed: TableRef) -> None:
    def read(ids: Sequence[str]) -> int:
        handle = tables.open(indexed)
        handle.io_stats_incremental()
        found(tables, indexed, ids)
        return int(handle.io_stats_incremental().read_bytes)

    assert 0 < read(NEAR[:200]) * 2 < read(SPREAD)


def test_pages_of_another_branch_are_looked_up_as_if_ids_were_anywhere(tables: Tables, indexed: TableRef) -> None:
    """A branch uses the index of the one that it forked from, whose files lie elsewhere."""
    fork = tables.fork(indexed, "twig")
    handle = tables.open(fork)
    assert not are_looked_up(handle, pa.array(NEAR))
    known = row_ids(tables, fork)
    assert found(tables, fork, [*NEAR, "q1"]) == {name: known[name] for name in (*NEAR, "q1")}
