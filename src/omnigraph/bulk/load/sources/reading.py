"""Reading the slices of files: blocks of records, whatever the format. Tasks of every engine read with this."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.bulk.load.sources.external import without_refused
from omnigraph.bulk.load.sources.opening import arrow_batches, opened
from omnigraph.bulk.load.sources.slices import Slice
from omnigraph.bulk.meters import note
from omnigraph.bulk.ranges import Lines, read_ranges, unpacked
from omnigraph.formats.columnar import numbered_ends, read_columns
from omnigraph.formats.delimited import Delimited, Piece, read_delimited, whole_records
from omnigraph.formats.format import Format
from omnigraph.formats.jsonl.blocks import Block, Unreadable, read_block
from omnigraph.formats.jsonl.flat import FlatForm, read_flat_block
from omnigraph.formats.jsonl.records import too_long
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.storage.external.sources import BlobSources

_BATCH_ROWS: Final = 50_000
_CHUNK_BYTES: Final = 8 << 20


def blocks_of(part: Slice, catalog: Catalog) -> Iterator[Block]:
    """The blocks of a slice, one after the other; a line that is too long is a block of its own."""
    match part.file.format:
        case Format.JSONL:
            yield from _line_blocks(part, catalog)
        case Format.PARQUET | Format.ARROW:
            yield from _batch_blocks(part, catalog)
        case _:
            yield from _delimited_blocks(part, catalog)


def lines_of(
    part: Slice, catalog: Catalog, tables: Collection[str], blobs: BlobSources
) -> dict[str, npt.NDArray[np.int64]]:
    """The lines, within the slice, of the records of some tables, in the order in which they are staged."""
    found: dict[str, list[npt.NDArray[np.int64]]] = {key: [] for key in tables}
    before = 0
    for block in (without_refused(each, blobs) for each in blocks_of(part, catalog)):
        for key in set(tables) & block.records.keys():
            found[key].append(block.records[key].lines + before)
        before += block.lines
    return {key: np.concatenate(lines) if lines else np.zeros(0, np.int64) for key, lines in found.items()}


def portions(part: Slice) -> Iterator[Lines]:
    """The lines of a slice of JSON Lines, in portions of the size that is read at a time."""
    file = part.file
    if file.compression is None:
        yield from read_ranges(file.name, file.options, part.start, part.stop)
    else:
        yield from unpacked(file.name, file.options, file.compression, part.read_bytes)


def pieces(part: Slice) -> Iterator[Piece]:
    """The whole records of a slice of CSV, as many at a time as are read at a time."""
    with opened(part.file) as stream:
        yield from whole_records(_chunks(part, stream), part.file.dialect, part.file.name)


def _line_blocks(part: Slice, catalog: Catalog) -> Iterator[Block]:
    file, form = part.file, None
    if file.table_key is not None:
        entity = catalog.entity(file.table_key)
        form = FlatForm(entity, file.columns, numbered_ends(catalog, entity), file.ignores_others)
    for lines in portions(part):
        yield read_block(lines.data, catalog) if form is None else read_flat_block(lines.data, form)
        if lines.overlong is not None:
            yield Block({}, [Unreadable(1, 1, too_long(lines.overlong))], 1)


def _batch_blocks(part: Slice, catalog: Catalog) -> Iterator[Block]:
    file = part.file
    assert file.table_key is not None  # noqa: S101  such files get their type when they are found
    entity = catalog.entity(file.table_key)
    numbered = numbered_ends(catalog, entity)
    for batch in _batches(part):
        arranged = pa.RecordBatch.from_pydict({name: batch[column] for name, column in file.columns.items()})
        yield read_columns(entity, arranged, numbered)


def _batches(part: Slice) -> Iterator[pa.RecordBatch]:
    file = part.file
    wanted = list(dict.fromkeys(file.columns.values()))
    if file.format is Format.ARROW:
        with arrow_batches(file, part.start, part.stop) as batches:
            for batch in batches:
                if missing := [name for name in wanted if name not in batch.schema.names]:
                    raise pa.ArrowInvalid(f"a batch lacks the column '{missing[0]}' that the file says it has")
                yield batch
        return
    with opened(file) as stream:
        groups = list(range(part.start, part.stop))
        yield from pq.ParquetFile(stream).iter_batches(batch_size=_BATCH_ROWS, row_groups=groups, columns=wanted)


def _delimited_blocks(part: Slice, catalog: Catalog) -> Iterator[Block]:
    file = part.file
    assert file.table_key is not None  # noqa: S101  such files get their type when they are found
    form = Delimited(catalog.entity(file.table_key), file.dialect, file.names, file.columns)
    has_header = file.dialect.names is None and part.start == 0
    yield from read_delimited(pieces(part), form, has_header=has_header)


def _chunks(part: Slice, stream: pa.NativeFile) -> Iterator[bytes]:
    """The bytes of a slice of text, or of a whole packed file, a few at a time."""
    is_packed = part.file.compression is not None
    if part.start:
        stream.seek(part.start)
    left = part.stop - part.start
    while is_packed or left > 0:
        chunk = stream.read(_CHUNK_BYTES if is_packed else min(left, _CHUNK_BYTES))
        if not chunk:
            return
        yield chunk
        if not is_packed:
            note(size=len(chunk))
            left -= len(chunk)
