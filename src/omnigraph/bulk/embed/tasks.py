"""What workers do to fill vectors: rows of a piece into files with them, and away with the rows as they were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.embed.requests import Counts, EmbedTarget
from omnigraph.bulk.pieces import Piece
from omnigraph.bulk.runner import Done
from omnigraph.bulk.scratch import MatchFile, packed_mask, unpacked_mask, write_matches
from omnigraph.embed.cache import CachedClient, VectorCache
from omnigraph.embed.client import EmbeddingClient
from omnigraph.storage.files.datafiles import (
    ROWS_PER_FILE,
    Destination,
    StagedFile,
    read_file,
    row_id_text,
    write_file,
)

_ROWS_AT_ONCE: Final = 4096
_FILE_BYTES: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class EmbeddedFile:
    """A staged file, and which of its vectors were computed: a packed mask per property."""

    staged: StagedFile
    computed: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class PieceFiles:
    """What became of a piece: counts, files, and the rows they replace; None if there are none."""

    counts: Counts
    files: tuple[EmbeddedFile, ...] = ()
    matches: MatchFile | None = None


@dataclass(frozen=True, slots=True)
class Embedding:
    """One piece of a table that is to get vectors. ``known`` are files that an earlier round of the job wrote."""

    piece: Piece
    target: EmbedTarget
    place: Destination
    job: str
    client: EmbeddingClient
    known: tuple[EmbeddedFile, ...] = ()


def embed_piece(task: Embedding) -> Done:
    """Write the rows of a piece that want vectors, with them."""
    target, piece = task.target, task.piece
    counts = target.count(piece.batches(target.columns))
    if not any(count.embedded for count in counts.values()):
        return Done(PieceFiles(counts), rows=piece.rows)
    client = CachedClient(task.client, _known(task)) if task.known else task.client
    files: list[EmbeddedFile] = []
    replaced: list[pa.Table] = []
    for rows in _filled(task, client):
        file, pairs = _written(task, rows)
        files.append(file)
        replaced.append(pairs)
    name = f"embedded-{piece.table_key.replace(':', '-')}-{piece.fragments[0]}"
    matches = write_matches(piece.snapshot.address, task.job, name, pa.concat_tables(replaced))
    return Done(PieceFiles(counts, tuple(files), matches), rows=piece.rows)


def _filled(task: Embedding, client: EmbeddingClient) -> Iterator[pa.Table]:
    """The rows that want vectors, with them, marked where they were computed, in tables of the size of files."""
    target = task.target
    held: list[pa.Table] = []
    for rows in _portions(task):
        marks = {f"computed:{name}": target.wanted(rows, name) for name in target.properties}
        filled = target.fill(rows, client)
        for mark, where in marks.items():
            filled = filled.append_column(mark, where)
        held.append(filled)
        if (
            sum(part.num_rows for part in held) >= ROWS_PER_FILE
            or sum(part.nbytes for part in held) >= _FILE_BYTES
        ):
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _portions(task: Embedding) -> Iterator[pa.Table]:
    """The rows that want vectors, as many at a time as make full requests."""
    held: list[pa.RecordBatch] = []
    columns = task.place.schema.names
    for batch in task.piece.batches(
        columns, task.target.where, row_ids=True, row_addresses=True, batch_rows=_ROWS_AT_ONCE
    ):
        held.append(batch)
        if sum(part.num_rows for part in held) >= _ROWS_AT_ONCE:
            yield pa.Table.from_batches(held)
            held = []
    if any(part.num_rows for part in held):
        yield pa.Table.from_batches(held)


def _written(task: Embedding, rows: pa.Table) -> tuple[EmbeddedFile, pa.Table]:
    """One file, and which rows it replaces."""
    name, size = write_file(task.place, task.job, rows.select(task.place.schema.names))
    row_ids = row_id_text(rows["_rowid"].to_pylist())
    staged = StagedFile(task.piece.table_key, name, rows.num_rows, size, row_ids=row_ids)
    computed = {
        prop: packed_mask(rows[f"computed:{prop}"].to_numpy().astype(bool)) for prop in task.target.properties
    }
    pairs = {
        "file": pa.array([name] * rows.num_rows, pa.string()),
        "row": np.arange(rows.num_rows),
        "row_id": rows["_rowid"],
        "row_address": rows["_rowaddr"],
    }
    return EmbeddedFile(staged, computed), pa.table(pairs)


def _known(task: Embedding) -> VectorCache:
    """The vectors that an earlier round computed, by text."""
    known: VectorCache = {}
    for file in task.known:
        for name, packed in file.computed.items():
            source = task.target.node.embeds[name].source
            dimension = task.target.node.properties[name].type.dimension or 0
            rows = read_file(task.place, file.staged.name, [source, name])
            mask = unpacked_mask(packed, file.staged.rows)
            chosen = rows.filter(pa.array(mask))
            flat = pc.list_flatten(chosen[name]).to_numpy().reshape(-1, dimension)
            known.update(zip(((text, dimension) for text in chosen[source].to_pylist()), flat, strict=True))
    return known
