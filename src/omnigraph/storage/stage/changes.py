"""Staging: writing a change of one table as files and a transaction that is not committed yet.

Every function here leaves the table as it was. A change that is never committed is a few unreferenced files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import FragmentMetadata, RowIdSequence, write_fragments

from omnigraph.records import dataclass
from omnigraph.storage.files.names import name_of
from omnigraph.storage.files.staged import deletion_name, settle_data, settle_deletions
from omnigraph.storage.stage.lookups import PROBE_LIMIT, locate_rows
from omnigraph.storage.together import in_shares
from omnigraph.storage.unavailable import translated

ROWS_PER_FILE: Final = 100_000
"""How many rows one data file has. The cost of a later commit grows with the rows of the fragments it changes."""

OPERATION_PROPERTY: Final = "omnigraph:operation"


@dataclass(frozen=True, slots=True)
class Staged:
    """A change of one table, ready to be committed on top of ``read_version``."""

    location: str
    branch: str | None
    read_version: int
    transaction: Transaction

    @property
    def transaction_id(self) -> str:
        """The id by which the committed version can be recognised as this change."""
        return str(self.transaction.uuid)


@dataclass(frozen=True, slots=True)
class StagedChanges:
    """A staged mixture of inserts, updates and deletes, and how many of each there are.

    ``written`` has the rows of its new files, in their order.
    """

    staged: Staged
    written: pa.Table
    inserted: int
    updated: int
    deleted: int


def stage_append(
    handle: LanceDataset,
    location: str,
    branch: str | None,
    rows: pa.Table,
    operation: str,
    rows_per_file: int = ROWS_PER_FILE,
) -> Staged:
    """Stage rows that are known to be new."""
    with translated(handle.uri):
        fragments = _write(handle, rows, rows_per_file)
    return staged_operation(handle, location, branch, LanceOperation.Append(fragments), operation)


def stage_appends(
    handle: LanceDataset, location: str, branch: str | None, parts: Sequence[tuple[pa.Table, str]]
) -> list[Staged]:
    """Stage rows that are known to be new as several changes, each with the id of its operation.

    Their files are brought to the disk together.
    """
    with translated(handle.uri):
        written = _write_apart(handle, [rows for rows, _ in parts], "append")
        settle_data(handle.uri, [fragment for fragments in written for fragment in fragments])
    return [
        staged_operation(handle, location, branch, LanceOperation.Append(fragments), operation)
        for fragments, (_, operation) in zip(written, parts, strict=True)
    ]


def _write_apart(handle: LanceDataset, parts: Sequence[pa.Table], mode: str) -> list[list[FragmentMetadata]]:
    """The fragments of several tables of rows, none of which shares a file with another.

    Lance begins a file whenever one has as many rows as it may have, so tables of the same length are one call.
    Those of different lengths are written by a few threads.
    """
    rows = parts[0].num_rows
    if any(part.num_rows != rows for part in parts):
        return [[*each] for each in in_shares(lambda part: write_fragments(part, handle, mode=mode), parts)]
    together = write_fragments(pa.concat_tables(parts), handle, mode=mode, max_rows_per_file=rows)
    assert [each.physical_rows for each in together] == [rows] * len(parts)  # noqa: S101  what it was asked for
    return [[each] for each in together]


def stage_overwrite(
    handle: LanceDataset,
    location: str,
    branch: str | None,
    rows: pa.Table,
    operation: str,
    rows_per_file: int = ROWS_PER_FILE,
) -> Staged:
    """Stage a whole new content, which may be empty."""
    if not rows.num_rows:
        return staged_operation(handle, location, branch, LanceOperation.Overwrite(rows.schema, []), operation)
    with translated(handle.uri):
        transaction = write_fragments(
            rows,
            handle,
            schema=rows.schema,
            mode="overwrite",
            return_transaction=True,
            max_rows_per_file=rows_per_file,
        )
        overwrite = cast("LanceOperation.Overwrite", transaction.operation)
        settle_data(handle.uri, overwrite.fragments)
    return staged_operation(handle, location, branch, overwrite, operation)


def stage_overwrites(
    handle: LanceDataset, location: str, branch: str | None, contents: Sequence[pa.Table], operation: str
) -> list[Staged]:
    """Stage several whole new contents of the same columns, with a row at least, of which one will follow the
    other. Their files are brought to the disk together."""

    with translated(handle.uri):
        written = _write_apart(handle, contents, "overwrite")
        settle_data(handle.uri, [fragment for fragments in written for fragment in fragments])
    return [
        staged_operation(handle, location, branch, LanceOperation.Overwrite(rows.schema, fragments), operation)
        for rows, fragments in zip(contents, written, strict=True)
    ]


def at_version(change: Staged, schema: pa.Schema, version: int) -> Staged:
    """A staged whole content, with the metadata of a schema, on top of a version that may not be there yet."""
    operation = LanceOperation.Overwrite(schema, new_fragments(change))
    transaction = replace(change.transaction, read_version=version, operation=operation)
    return replace(change, read_version=version, transaction=transaction)


def stage_first_rows(uri: str, rows: pa.Table, options: dict[str, str] | None) -> LanceOperation.Overwrite:
    """Stage the first rows of a table that does not exist yet."""
    fragments = write_fragments(rows, uri, schema=rows.schema, mode="create", storage_options=options)
    settle_data(uri, fragments)
    return LanceOperation.Overwrite(rows.schema, fragments)


def stage_changes(
    handle: LanceDataset,
    location: str,
    branch: str | None,
    upserts: pa.Table,
    deletes: pa.Array,
    operation: str,
    rows_per_file: int = ROWS_PER_FILE,
    probe_limit: int = PROBE_LIMIT,
    located: Mapping[str, pa.Array] | None = None,
) -> StagedChanges:
    """Stage inserts, updates and deletes in one transaction. Ids must be unique across both inputs.

    Rows with a known id replace it and keep its row id, so that `delta` sees an update. Deleting an id that is
    not there does nothing. ``located`` says where the rows with these ids are, as `locate_rows` does, if the
    caller has found out already.
    """
    upsert_ids = _one_chunk(upserts.column("id"))
    ids = pa.concat_arrays([upsert_ids, deletes.cast(upsert_ids.type)])
    if pc.count_distinct(ids).as_py() != len(ids):
        raise ValueError("an id is changed twice in one change")
    with translated(handle.uri):
        touched = locate_rows(handle, ids, probe_limit) if located is None else located
        position = pc.index_in(upsert_ids, value_set=touched["id"])
        known = pc.is_valid(position)
        changed, fresh = upserts.filter(known), upserts.filter(pc.invert(known))
        written = pa.concat_tables([changed, fresh])
        fragments = _write(handle, written, rows_per_file)
        _keep_row_ids(fragments, touched["row_id"].take(position.drop_null()))
        removed, rewritten = _delete_rows(handle, touched["row_address"])
    return StagedChanges(
        staged_operation(handle, location, branch, _update(handle, removed, rewritten, fragments), operation),
        written,
        inserted=fresh.num_rows,
        updated=changed.num_rows,
        deleted=len(touched["id"]) - changed.num_rows,
    )


def stage_appended_files(
    handle: LanceDataset, location: str, branch: str | None, fragments: list[FragmentMetadata], operation: str
) -> Staged:
    """Stage data files that are written already, of rows that are known to be new."""
    return staged_operation(handle, location, branch, LanceOperation.Append(fragments), operation)


def stage_replacing_files(
    handle: LanceDataset,
    location: str,
    branch: str | None,
    schema: pa.Schema,
    fragments: list[FragmentMetadata],
    operation: str,
) -> Staged:
    """Stage data files that are written already as the whole new content."""
    return staged_operation(handle, location, branch, LanceOperation.Overwrite(schema, fragments), operation)


def stage_changed_files(
    handle: LanceDataset,
    location: str,
    branch: str | None,
    shrunk: Shrunk,
    new: list[FragmentMetadata],
    operation: str,
) -> Staged:
    """Stage data files that are written already together with the rows they replace: whole fragments and parts."""
    rewritten = [FragmentMetadata.from_json(text) for text in shrunk.rewritten]
    update = _update(handle, list(shrunk.removed), rewritten, new)
    return staged_operation(handle, location, branch, update, operation)


@dataclass(frozen=True, slots=True)
class Shrunk:
    """Fragments that lose rows: those that vanish, and those that get a deletion vector, as Lance writes them."""

    removed: tuple[int, ...]
    rewritten: tuple[str, ...]

    @classmethod
    def together(cls, parts: Iterable[Shrunk]) -> Shrunk:
        """What several tasks found, each about fragments of its own."""
        every = list(parts)
        return cls(
            tuple(number for part in every for number in part.removed),
            tuple(text for part in every for text in part.rewritten),
        )


def delete_rows(handle: LanceDataset, addresses: pa.Array) -> Shrunk:
    """Write deletion vectors for the rows at these addresses; the table stays as it is."""
    with translated(handle.uri):
        removed, rewritten = _delete_rows(handle, addresses)
    return Shrunk(tuple(removed), tuple(json.dumps(fragment.to_json()) for fragment in rewritten))


def field_ids(handle: LanceDataset) -> list[int]:
    """The ids of all fields, children included: what an update must name so that indexes skip the new rows."""
    ids: list[int] = []
    pending = list(handle.lance_schema.fields())
    while pending:
        field = pending.pop()
        ids.append(field.id())
        pending.extend(field.children())
    return sorted(ids)


def staged_operation(
    handle: LanceDataset, location: str, branch: str | None, operation: LanceOperation.BaseOperation, owner: str
) -> Staged:
    """An operation of Lance as a staged change, with the id of the operation of ours that it belongs to."""
    transaction = Transaction(
        read_version=handle.version, operation=operation, transaction_properties={OPERATION_PROPERTY: owner}
    )
    return Staged(location, branch, handle.version, transaction)


def following(change: Staged, operation: LanceOperation.BaseOperation, owner: str) -> Staged:
    """An operation of Lance as a change that is committed right after another one of the same table."""
    version = change.read_version + 1
    transaction = Transaction(
        read_version=version, operation=operation, transaction_properties={OPERATION_PROPERTY: owner}
    )
    return Staged(change.location, change.branch, version, transaction)


def shrunk_fragments(change: Staged) -> dict[int, FragmentMetadata | None] | None:
    """The fragments that a staged change of rows takes rows from, as they are afterwards; None in place of one of
    which no row is left. None altogether if it is not a change of rows."""
    match change.transaction.operation:
        case LanceOperation.Append():
            return {}
        case LanceOperation.Update() as update:
            gone: dict[int, FragmentMetadata | None] = dict.fromkeys(update.removed_fragment_ids)
            return gone | {fragment.id: fragment for fragment in update.updated_fragments}
        case _:
            return None


def new_fragments(change: Staged) -> list[FragmentMetadata]:
    """The fragments that a staged change of rows adds."""
    match change.transaction.operation:
        case LanceOperation.Append(fragments) | LanceOperation.Overwrite(fragments=fragments):
            return list(fragments)
        case LanceOperation.Update() as update:
            return list(update.new_fragments)
        case _:
            return []


def new_data_files(change: Staged) -> list[str]:
    """The names of the data files that a staged change of rows adds."""
    return [name_of(file) for fragment in new_fragments(change) for file in fragment.files]


def new_deletion_files(change: Staged) -> list[str]:
    """The names of the deletion files that a staged change of rows adds."""
    shrunk = (each.to_json() for each in (shrunk_fragments(change) or {}).values() if each is not None)
    return [deletion_name(each["id"], each["deletion_file"]) for each in shrunk]


def _update(
    handle: LanceDataset, removed: list[int], rewritten: list[FragmentMetadata], new: list[FragmentMetadata]
) -> LanceOperation.Update:
    return LanceOperation.Update(
        removed_fragment_ids=removed,
        updated_fragments=rewritten,
        new_fragments=new,
        fields_modified=[],
        fields_for_preserving_frag_bitmap=field_ids(handle),
        update_mode="rewrite_rows",
    )


def _write(handle: LanceDataset, rows: pa.Table, rows_per_file: int) -> list[FragmentMetadata]:
    if not rows.num_rows:
        return []
    fragments = list(write_fragments(rows, handle, mode="append", max_rows_per_file=rows_per_file))
    settle_data(handle.uri, fragments)
    return fragments


def _keep_row_ids(fragments: list[FragmentMetadata], row_ids: pa.Array) -> None:
    """Give the leading rows of the new files the row ids they had."""
    start = 0
    for fragment in fragments:
        mine = row_ids.slice(start, fragment.physical_rows)
        if not len(mine):
            return
        fragment.row_id_meta = RowIdSequence(mine.to_pylist()).to_inline_metadata()
        start += fragment.physical_rows


def _delete_rows(handle: LanceDataset, addresses: pa.Array) -> tuple[list[int], list[FragmentMetadata]]:
    """Deletion vectors for the rows at these addresses: fragments that vanish, and fragments that shrink."""
    where = addresses.to_numpy(zero_copy_only=False).astype(np.uint64)
    owners, offsets = where >> np.uint64(32), where & np.uint64(0xFFFFFFFF)
    removed: list[int] = []
    rewritten: list[FragmentMetadata] = []
    for owner in np.unique(owners):
        fragment = handle.get_fragment(int(owner))
        assert fragment is not None  # noqa: S101  the row was just read from it
        shrunk = fragment.delete_rows(offsets[owners == owner].tolist())
        if shrunk is None:
            removed.append(int(owner))
        else:
            rewritten.append(shrunk)
    return removed, settle_deletions(handle.uri, rewritten)


def _one_chunk(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    return values
