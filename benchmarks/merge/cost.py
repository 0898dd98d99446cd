"""How much a piece of work reads and writes: bytes and calls of this process, and rows that Lance hands out."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from omnigraph.storage.versions import Delta, TableVersions


@dataclass(frozen=True, slots=True)
class Cost:
    """What a piece of work took. Peers do not say how many rows they read."""

    seconds: float
    read_bytes: int
    read_calls: int
    rows: int | None = None
    written_bytes: int = 0

    def as_json(self) -> dict[str, float | int | None]:
        return asdict(self)


def measured(work: Callable[[], object]) -> Cost:
    """Do a piece of work once. All reads of files count, those from the page cache too."""
    gc.collect()
    before, start = _io(), time.perf_counter()
    work()
    seconds, after = time.perf_counter() - start, _io()
    spent = {name: after[name] - before[name] for name in after}
    return Cost(seconds, spent["rchar"], spent["syscr"], written_bytes=spent["wchar"])


def _io() -> dict[str, int]:
    lines = Path("/proc/self/io").read_text().splitlines()
    return {name: int(value) for name, value in (line.split(": ") for line in lines)}


@contextmanager
def counted_rows() -> Iterator[list[int]]:
    """Count all rows that scans and deltas of Lance tables hand out meanwhile."""
    counts: list[int] = []
    to_table, to_reader = lance.LanceScanner.to_table, lance.LanceScanner.to_reader
    delta = TableVersions.delta

    def table(scanner: Any) -> pa.Table:
        found = to_table(scanner)
        counts.append(found.num_rows)
        return found

    def reader(scanner: Any) -> pa.RecordBatchReader:
        found = to_reader(scanner)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in found:
                counts.append(batch.num_rows)
                yield batch

        return pa.RecordBatchReader.from_batches(found.schema, batches())

    def changes(versions: TableVersions, *args: Any, **kwargs: Any) -> Delta:
        found = delta(versions, *args, **kwargs)
        counts.append(len(found.inserted) + len(found.updated) + len(found.deleted))
        return found

    replaced: list[tuple[Any, str, Any]] = [
        (lance.LanceScanner, "to_table", table),
        (lance.LanceScanner, "to_reader", reader),
        (TableVersions, "delta", changes),
    ]
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in replaced]
    for owner, name, counting in replaced:
        setattr(owner, name, counting)
    try:
        yield counts
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
