"""Changing the columns of a table: renaming, dropping, adding and computing them, staged as one version.

Columns that are renamed, dropped, or new and empty cost nothing but the table's manifest. A column that is
computed gets files of its own beside those of the others, which stay as they are: `stage_columns` writes them one
after the other, and `stage_column_files` takes files that the tasks of a bulk job have written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata, LanceFragment
from lance.schema import LanceSchema

from omnigraph.storage.fields import FieldTree, field_trees, new_field_trees, schema_of
from omnigraph.storage.files.datafiles import StagedFile, column_ids
from omnigraph.storage.files.staged import settle_new_files
from omnigraph.storage.staging import Staged, staged_operation
from omnigraph.storage.unavailable import translated

Compute = Callable[[pa.RecordBatch], pa.Array]
_COMPUTED: Final = "omnigraph computed "
"""What the names of computed columns begin with until the old columns are gone; no property has such a name."""


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
        computed = [column for column in columns if isinstance(column, ComputedColumn)]
        fragments = [_computed(handle, fragment, computed) for fragment in handle.get_fragments()]
        schema, is_new = _schema(handle, branch, columns, fragments[-1][1] if fragments else handle.lance_schema)
        if not is_new:
            return staged_operation(handle, location, branch, LanceOperation.Project(schema), operation)
        before = [fragment.metadata for fragment in handle.get_fragments()]
        settle_new_files(handle.uri, zip(before, [new for new, _ in fragments], strict=True))
        merge = LanceOperation.Merge([new for new, _ in fragments], schema)
        return staged_operation(handle, location, branch, merge, operation)


def _computed(
    handle: LanceDataset, fragment: LanceFragment, columns: Sequence[ComputedColumn]
) -> tuple[FragmentMetadata, LanceSchema]:
    """A fragment with a file for its computed columns, and the table's schema with their temporary names."""
    if not columns:
        return fragment.metadata, handle.lance_schema

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        fields = [column.field.with_name(_COMPUTED + column.field.name).with_nullable(True) for column in columns]
        values = [column.compute(batch) for column in columns]
        return pa.RecordBatch.from_arrays(values, schema=pa.schema(fields))

    made: tuple[FragmentMetadata, LanceSchema] = fragment.merge_columns(compute, columns=_needed(columns))
    return made


def _needed(columns: Sequence[ComputedColumn]) -> list[str]:
    """The columns that have to be read to compute others; one at least, which has the rows."""
    return sorted({name for column in columns for name in column.needs}) or ["id"]


@dataclass(frozen=True, slots=True)
class ColumnFile:
    """A data file with the computed columns of one fragment."""

    fragment: int
    staged: StagedFile


def changed_schema(handle: LanceDataset, branch: str | None, columns: Sequence[Column]) -> LanceSchema:
    """The schema of a table with other columns. New ones have numbers by which files can refer to them."""
    return _schema(handle, branch, columns, handle.lance_schema)[0]


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
    handle: LanceDataset, branch: str | None, columns: Sequence[Column], filled: LanceSchema
) -> tuple[LanceSchema, bool]:
    """The schema of the new columns, and whether one of them was not there before."""
    known = {tree.name: tree for tree in field_trees(filled)}
    last = max([_last_field(handle), *(tree.last_id for tree in known.values())]) + _apart(branch)
    trees: list[FieldTree] = []
    is_new = False
    for column in columns:
        field = column.field
        match column:
            case KeptColumn(name):
                trees.append(known[name].renamed(field.name, nullable=field.nullable))
            case ComputedColumn() if _COMPUTED + field.name in known:
                trees.append(known[_COMPUTED + field.name].renamed(field.name, nullable=field.nullable))
                is_new = True
            case _:
                (tree,) = new_field_trees(pa.schema([field]), last + 1)
                trees.append(tree)
                last, is_new = tree.last_id, True
    return schema_of(handle.lance_schema, trees), is_new


def _apart(branch: str | None) -> int:
    """How far the numbers of new columns on a branch are from those of the trunk, so that two branches which add
    columns do not use the same number for different ones."""
    return 0 if branch is None else int.from_bytes(hashlib.sha256(branch.encode()).digest()[:2]) * 16


def _last_field(handle: LanceDataset) -> int:
    """The highest id that a column of the table ever had in a file that is still part of it."""
    files = (file for fragment in handle.get_fragments() for file in fragment.data_files())
    return max((number for file in files for number in file.fields), default=-1)
