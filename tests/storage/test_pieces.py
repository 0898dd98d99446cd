"""The rows of a table by their physical places: which are deleted, and what is in them all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.stores import Store

from omnigraph.errors import StorageUnavailable
from omnigraph.storage.files.deletions import deleted_rows_of
from omnigraph.storage.rows.pieces import column_numbers, deleted_rows, physical_rows, pieces_of, rows_at
from omnigraph.storage.stage.changes import stage_changes
from omnigraph.storage.tables import TableRef, Tables

LOCATION = "nodes/t"
NOTHING = pa.table({"id": pa.array([], pa.string()), "n": pa.array([], pa.int64())})


def table_of(store: Store, count: int) -> tuple[Tables, TableRef]:
    tables = store.tables()
    rows = pa.table({"id": [f"r{number}" for number in range(count)], "n": pa.array(range(count), pa.int64())})
    return tables, tables.create_filled(LOCATION, rows)


def without(tables: Tables, ref: TableRef, numbers: list[int]) -> TableRef:
    gone = pa.array([f"r{number}" for number in numbers], pa.string())
    staged = stage_changes(tables.open(ref), ref.location, ref.branch, NOTHING, gone, "test").staged
    return tables.commit_staged(staged)


@pytest.mark.parametrize(("count", "every"), [(100, 9), (30_000, 2)], ids=["few deleted", "many deleted"])
def test_deleted_rows_are_known_and_can_be_read(store: Store, count: int, every: int) -> None:
    tables, ref = table_of(store, count)
    [before] = pieces_of(tables, ref)
    gone = list(range(0, count, every))
    after = without(tables, ref, gone)
    [piece] = pieces_of(tables, after)
    assert piece.files == before.files
    assert (piece.rows, piece.live) == (count, count - len(gone))
    assert deleted_rows(tables, ref, before).tolist() == []
    assert deleted_rows(tables, after, piece).tolist() == gone
    read = physical_rows(tables, after, [piece], ["n"]).read_all()
    assert read["n"].to_pylist() == list(range(count))


def test_a_native_branch_has_the_pieces_of_its_trunk(store: Store) -> None:
    tables, ref = table_of(store, 10)
    deleted = without(tables, ref, [3])
    fork = tables.fork(deleted, "side")
    assert pieces_of(tables, fork) == pieces_of(tables, deleted)
    further = without(tables, fork, [5])
    [piece], [shared] = pieces_of(tables, further), pieces_of(tables, deleted)
    assert piece.files == shared.files
    assert deleted_rows(tables, further, piece).tolist() == [3, 5]
    assert deleted_rows(tables, fork, pieces_of(tables, fork)[0]).tolist() == [3]


def test_single_rows_are_read_from_the_file_of_a_piece(local_store: Store) -> None:
    tables, ref = table_of(local_store, 10)
    [piece] = pieces_of(tables, without(tables, ref, [3]))
    found = rows_at(tables, piece, np.array([3, 7], dtype=np.int32), ["id"])
    assert found["id"].to_pylist() == ["r3", "r7"]
    Path(piece.folder, "data", piece.files[0]).unlink()
    with pytest.raises(StorageUnavailable):
        rows_at(tables, piece, np.array([3], dtype=np.int32), ["id"])


def test_columns_have_numbers(local_store: Store) -> None:
    tables, ref = table_of(local_store, 1)
    assert column_numbers(tables, ref) == {"id": 0, "n": 1}


def test_runs_of_deleted_rows_are_unfolded() -> None:
    """Lance writes no runs today; the format has them."""
    runs = (2).to_bytes(2, "little") + b"".join(n.to_bytes(2, "little") for n in (5, 2, 9, 0))
    head = (12347).to_bytes(2, "little") + (0).to_bytes(2, "little") + b"\x01"
    content = head + (1).to_bytes(2, "little") + (3).to_bytes(2, "little") + runs
    assert deleted_rows_of(content, is_bitmap=True).tolist() == [65536 + n for n in (5, 6, 7, 9)]
