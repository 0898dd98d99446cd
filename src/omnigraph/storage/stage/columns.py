"""Changing the columns of a table: renaming, dropping, adding and computing them, staged as one version.

Columns that are renamed, dropped, or new and empty cost nothing but the table's manifest. A column that is
computed gets files of its own beside those of the others, which stay as they are: `stage_columns` writes them one
after the other, and `stage_column_files` takes files that the tasks of a bulk job have written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata, LanceFragment
from lance.schema import LanceSchema
from lance.udf import BatchUDF

from omnigraph.storage.files.datafiles import StagedFile, column_ids
from omnigraph.storage.files.staged import settle_new_files
from omnigraph.storage.stage.changes import Staged, staged_operation
from omnigraph.storage.stage.fields import FieldTree, field_trees, new_field_trees, schema_of
from omnigraph.storage.unavailable import translated

Compute = Callable[[pa.RecordBatch], pa.Array]
_COMPUTED: Final = "omnigraph computed "
"""What the names of computed columns begin with until the old columns are gone; no property has such a name."""

_LAST_NUMBER: Final = 2**31 - 1
"""The highest number that Lance can give to a column."""

_CHANGES: Final = 2**13
"""New columns leave out at most one in so many of the numbers that are left, so that they never run out."""


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """A column that stays, perhaps under another name, and perhaps with another rule about nulls."""

    name: str
    field: pa.Field


@dataclass(frozen=True, slots=True)
class EmptyColumn:
    """A new column that has no value in any row."""

    field: pa.Field


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A new column whose values are computed from others; it may take the place of one of them."""

    field: pa.Field
    needs: tuple[str, ...]
    compute: Compute


Column = KeptColumn | EmptyColumn | ComputedColumn


def stage_columns(
    handle: LanceDataset, location: str, branch: str | None, columns: Sequence[Column], operation: str
) -> Staged:
    """Stage the columns that a table is to have, in their order; old columns that are not among them go."""
    with translated(handle.uri):
        columns = written_where_needed(handle, columns)
        computed = [column for column in columns if isinstance(column, ComputedColumn)]
        fragments = [_computed(handle, fragment, computed) for fragment in handle.get_fragments()]
        made = fragments[-1][1] if fragments else handle.lance_schema
        schema, renumbered = _schema(handle, columns, made, operation)
        if all(isinstance(column, KeptColumn) for column in columns):
            return staged_operation(handle, location, branch, LanceOperation.Project(schema), operation)
        before = [fragment.metadata for fragment in handle.get_fragments()]
        after = [_renumbered(new, renumbered) for new, _ in fragments]
        settle_new_files(handle.uri, zip(before, after, strict=True))
        return staged_operation(handle, location, branch, LanceOperation.Merge(after, schema), operation)


def written_where_needed(handle: LanceDataset, columns: Sequence[Column]) -> list[Column]:
    """The columns, with files for some that could do without, but not for Lance: one that may be null from now on
    while another one is new, and an empty one that gets the name of one that goes."""
    if all(isinstance(column, KeptColumn) for column in columns):
        return list(columns)
    is_nullable = {tree.name: tree.nullable for tree in field_trees(handle.lance_schema)}
    written: list[Column] = []
    for column in columns:
        field = column.field
        match column:
            case KeptColumn(name) if field.nullable and not is_nullable[name]:
                written.append(ComputedColumn(field, (name,), partial(_as_it_is, name)))
            case EmptyColumn() if field.name in is_nullable:
                written.append(ComputedColumn(field, ("id",), partial(_nulls, field.type)))
            case _:
                written.append(column)
    return written


def _as_it_is(name: str, rows: pa.RecordBatch) -> pa.Array:
    return rows[name]


def _nulls(stored: pa.DataType, rows: pa.RecordBatch) -> pa.Array:
    return pa.nulls(rows.num_rows, stored)


def _computed(
    handle: LanceDataset, fragment: LanceFragment, columns: Sequence[ComputedColumn]
) -> tuple[FragmentMetadata, LanceSchema]:
    """A fragment with a file for its computed columns, and the table's schema with their temporary names."""
    if not columns:
        return fragment.metadata, handle.lance_schema

    schema = pa.schema(
        [column.field.with_name(_COMPUTED + column.field.name).with_nullable(True) for column in columns]
    )

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([column.compute(batch) for column in columns], schema=schema)

    # Without the schema Lance would try the function first, and hide what fails then behind a TypeError.
    made: tuple[FragmentMetadata, LanceSchema] = fragment.merge_columns(
        BatchUDF(compute, schema), columns=_needed(columns)
    )
    return made


def _needed(columns: Sequence[ComputedColumn]) -> list[str]:
    """The columns that have to be read to compute others; one at least, which has the rows."""
    return sorted({name for column in columns for name in column.needs}) or ["id"]


