"""Opening the files of a load, packed or not, and what they say about themselves before their rows are read."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.bulk.load.sources.files import SourceFile
from omnigraph.bulk.ranges import open_file
from omnigraph.errors import OmniError, SourceUnusable
from omnigraph.formats.cells import NOT_UTF8
from omnigraph.formats.delimited import header_of
from omnigraph.formats.format import Format

_MAGIC: Final = b"ARROW1\0\0"
"""How a file of Arrow begins that is not a bare stream; a stream follows."""
_HEADER_BYTES: Final = 1 << 20


@contextmanager
def opened(file: SourceFile) -> Iterator[pa.NativeFile]:
    """A file, unpacked while it is read. SourceUnusable if it cannot be read as what it is."""
    with open_file(file.name, file.options) as raw:
        try:
            if file.compression is None:
                yield raw
            elif file.format is Format.PARQUET:
                with _unpacked(raw, file.compression) as whole:
                    yield whole
            else:
                yield pa.CompressedInputStream(raw, file.compression)
        except OmniError:
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            packed = f" packed with {file.compression}" if file.compression else ""
            reason = f"it cannot be read as {_TITLES[file.format]}{packed}: {error}"
            raise SourceUnusable(file.name, reason) from error


_TITLES: Final = {
    Format.JSONL: "JSON Lines",
    Format.CSV: "CSV",
    Format.TSV: "TSV",
    Format.PARQUET: "Parquet",
    Format.ARROW: "Arrow IPC",
}


@contextmanager
def _unpacked(raw: pa.NativeFile, compression: str) -> Iterator[pa.NativeFile]:
    """A packed file on this machine's disk, for formats that are not read from their beginning to their end."""
    with tempfile.TemporaryFile() as whole:
        shutil.copyfileobj(pa.CompressedInputStream(raw, compression), whole)
        whole.seek(0)
        yield pa.PythonFile(whole, mode="r")


@contextmanager
def arrow_stream(file: SourceFile) -> Iterator[pa.RecordBatchReader]:
    """The batches of an Arrow file from its beginning to its end, whether it is a bare stream or not."""
    with opened(file) as stream:
        is_bare = stream.read(len(_MAGIC)) != _MAGIC
    with opened(file) as stream:
        if not is_bare:
            stream.read(len(_MAGIC))
        yield pa.ipc.open_stream(stream)


@contextmanager
def arrow_batches(file: SourceFile, start: int, stop: int) -> Iterator[Iterator[pa.RecordBatch]]:
    """Some batches of an Arrow file; with ``stop`` 0 all of a stream."""
    if not stop:
        with arrow_stream(file) as reader:
            yield map(_undamaged, reader)
        return
    with opened(file) as stream:
        random = pa.ipc.open_file(stream)
        yield (_undamaged(random.get_batch(number)) for number in range(start, stop))


def _undamaged(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of a file; ArrowInvalid if its parts do not fit each other. Texts that are not UTF-8 are told of
    row by row, where rows become records."""
    for column in batch.columns:
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            if NOT_UTF8 not in str(error):
                raise
    return batch


def batch_count(file: SourceFile) -> int:
    """How many batches an Arrow file has that can be read one by one; 0 for a stream."""
    if file.compression is not None:
        return 0
    with opened(file) as stream:
        if stream.read(len(_MAGIC)) != _MAGIC:
            return 0
        return int(pa.ipc.open_file(stream).num_record_batches)


def row_group_sizes(file: SourceFile) -> list[int]:
    """The sizes of the row groups of a Parquet file, unpacked."""
    with opened(file) as stream:
        metadata = pq.ParquetFile(stream).metadata
        return [metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups)]


def schema_of(file: SourceFile) -> pa.Schema:
    """The columns of a Parquet or Arrow file."""
    if file.format is Format.ARROW:
        with arrow_stream(file) as reader:
            return reader.schema
    with opened(file) as stream:
        return pq.ParquetFile(stream).schema_arrow


def column_names(file: SourceFile) -> tuple[str, ...]:
    """The names of the columns of a file; of JSON Lines, the members of the first record."""
    if file.format in (Format.PARQUET, Format.ARROW):
        return tuple(schema_of(file).names)
    with opened(file) as stream:
        beginning = stream.read(_HEADER_BYTES)
    if file.format.is_delimited:
        whole = beginning.rfind(b"\n") + 1
        return header_of(beginning[:whole] if whole else beginning, file.dialect, file.name)
    for line in beginning.splitlines():
        if line.strip() and not line.lstrip().startswith(b"//"):
            return _members(line)
    return ()


def _members(line: bytes) -> tuple[str, ...]:
    """The members of an object; none if the line is not one, which is said when it is read."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return ()
    return tuple(found) if isinstance(found, dict) else ()
