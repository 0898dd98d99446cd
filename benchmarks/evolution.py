"""What a change of the schema costs: seconds, and bytes read and written, on tables of growing size.

Renaming, adding and dropping a property must not cost more on a larger table. Widening computes one column and
leaves the vectors where they are; new rules read the columns that they are about. A process that first reads the
rows of a table compares its files with their checksums, through memory maps: that takes seconds that grow with the
table, and no bytes that are counted here. Run with `make bench`; `--rows 10000,100000` makes it shorter.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.merge.cost import Cost, measured
from rich.console import Console
from rich.table import Table

import omnigraph
from omnigraph.graph import Graph
from omnigraph.settings import BulkSettings, Settings

DIMENSION: Final = 64
RUNS: Final = 3
DEFAULTS: Final = Settings()
BY_TASKS: Final = Settings(bulk=BulkSettings(small_rewrite=0))


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the schema: the properties that it leads to, beside the key and the vector."""

    name: str
    properties: str
    settings: Settings = DEFAULTS

    @property
    def schema(self) -> str:
        return f"node Doc {{ name: String @key  {self.properties}  embedding: Vector({DIMENSION}) }}"


BEFORE: Final = Change("", "title: String?  part: I32?  score: I32?")
CHANGES: Final = (
    Change("rename", "heading: String? @rename_from(title)  part: I32?  score: I32?"),
    Change("add nullable", "heading: String?  part: I32?  score: I32?  note: String?"),
    Change("drop", "heading: String?  part: I32?  score: I32?"),
    Change("widen", "heading: String?  part: I64?  score: I32?"),
    Change("widen, by tasks", "heading: String?  part: I64?  score: I64?", BY_TASKS),
    Change("require", "heading: String  part: I64?  score: I64?"),
    Change("add unique", "heading: String @unique  part: I64?  score: I64?"),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report."""

    rows: int
    work: str
    cost: Cost


def build(home: Path, rows: int) -> Graph:
    """A graph with so many documents, loaded on Spark."""
    path, generator = home / f"{rows}.parquet", np.random.default_rng(rows)
    columns = pa.schema(
        [
            ("name", pa.string()),
            ("title", pa.string()),
            ("part", pa.int32()),
            ("score", pa.int32()),
            ("embedding", pa.list_(pa.float32(), DIMENSION)),
        ]
    )
    with pq.ParquetWriter(path, columns) as writer:
        for start in range(0, rows, 50_000):
            count = min(50_000, rows - start)
            vectors = pa.array(generator.random(count * DIMENSION, np.float32))
            arrays: list[Any] = [
                pa.array([f"doc-{start + row:08}" for row in range(count)]),
                pa.array([f"the title of document {start + row}" for row in range(count)]),
                pa.array(generator.integers(0, 100, count, np.int32)),
                pa.array(generator.integers(0, 1_000_000, count, np.int32)),
                pa.FixedSizeListArray.from_arrays(vectors, DIMENSION),
            ]
            writer.write_table(pa.table(arrays, schema=columns))
    graph = omnigraph.init(home / f"{rows}.omni", BEFORE.schema)
    graph.load(nodes={"Doc": str(path)}, mode="append")
    return graph


def measure(home: Path, rows: int) -> Iterator[Line]:
    """All changes of a table of one size: the fastest of a few runs, each on a copy of the graph."""
    graph = build(home, rows)
    runs = [list(_changed(graph, home / f"{rows}-{run}.omni")) for run in range(RUNS)]
    for change, *costs in zip(CHANGES, *runs, strict=True):
        yield Line(rows, change.name, min(costs, key=lambda cost: cost.seconds))


def _changed(graph: Graph, copy: Path) -> Iterator[Cost]:
    """What the changes cost, one after the other, each by a handle that has read nothing yet."""
    shutil.copytree(graph.address, copy)
    for change in CHANGES:
        fresh = omnigraph.open(copy, settings=change.settings)
        yield measured(partial(fresh.apply_schema, change.schema, engine="local"))
    shutil.rmtree(copy)


def report(lines: list[Line]) -> Table:
    """The costs of each change beside each other, by the size of the table."""
    table = Table(title=f"Cost of changing the schema of documents with {DIMENSION}-dimension vectors")
    for name in ("change", "rows"):
        table.add_column(name)
    for name in ("seconds", "MB read", "MB written"):
        table.add_column(name, justify="right")
    order = [change.name for change in CHANGES]
    for line in sorted(lines, key=lambda each: (order.index(each.work), each.rows)):
        cost = line.cost
        table.add_row(
            line.work,
            f"{line.rows:,}",
            f"{cost.seconds:.3f}",
            f"{cost.read_bytes / 1e6:.2f}",
            f"{cost.written_bytes / 1e6:.2f}",
        )
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="10000,100000,1000000")
    sizes = [int(size) for size in parser.parse_args().rows.split(",")]
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as home:
        lines = [line for rows in sizes for line in measure(Path(home), rows)]
    Console().print(report(lines))


if __name__ == "__main__":
    main()