@dataclass(frozen=True, slots=True)
class ColumnFile:
    """A data file with the computed columns of one fragment."""

    fragment: int
    staged: StagedFile


def changed_schema(handle: LanceDataset, columns: Sequence[Column], operation: str) -> LanceSchema:
    """The schema of a table with other columns. New ones have numbers by which files can refer to them."""
    return _schema(handle, columns, handle.lance_schema, operation)[0]


def file_schema(columns: Sequence[ComputedColumn]) -> pa.Schema:
    """The columns of a file with computed values. Deleted rows have values too, which may be null."""
    return pa.schema([column.field.with_nullable(True) for column in columns])


def compute_columns(handle: LanceDataset, fragment: int, columns: Sequence[ComputedColumn]) -> pa.Table:
    """The computed columns of all rows of a fragment, deleted ones included: its files are equally long."""
    schema = file_schema(columns)
    found = handle.get_fragment(fragment)
    assert found is not None, fragment  # noqa: S101  the caller has listed it from this version
    with translated(handle.uri):
        # Lance gives out deleted rows only together with row ids, which those rows lack.
        batches = found.scanner(columns=_needed(columns), with_row_id=True, include_deleted_rows=True).to_reader()
        made = [
            pa.RecordBatch.from_arrays([column.compute(batch) for column in columns], schema=schema)
            for batch in batches
        ]
    return pa.Table.from_batches(made, schema)


def stage_column_files(
    handle: LanceDataset,
    location: str,
    branch: str | None,
    schema: LanceSchema,
    columns: Sequence[ComputedColumn],
    files: Sequence[ColumnFile],
    operation: str,
) -> Staged:
    """Stage the columns that a table is to have, with a file of computed values for each of its fragments."""
    numbers = column_ids(schema, {column.field.name for column in columns})
    made = {file.fragment: file.staged.fragment(numbers, str(handle.data_storage_version)) for file in files}
    with translated(handle.uri):
        fragments = []
        for fragment in handle.get_fragments():
            described = fragment.metadata.to_json()
            described["files"] += made[fragment.fragment_id].to_json()["files"]
            fragments.append(FragmentMetadata.from_json(json.dumps(described)))
        return staged_operation(handle, location, branch, LanceOperation.Merge(fragments, schema), operation)


def _schema(
    handle: LanceDataset, columns: Sequence[Column], made: LanceSchema, operation: str
) -> tuple[LanceSchema, dict[int, int]]:
    """The schema of the columns, and new numbers for the fields of the computed ones."""
    known = {tree.name: tree for tree in field_trees(made)}
    is_empty = not handle.get_fragments()
    first = _first_number(operation, _last_number(handle, known.values()))
    trees: list[FieldTree] = []
    renumbered: dict[int, int] = {}
    for column in columns:
        field = column.field
        if isinstance(column, KeptColumn):
            kept = known[column.name]  # nulls of deleted rows are still in the files
            trees.append(kept.renamed(field.name, nullable=field.nullable or kept.nullable))
            continue
        if isinstance(column, ComputedColumn) and _COMPUTED + field.name in known:
            old = known[_COMPUTED + field.name].renamed(field.name, nullable=True)  # deleted rows have nulls
            tree = old.numbered_from(first)
            renumbered |= dict(zip(old.ids, tree.ids, strict=True))
        else:
            has_deleted_rows = isinstance(column, ComputedColumn) and not is_empty
            stored = field.with_nullable(True) if has_deleted_rows else field
            (tree,) = new_field_trees(pa.schema([stored]), first)
        trees.append(tree)
        first = max(tree.ids) + 1
    return schema_of(handle.lance_schema, trees), renumbered


def _renumbered(fragment: FragmentMetadata, numbers: Mapping[int, int]) -> FragmentMetadata:
    """A fragment whose files know their columns by other numbers."""
    for file in fragment.files:
        file.fields = [numbers.get(number, number) for number in file.fields]
    return fragment


def _first_number(operation: str, last: int) -> int:
    """The number of the first new column, behind the last one that the table has.

    States are compared by these numbers, so no other column should have had one of them: neither one that another
    branch has added, nor one whose files are gone. Numbers are therefore left out, how many is up to chance.
    """
    drawn = int.from_bytes(hashlib.sha256(operation.encode()).digest()[:4])
    return last + 1 + drawn % max(1, (_LAST_NUMBER - last) // _CHANGES)


def _last_number(handle: LanceDataset, trees: Iterable[FieldTree]) -> int:
    """The highest number that a column has, or had in a file that is still part of the table."""
    files = (file for fragment in handle.get_fragments() for file in fragment.data_files())
    return max([*(number for file in files for number in file.fields), *(i for tree in trees for i in tree.ids)])
