"""What tasks leave on the store for the driver to commit: data files that no table refers to yet.

Files carry the job's name in theirs, or are noted under it, so that whatever a failed attempt leaves can be told
from the work of others. A task that outlives its job finds the job's record gone, and takes its file back.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from lance import FragmentMetadata
from lance.file import LanceFileReader, LanceFileWriter
from lance.fragment import RowIdSequence, write_fragments

from omnigraph.errors import IncompleteFile, JobFailed
from omnigraph.records import dataclass
from omnigraph.storage import layout
from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.files.checksums import name_by_content
from omnigraph.storage.files.durability import sync_files
from omnigraph.storage.files.staged import settle_data
from omnigraph.storage.objects import ObjectStore, open_objects
from omnigraph.storage.unavailable import translated

_DATA: Final = "data"
_BATCH_ROWS: Final = 1 << 14
"""How many rows are read at a time: with fewer, whatever is done with a batch costs more than its rows."""

_CACHE_BYTES: Final = 2 << 20
"""How much of a file on a disk Lance holds before it writes pages; as much as its default takes three times the
memory of the rows. On an object store larger pages mean fewer requests."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the files of one table go: the folder of its trunk or of a native branch, and how they are written."""

    table_key: str
    address: Address
    folder: str
    schema: pa.Schema
    version: str

    @property
    def options(self) -> Mapping[str, str]:
        return self.address.options

    @property
    def has_blobs(self) -> bool:
        return has_blobs(self.schema)

    def path(self, name: str) -> str:
        """The address of one of its files."""
        return f"{self.folder}/{_DATA}/{name}"

    def key(self, name: str) -> str:
        """One of its files among the objects of the graph."""
        return self.path(name).removeprefix(f"{self.address.lance_root}/")


@dataclass(frozen=True, slots=True)
class StagedFile:
    """One data file that waits to be committed.

    ``slice`` says which slice of the input its rows come from, and ``first`` how many rows of the type that slice
    had before them. ``key_bytes`` is the memory of its widest key column; ``explicit_ids`` says that some rows
    brought their ids. ``row_ids`` are those of committed rows that its first rows replace, as Lance writes them.
    """

    table_key: str
    name: str
    rows: int
    size: int
    slice: int = 0
    first: int = 0
    key_bytes: int = 0
    explicit_ids: bool = True
    row_ids: str | None = None

    def fragment(self, field_ids: Sequence[int], version: str) -> FragmentMetadata:
        """The file as Lance refers to it from a table with these fields."""
        major, minor = (int(part) for part in version.split("."))
        described: dict[str, Any] = {
            "id": 0,
            "files": [
                {
                    "path": self.name,
                    "fields": list(field_ids),
                    "column_indices": list(range(len(field_ids))),
                    "file_major_version": major,
                    "file_minor_version": minor,
                    "file_size_bytes": self.size or None,
                    "base_id": None,
                }
            ],
            "physical_rows": self.rows,
            "deletion_file": None,
            "row_id_meta": None if self.row_ids is None else json.loads(self.row_ids),
        }
        return FragmentMetadata.from_json(json.dumps(described))


def compressed(target: Destination, column: str, scheme: str) -> Destination:
    """The destination with a column that is compressed in another way than Lance would choose, or not at all."""
    index = target.schema.get_field_index(column)
    changed = target.schema.field(index).with_metadata({"lance-encoding:compression": scheme})
    return replace(target, schema=target.schema.set(index, changed))


def write_file(target: Destination, job: str, rows: pa.Table) -> tuple[str, int]:
    """Write rows as one data file; its name and size. JobFailed if the job is over by then; no file is left."""
    fitting, objects = rows.cast(target.schema), open_objects(target.address)
    with translated(target.folder):
        name, size = _write_with_blobs(target, fitting) if target.has_blobs else _write(target, job, fitting)
    note = layout.job_note(job, target.key(name))
    if target.has_blobs:
        objects.put(note, b"")
    if not objects.has(layout.job_record(job)):
        remove_file(objects, target.key(name), has_blobs=target.has_blobs)
        objects.delete(note)
        raise JobFailed(job, "staging", "the job was over before this task was")
    return name, size


