"""Run the merge benchmark: `python -m benchmarks.merge`, smaller with `--rows 10000 --deltas 1,100`.

Tables of three sizes, changes of three sizes on both of two branches. OmniGraph, DoltLite and a naive merge that
reads whole tables do the same work in one run. Bytes are all that a process reads from files, cached or not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.merge.cost import Cost
from benchmarks.merge.ours import Branches, build, costs
from benchmarks.merge.shapes import Delta, write_documents
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report."""

    rows: int
    delta: int
    engine: str
    work: str
    cost: Cost


def measure(home: Path, rows: int, deltas: list[Delta], *, peers: bool) -> Iterator[Line]:
    """All work on a table of one size."""
    documents = home / f"{rows}.parquet"
    write_documents(documents, rows, deltas)
    graph = build(home / f"{rows}.omni", documents)
    for suffix, is_compacted in (("", False), ("-compacted", True)):
        for delta in deltas:
            branches = Branches(graph, delta, suffix)
            branches.change()
            if is_compacted:
                graph.optimize(branch=branches.name("left"))
            for name, cost in costs(branches):
                if not (is_compacted and name == "naive merge"):
                    yield Line(rows, delta.rows, "omnigraph", f"{name}, compacted" if is_compacted else name, cost)
    if peers:
        yield from _doltlite(home, rows, documents, deltas)


def _doltlite(home: Path, rows: int, documents: Path, deltas: list[Delta]) -> Iterator[Line]:
    listed = ",".join(str(delta.rows) for delta in deltas)
    command = [sys.executable, "-m", "benchmarks.merge.dolt", str(home / f"{rows}.db"), str(documents), listed]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        found = json.loads(line)
        cost = Cost(found["seconds"], found["read_bytes"], found["read_calls"])
        yield Line(rows, found["delta"], "doltlite", found["work"], cost)


def report(lines: list[Line]) -> Table:
    """The costs beside each other, the work by the size of the change and of the table."""
    table = Table(title="Cost of comparing and merging, 64-dimension vectors, changes on both sides")
    for name in ("work", "engine", "changed rows a side", "rows of the table"):
        table.add_column(name)
    for name in ("seconds", "MB read", "reads", "rows read"):
        table.add_column(name, justify="right")
    for line in sorted(lines, key=lambda each: (each.work, each.engine, each.delta, each.rows)):
        cost = line.cost
        shown = "" if cost.rows is None else f"{cost.rows:,}"
        table.add_row(
            line.work,
            line.engine,
            f"{3 * Delta(line.delta).each:,}",
            f"{line.rows:,}",
            f"{cost.seconds:.3f}",
            f"{cost.read_bytes / 1e6:.2f}",
            f"{cost.read_calls:,}",
            shown,
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="10000,100000,1000000")
    parser.add_argument("--deltas", default="1,100,10000")
    parser.add_argument("--no-peers", action="store_true", help="leave out DoltLite")
    chosen = parser.parse_args()
    deltas = [Delta(int(rows)) for rows in chosen.deltas.split(",")]
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as home:
        for rows in map(int, chosen.rows.split(",")):
            fitting = [delta for delta in deltas if 4 * delta.each < rows]
            lines += measure(Path(home), rows, fitting, peers=not chosen.no_peers)
    Console(width=140).print(report(lines))


if __name__ == "__main__":
    main()
