"""Changing the columns of a table: one version, at the cost of what is computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from omnigraph.errors import StorageUnavailable
from omnigraph.storage.address import parse_address
from omnigraph.storage.objects import open_objects
from omnigraph.storage.stage.changes import stage_append, stage_changes
from omnigraph.storage.stage.columns import Column, ComputedColumn, EmptyColumn, KeptColumn, stage_columns
from omnigraph.storage.tables import TableRef, Tables

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("age", pa.int32()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("vector", pa.list_(pa.float32(), 2)),
        lance.blob_field("picture"),
    ]
)
ID = KeptColumn("id", SCHEMA.field("id"))
REST: list[Column] = [KeptColumn(name, SCHEMA.field(name)) for name in ("tags", "vector", "picture")]


class Table:
    """A table of two files, of which one row is deleted and one was updated."""

    def __init__(self, root: Path) -> None:
        address = parse_address(str(root))
        self.tables = Tables(address, open_objects(address))
        self.ref = self.tables.create("nodes/t", SCHEMA)
        self.append("a", "b", "c")
        self.append("d", "e")
        handle = self.tables.open(self.ref)
        changes = stage_changes(handle, "nodes/t", None, rows("e", age=50), pa.array(["b"]), "test")
        self.ref = self.tables.commit_staged(changes.staged)

    def append(self, *names: str) -> None:
        handle = self.tables.open(self.ref)
        self.ref = self.tables.commit_staged(stage_append(handle, "nodes/t", None, rows(*names), "test", 2))

    def change(self, *columns: Column) -> None:
        before = self.ref
        staged = stage_columns(self.tables.open(before), "nodes/t", None, columns, "test")
        assert self.tables.newest("nodes/t") == before.version, "staging leaves the table as it is"
        self.ref = self.tables.commit_staged(staged)
        assert self.ref.version == before.version + 1

    def read(self, *columns: str, ref: TableRef | None = None) -> dict[str, list[Any]]:
        found = self.tables.scan(ref or self.ref, columns, whole_blobs=True).read_all().sort_by("id")
        values: dict[str, list[Any]] = found.drop_columns(["id"]).to_pydict()
        return values

    @property
    def files(self) -> set[str]:
        return {path.name for path in Path(str(self.tables.address.root), "nodes/t/data").iterdir()}


def rows(*names: str, age: int = 7) -> pa.Table:
    columns = [
        pa.array(names),
        pa.array([age] * len(names), pa.int32()),
        pa.array([[name] for name in names]),
        pa.array([[1.0, 2.0]] * len(names), pa.list_(pa.float32(), 2)),
        lance.blob_array([name.encode() for name in names]),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def widened(batch: pa.RecordBatch) -> pa.Array:
    return batch["age"].cast(pa.int64())


def test_a_column_is_renamed_without_writing_data(table: Table) -> None:
    before, old = table.files, table.ref
    table.change(ID, KeptColumn("age", pa.field("years", pa.int32())), *REST)
    assert table.read("id", "years") == {"years": [7, 7, 7, 50]}
    assert table.read("id", "age", ref=old) == {"age": [7, 7, 7, 50]}
    assert table.files == before


def test_two_columns_change_their_names_with_each_other(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.change(ID, KeptColumn("age", pa.field("x", pa.int32())), EmptyColumn(pa.field("y", pa.int32())))
    table.change(ID, KeptColumn("x", pa.field("y", pa.int32())), KeptColumn("y", pa.field("x", pa.int32())))
    assert table.read("id", "y", "x") == {"y": [7, 7, 7, 50], "x": [None] * 4}


def test_columns_that_are_not_named_are_dropped(table: Table) -> None:
    before = table.files
    table.change(ID, *REST)
    assert table.tables.open(table.ref).schema.names == ["id", "tags", "vector", "picture"]
    assert table.files == before


@pytest.mark.parametrize(
    "field",
    [
        pa.field("new", pa.string()),
        pa.field("new", pa.list_(pa.int64())),
        pa.field("new", pa.list_(pa.float32(), 3)),
        pa.field("new", pa.timestamp("ms", tz="UTC")),
        lance.blob_field("new"),
    ],
    ids=str,
)
def test_a_new_column_is_empty_and_costs_nothing(table: Table, field: pa.Field) -> None:
    before = table.files
    table.change(ID, EmptyColumn(field), KeptColumn("age", SCHEMA.field("age")), *REST)
    assert table.read("id", "new", "age") == {"new": [None] * 4, "age": [7, 7, 7, 50]}
    assert table.files == before


def test_a_column_that_is_dropped_and_added_again_is_empty(table: Table) -> None:
    table.change(ID, *REST)
    table.change(ID, EmptyColumn(SCHEMA.field("age")), *REST)
    assert table.read("id", "age") == {"age": [None] * 4}


def test_a_computed_column_takes_the_place_of_the_old_one(table: Table) -> None:
    old, before = table.ref, table.files
    table.change(ID, ComputedColumn(pa.field("age", pa.int64()), ("age",), widened), *REST)
    assert table.tables.open(table.ref).schema.field("age").type == pa.int64()
    assert table.read("id", "age") == {"age": [7, 7, 7, 50]}
    assert table.read("id", "age", ref=old) == {"age": [7, 7, 7, 50]}
    assert table.read("id", "tags", "picture")["tags"] == [["a"], ["c"], ["d"], ["e"]]
    assert len(table.files - before) == len(table.tables.open(table.ref).get_fragments())


def test_rows_keep_their_ids_and_can_be_written_afterwards(table: Table) -> None:
    def row_ids() -> list[int]:
        found = table.tables.open(table.ref).to_table(columns=["id"], with_row_id=True).sort_by("id")
        ids: list[int] = found["_rowid"].to_pylist()
        return ids

    before = row_ids()
    table.change(ID, ComputedColumn(pa.field("age", pa.int64(), nullable=False), ("age",), widened), *REST)
    assert row_ids() == before
    changed = rows("a", "z", age=1)
    changed = changed.set_column(1, pa.field("age", pa.int64(), nullable=False), changed["age"].cast(pa.int64()))
    handle = table.tables.open(table.ref)
    changes = stage_changes(handle, "nodes/t", None, changed, pa.array(["c"]), "test")
    table.ref = table.tables.commit_staged(changes.staged)
    assert table.read("id", "age") == {"age": [1, 7, 50, 1]}


def test_an_empty_table_gets_its_columns(tmp_path: Path) -> None:
    address = parse_address(str(tmp_path))
    tables = Tables(address, open_objects(address))
    ref = tables.create("nodes/t", SCHEMA)
    columns: list[Column] = [ID, ComputedColumn(pa.field("age", pa.int64()), ("age",), widened), *REST]
    ref = tables.commit_staged(stage_columns(tables.open(ref), "nodes/t", None, columns, "test"))
    assert tables.open(ref).schema.names == ["id", "age", "tags", "vector", "picture"]
    assert tables.open(ref).schema.field("age").type == pa.int64()


def test_a_file_that_cannot_be_read_is_a_failure_of_the_store(table: Table) -> None:
    for file in Path(table.tables.address.root, "nodes/t/data").iterdir():
        file.unlink()
    column = ComputedColumn(pa.field("age", pa.int64()), ("age",), widened)
    with pytest.raises(StorageUnavailable):
        table.change(ID, column, *REST)