def _write(target: Destination, job: str, rows: pa.Table) -> tuple[str, int]:
    """Write a file. A bucket shows whole objects only; on a disk Lance leaves drafts with names of their own where
    it is killed, so it writes to the job's folder, and a file is moved to its table when it is whole."""
    name = f"{job}-{uuid.uuid4().hex}.lance"
    if target.address.scheme is not Scheme.LOCAL:
        _write_to(target.path(name), target, rows)
        return name, 0
    draft = Path(target.address.root, layout.job_draft(job, name))
    draft.parent.mkdir(parents=True)
    try:
        _write_to(str(draft), target, rows)
        whole = _require_rows(Path(name_by_content(str(draft), None)), rows.num_rows)
        folder = Path(target.folder, _DATA)
        folder.mkdir(parents=True, exist_ok=True)
        settled = whole.rename(folder / whole.name)
        sync_files([settled], Path(target.address.root))
        return settled.name, settled.stat().st_size
    finally:
        shutil.rmtree(draft.parent, ignore_errors=True)


def _write_to(path: str, target: Destination, rows: pa.Table) -> None:
    options = dict(target.options) or None
    cache = _CACHE_BYTES if target.address.scheme is Scheme.LOCAL else None
    with LanceFileWriter(
        path, target.schema, data_cache_bytes=cache, version=target.version, storage_options=options
    ) as writer:
        for batch in rows.to_batches():
            writer.write_batch(batch)


def _require_rows(path: Path, rows: int) -> Path:
    """Raise IncompleteFile unless a file on the disk can be read back, and says that it has so many rows."""
    try:
        found = LanceFileReader(str(path)).num_rows()
    except (OSError, ValueError):
        found = -1
    if found != rows:
        raise IncompleteFile(str(path), None, path.stat().st_size)
    return path


def remove_file(objects: ObjectStore, key: str, *, has_blobs: bool) -> None:
    """Remove a data file, and the blobs that lie beside it."""
    objects.delete(key)
    if has_blobs:
        objects.delete_prefix(key.removesuffix(".lance"))


def _write_with_blobs(target: Destination, rows: pa.Table) -> tuple[str, int]:
    """Blobs have files of their own beside the rows, which only Lance itself arranges; so it chooses the name."""
    (fragment,) = write_fragments(
        rows,
        target.folder,
        schema=target.schema,
        mode="overwrite",
        max_rows_per_file=rows.num_rows,
        data_storage_version=target.version,
        storage_options=dict(target.options) or None,
    )
    settle_data(target.folder, [fragment])
    file = fragment.files[0]
    return file.path, file.file_size_bytes or 0


def read_file(target: Destination, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Rows of a data file, or some of its columns."""
    with translated(target.folder):
        reader = LanceFileReader(
            target.path(name),
            storage_options=dict(target.options) or None,
            columns=None if columns is None else list(columns),
        )
        return reader.read_all(batch_size=_BATCH_ROWS).to_table()


def row_id_text(row_ids: Sequence[int]) -> str:
    """Row ids in the form in which a staged file carries them."""
    empty = FragmentMetadata(0, [], 0)
    empty.row_id_meta = RowIdSequence(list(row_ids)).to_inline_metadata()
    return json.dumps(empty.to_json()["row_id_meta"])


def column_ids(schema: Any, names: Container[str] | None = None) -> list[int]:
    """The ids of the fields that a data file with all columns of a table, or with some, has columns for."""
    return _leaves([column for column in schema.fields() if names is None or column.name() in names])


def _leaves(fields: Sequence[Any]) -> list[int]:
    ids: list[int] = []
    for column in fields:
        children = column.children()
        is_blob = len(children) > 1
        ids += [column.id()] if is_blob or not children else _leaves(children)
    return ids


def has_blobs(schema: pa.Schema) -> bool:
    """Does a table have columns of blobs?"""
    return any(_is_blob(column) for column in schema)


def _is_blob(column: pa.Field) -> bool:
    return pa.types.is_struct(column.type) or isinstance(column.type, pa.ExtensionType)
