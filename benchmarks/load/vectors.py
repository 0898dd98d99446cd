"""Rows with vectors from an Arrow table, beside lancedb. Run with `python -m benchmarks.load.vectors`.

Every load runs in a process of its own, the engines take turns, and what they hold is compared. The exit code is 1
if OmniGraph, which checks every number and key, takes more than twice what lancedb takes.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.kept import apart
from rich.console import Console
from rich.table import Table

_MOST: Final = 2.0
_TINY: Final = 100


@dataclass(frozen=True, slots=True)
class Run:
    """What a load took, and what the table holds: rows, and the sum of the first numbers of all vectors."""

    seconds: float
    cpu_seconds: float
    rows: int
    total: float


def main() -> int:
    """Load with both engines in turns, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    os.environ.setdefault("LANCE_LOG", "error")
    found: dict[str, list[Run]] = {name: [] for name in _ENGINES}
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        for number in range(options.repeats):
            for name in found:
                to = Path(folder) / f"{name}-{number}"
                found[name].append(apart(_run, name, to, options.rows, options.dimension))
    held = {(run.rows, round(run.total, 3)) for runs in found.values() for run in runs}
    assert len(held) == 1, held
    title = f"{options.rows:,} rows with a vector of {options.dimension} numbers from an Arrow table"
    table = Table("engine", title=title, title_justify="left")
    for heading in ("seconds", "of lancedb", "CPU s"):
        table.add_column(heading, justify="right")
    medians = {name: statistics.median(run.seconds for run in runs) for name, runs in found.items()}
    for name, seconds in medians.items():
        cpu = statistics.median(run.cpu_seconds for run in found[name])
        table.add_row(name, f"{seconds:.2f}", f"{seconds / medians['lancedb']:.2f}", f"{cpu:.2f}")
    Console(width=100).print(table)
    return 0 if medians["omnigraph"] <= _MOST * medians["lancedb"] else 1


def _run(name: str, to: Path, rows: int, dimension: int) -> Run:
    load = _ENGINES[name]
    load(to / "tiny", _documents(_TINY, dimension))
    documents = _documents(rows, dimension)
    start, cpu = time.perf_counter(), time.process_time()
    held = load(to / "all", documents)
    seconds, spent = time.perf_counter() - start, time.process_time() - cpu
    column = held()
    return Run(seconds, spent, len(column), float(pc.sum(pc.list_element(column, 0)).as_py()))


def _documents(rows: int, dimension: int) -> pa.Table:
    numbers = np.random.default_rng(3).random(rows * dimension, np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers), dimension)
    ids = pc.binary_join_element_wise("document-", pa.array(np.arange(rows)).cast(pa.string()), "")
    return pa.table({"name": ids, "vector": vectors})


Held = Callable[[], pa.ChunkedArray]
"""Reads the vectors that were loaded."""


def _load_omnigraph(to: Path, documents: pa.Table) -> Held:
    import lance

    import omnigraph

    dimension = documents.schema.field("vector").type.list_size
    graph = omnigraph.init(to, f"node Document {{ name: String @key  vector: Vector({dimension}) }}")
    graph.load(nodes={"Document": documents}, mode="append", engine="local")

    def held() -> pa.ChunkedArray:
        (table,) = (to / "nodes").iterdir()
        return lance.dataset(str(table)).to_table(["vector"])["vector"]

    return held


def _load_lancedb(to: Path, documents: pa.Table) -> Held:
    table = importlib.import_module("lancedb").connect(str(to)).create_table("Document", documents)
    return lambda: table.to_arrow()["vector"]


_ENGINES: Final = {"lancedb": _load_lancedb, "omnigraph": _load_omnigraph}


if __name__ == "__main__":
    sys.exit(main())
