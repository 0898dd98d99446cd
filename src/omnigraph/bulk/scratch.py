"""What the passes of a load tell each other: which staged rows are not to be loaded, and which replace what.

Masks of dropped rows take a bit per row of the files concerned and travel with the tasks. Pairs of staged and
committed rows take more, so they are written next to the graph and removed with the job.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage import layout
from omnigraph.storage.address import Address
from omnigraph.storage.files.datafiles import StagedFile
from omnigraph.storage.objects import open_objects

MATCHES: Final = pa.schema(
    [
        pa.field("file", pa.string()),
        pa.field("row", pa.int64()),
        pa.field("row_id", pa.uint64()),
        pa.field("row_address", pa.uint64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Drops:
    """Staged rows that are not to be loaded: a packed mask per file that has any."""

    masks: Mapping[str, bytes] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.masks)

    def mask(self, file: StagedFile) -> npt.NDArray[np.bool_] | None:
        """Which rows of a file are dropped; None if none are."""
        packed = self.masks.get(file.name)
        return None if packed is None else unpacked_mask(packed, file.rows)

    def kept(self, file: StagedFile) -> npt.NDArray[np.int64]:
        """The places of the rows of a file that are not dropped."""
        mask = self.mask(file)
        return np.arange(file.rows) if mask is None else np.flatnonzero(~mask)

    def with_more(self, more: Drops) -> Drops:
        """These and others; a file that both know has either's rows dropped."""
        masks = dict(self.masks)
        for name, packed in more.masks.items():
            mine = masks.get(name)
            masks[name] = packed if mine is None else _either(mine, packed)
        return Drops(masks)


def packed_mask(mask: npt.NDArray[np.bool_]) -> bytes:
    """A mask as it travels."""
    return zlib.compress(np.packbits(mask).tobytes(), 1)


def unpacked_mask(packed: bytes, rows: int) -> npt.NDArray[np.bool_]:
    """A mask that has travelled."""
    return np.unpackbits(np.frombuffer(zlib.decompress(packed), np.uint8), count=rows).astype(bool)


def _either(left: bytes, right: bytes) -> bytes:
    both = (np.frombuffer(zlib.decompress(packed), np.uint8) for packed in (left, right))
    return zlib.compress(np.bitwise_or(*both).tobytes(), 1)


def kept_rows(rows: pa.Table, file: StagedFile, drops: Drops) -> pa.Table:
    """The rows of a file that are to be loaded."""
    mask = drops.mask(file)
    return rows if mask is None else rows.filter(pa.array(~mask))


@dataclass(frozen=True, slots=True)
class MatchFile:
    """Pairs of staged and committed rows on the store: the staged files and the fragments it tells about."""

    key: str
    files: frozenset[str]
    fragments: frozenset[int]
    rows: int


def write_matches(address: Address, job: str, name: str, matches: pa.Table) -> MatchFile:
    """Keep pairs for a later pass."""
    key = f"{scratch_folder(job)}/{name}.arrow"
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, MATCHES) as writer:
        writer.write_table(matches.cast(MATCHES))
    open_objects(address).put(key, sink.getvalue().to_pybytes())
    owners = np.unique(matches["row_address"].to_numpy() >> np.uint64(32))
    names = frozenset(pc.unique(matches["file"]).to_pylist())
    return MatchFile(key, names, frozenset(owners.tolist()), matches.num_rows)


def read_matches(address: Address, files: Iterable[MatchFile]) -> pa.Table:
    """The pairs of some files."""
    objects = open_objects(address)
    tables = [MATCHES.empty_table()]
    for file in files:
        found = objects.get(file.key)
        assert found is not None, file.key  # noqa: S101  written by an earlier pass of this job
        tables.append(pa.ipc.open_file(found.content).read_all())
    return pa.concat_tables(tables)


def broken_rows_of(files: Iterable[StagedFile], broken: Mapping[tuple[int, str], Sequence[int]]) -> Drops:
    """Drops of staged rows at places among the records of their type, by slice and table."""
    masks: dict[str, bytes] = {}
    for file in files:
        places = np.array(broken.get((file.slice, file.table_key), ()), np.int64) - file.first
        mine = places[(places >= 0) & (places < file.rows)]
        if len(mine):
            mask = np.zeros(file.rows, bool)
            mask[mine] = True
            masks[file.name] = packed_mask(mask)
    return Drops(masks)


def record_indexes(staged: Sequence[int], left_out: Sequence[int]) -> list[int]:
    """The how-many-th records of their type in their slice staged rows were, given those that were not staged."""
    before = np.array(left_out, np.int64) - np.arange(len(left_out))
    rows = np.array(staged, np.int64)
    indexes: list[int] = (rows + np.searchsorted(before, rows, side="right")).tolist()
    return indexes


def scratch_folder(job: str) -> str:
    """Where a job keeps what its passes tell each other."""
    return f"{layout.JOBS}/{job}"
