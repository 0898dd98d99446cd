"""Row ids as versions store them are those that Lance reads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.stores import Store

from omnigraph.storage.rows.pieces import deleted_rows, pieces_of
from omnigraph.storage.rows.row_ids import identities
from omnigraph.storage.stage.changes import stage_changes
from omnigraph.storage.stage.compaction import plan_compaction, stage_compaction
from omnigraph.storage.tables import TableRef, Tables

LOCATION = "nodes/t"
GONE = {
    "none": range(0),
    "one": range(500, 501),
    "few": range(0, 1_000, 90),
    "every other": range(0, 1_000, 2),
    "most": range(10, 1_000),
}


def changed(tables: Tables, ref: TableRef, upserts: list[int], deletes: list[int]) -> TableRef:
    rows = pa.table({"id": pa.array([f"r{number}" for number in upserts], pa.string())})
    gone = pa.array([f"r{number}" for number in deletes], pa.string())
    return tables.commit_staged(stage_changes(tables.open(ref), LOCATION, ref.branch, rows, gone, "test").staged)


def compacted(tables: Tables, ref: TableRef) -> TableRef:
    handle = tables.dataset(LOCATION, ref.branch, ref.version)
    assert handle is not None
    return tables.commit_staged(stage_compaction(plan_compaction(handle), LOCATION, ref.branch, "test").staged)


@pytest.mark.parametrize("gone", list(GONE.values()), ids=GONE)
def test_row_ids_are_those_that_lance_reads(local_store: Store, gone: range) -> None:
    tables = local_store.tables()
    rows = pa.table({"id": [f"r{number}" for number in range(1_000)]})
    ref = changed(tables, tables.create_filled(LOCATION, rows), [7, 3, 2_000], list(gone))
    for version in (ref, compacted(tables, ref)):
        pieces = pieces_of(tables, version)
        found = identities(tables, version, pieces)
        assert found is not None
        live = [
            np.delete(each.ids, deleted_rows(tables, version, piece))
            for each, piece in zip(found, pieces, strict=True)
        ]
        read = tables.open(version).scanner(columns=["id"], with_row_id=True).to_table()
        assert np.concatenate(live).tolist() == read["_rowid"].to_pylist()
        assert all(each.changed.max() <= version.version for each in found)
