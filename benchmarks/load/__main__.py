"""Load the same graph with everybody and print how long it took. Run with `python -m benchmarks.load`.

The exit code is 1 if a warm load takes more than 1.15 times the floor, or longer than duckdb, kuzu or ladybug, or
if the driver needs noticeably more memory for an input four times as large.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.kept import apart
from benchmarks.load.contestants import Loaded, contest, omnigraph
from benchmarks.load.data import FILES, made
from rich.console import Console
from rich.table import Table

_MOST: Final = 1.15
_FLAT: Final = 1.25


def main() -> int:
    """Make the input, let everybody load it, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=3, help="warm loads of OmniGraph, and runs of the floor")
    options = parser.parse_args()
    if options.repeats < 1 or min(options.nodes, options.edges) < 4 * FILES:
        parser.error(f"at least one repeat, and at least {4 * FILES} nodes and edges")
    os.environ.setdefault("LANCE_LOG", "error")
    out = Console(width=130)
    home = made(options.nodes, options.edges)
    size = sum(file.stat().st_size for file in (home / "lines").iterdir())
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        to = Path(folder)
        found = apart(contest, home, to, options.repeats)
        quarter = made(options.nodes // 4, options.edges // 4)
        less = apart(omnigraph, quarter / "lines", to / "quarter.omni", 1)
    for name, loaded in found.items():
        assert (loaded.nodes, loaded.edges) == (options.nodes, options.edges), (name, loaded)
    out.print(_table(found, size, options.nodes, options.edges))
    ours = found["omnigraph"]
    out.print(f"cold: {ours.start:.1f} s until there is a session, {ours.cold:.1f} s for the first load in it")
    spent = ", ".join(f"{step} {seconds:.2f}" for step, seconds in ours.steps.items())
    serial = ours.seconds - sum(ours.steps.values())
    out.print(f"warm, in seconds: {spent}, driver alone {serial:.2f} ({serial / ours.seconds:.0%})")
    growth = ours.driver_bytes / less.driver_bytes
    out.print(
        f"driver memory: {less.driver_bytes / 1e6:.0f} MB for a quarter of the input, "
        f"{ours.driver_bytes / 1e6:.0f} MB for all of it ({growth:.2f} times)"
    )
    is_fast = ours.seconds <= _MOST * found["floor"].seconds
    is_faster = ours.seconds < min(found[name].seconds for name in ("duckdb", "kuzu", "ladybug"))
    return 0 if is_fast and is_faster and growth <= _FLAT else 1


def _table(found: dict[str, Loaded], size: int, nodes: int, edges: int) -> Table:
    title = f"{nodes:,} nodes and {edges:,} edges, {size / 1e6:,.0f} MB of JSON Lines"
    table = Table("loader", "input", "checks", title=title, title_justify="left")
    for heading in ("seconds", "of the floor", "MB/s"):
        table.add_column(heading, justify="right")
    base = found["floor"].seconds
    described = {
        "floor": ("JSON Lines", "none"),
        "omnigraph": ("JSON Lines", "types, rules, keys, ends"),
        "duckdb": ("JSON Lines", "types, keys, ends"),
        "kuzu": ("Parquet", "types, keys, ends"),
        "ladybug": ("Parquet", "types, keys, ends"),
    }
    for name, (given, checks) in described.items():
        seconds = found[name].seconds
        rate = f"{size / seconds / 1e6:,.0f}" if given == "JSON Lines" else ""
        table.add_row(name, given, checks, f"{seconds:.2f}", f"{seconds / base:.2f}", rate)
    return table


if __name__ == "__main__":
    sys.exit(main())
