"""A small table for storage tests: an id, a number and a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from omnigraph.storage.stage.changes import Staged, StagedChanges, stage_append, stage_changes
from omnigraph.storage.tables import TableRef, Tables

LOCATION = "nodes/people"

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("age", pa.int64()),
        pa.field("bio", pa.string()),
    ]
)


def people(ages: Mapping[str, int | None]) -> pa.Table:
    """Rows by id; each bio tells the age."""
    rows = [{"id": name, "age": age, "bio": f"{name} is {age} years old"} for name, age in ages.items()]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def ages(rows: pa.Table | pa.RecordBatchReader) -> dict[str, int | None]:
    """Rows back as ids and ages. No id may come twice."""
    listed = rows.read_all().to_pylist() if isinstance(rows, pa.RecordBatchReader) else rows.to_pylist()
    found = {row["id"]: row["age"] for row in listed}
    assert len(found) == len(listed)
    assert all(row["bio"] == f"{row['id']} is {row['age']} years old" for row in listed if "bio" in row)
    return found


def row_ids(tables: Tables, ref: TableRef, where: str | None = None) -> dict[str, int]:
    """The row id of each id."""
    rows: list[dict[str, Any]] = tables.scan(ref, ["id"], where, row_ids=True).read_all().to_pylist()
    return {row["id"]: row["_rowid"] for row in rows}


def with_row_ids(tables: Tables, ref: TableRef, wanted: pa.Array) -> dict[int, str]:
    """The ids of the rows that have these row ids, by row id."""
    known = {row_id: name for name, row_id in row_ids(tables, ref).items()}
    return {row_id: known[row_id] for row_id in wanted.to_pylist()}


def appended(tables: Tables, ref: TableRef, rows: Mapping[str, int | None], **sizes: int) -> Staged:
    """New people, staged."""
    return stage_append(tables.open(ref), ref.location, ref.branch, people(rows), "test", **sizes)


def changed(
    tables: Tables, ref: TableRef, upserts: Mapping[str, int | None], deletes: Iterable[str] = (), **sizes: Any
) -> StagedChanges:
    """New, changed and deleted people, staged as one change."""
    gone = pa.array(list(deletes), pa.string())
    return stage_changes(tables.open(ref), ref.location, ref.branch, people(upserts), gone, "test", **sizes)


def change(
    tables: Tables, ref: TableRef, upserts: Mapping[str, int | None], deletes: Iterable[str] = (), **sizes: int
) -> TableRef:
    """New, changed and deleted people, committed."""
    return tables.commit_staged(changed(tables, ref, upserts, deletes, **sizes).staged)


def populated(tables: Tables, rows: Mapping[str, int | None], location: str = LOCATION, **sizes: int) -> TableRef:
    """A table that has these people at version 2."""
    empty = tables.create(location, SCHEMA)
    return tables.commit_staged(appended(tables, empty, rows, **sizes))
