"""The same load on a cluster of one and of two workers. Run with `python -m benchmarks.load.cluster`.

Each worker is a process with one core on this machine. Printed are the seconds of a warm load, the share of them
in which only the driver works, and what that share allows at most however many workers there are.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.kept import apart
from benchmarks.load.contestants import Loaded, omnigraph, shuffling
from benchmarks.load.data import made
from rich.console import Console
from rich.table import Table
from tests.spark.cluster import DRIVER, standalone


def main() -> int:
    """Load with one worker, then with two, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=2, help="warm loads per cluster; the fastest counts")
    options = parser.parse_args()
    os.environ.update(DRIVER)
    lines = made(options.nodes, options.edges) / "lines"
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        to = Path(folder)
        found = {
            "1": _loaded(omnigraph, lines, to / "one", 1, options.repeats),
            "2": _loaded(omnigraph, lines, to / "two", 2, options.repeats),
            "2, all keys shuffled": _loaded(shuffling, lines, to / "shuffled", 2, options.repeats),
        }
    out = Console(width=130)
    out.print(_table(found, options.nodes, options.edges))
    for workers, loaded in found.items():
        spent = ", ".join(f"{step} {seconds:.2f}" for step, seconds in loaded.steps.items())
        out.print(f"{workers}: {spent}")
    return 0


def _loaded(load: Callable[..., Loaded], lines: Path, folder: Path, workers: int, repeats: int) -> Loaded:
    with standalone(folder, workers, 1, memory="3g") as cluster:
        return apart(load, lines, folder / "graph.omni", repeats, cluster.master)


def _table(found: dict[str, Loaded], nodes: int, edges: int) -> Table:
    title = f"{nodes:,} nodes and {edges:,} edges on a standalone cluster"
    table = Table("workers", title=title, title_justify="left")
    for heading in ("cold s", "warm s", "of one worker", "driver alone s", "share", "at most faster"):
        table.add_column(heading, justify="right")
    alone = found["1"].seconds
    for workers, loaded in found.items():
        serial = loaded.seconds - sum(loaded.steps.values())
        table.add_row(
            workers,
            f"{loaded.cold:.1f}",
            f"{loaded.seconds:.2f}",
            f"{loaded.seconds / alone:.2f}",
            f"{serial:.2f}",
            f"{serial / loaded.seconds:.1%}",
            f"{loaded.seconds / serial:.0f} times",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
