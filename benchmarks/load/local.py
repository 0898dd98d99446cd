"""Loads of JSON Lines, CSV and Parquet in this process, without Spark. Run `python -m benchmarks.load.local`.

Every load runs in a process of its own that has loaded something tiny before, and the engines take turns. Printed
are the median of the seconds, how many cores were busy, and the highest memory of the process. What each engine
holds afterwards is compared: rows, and sums of numbers and of days.

The exit code is 1 if OmniGraph takes more than 1.3 times the floor (see `benchmarks/load/plain.py`), or if its
memory at the largest size is noticeably above that at the second largest.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.kept import apart
from benchmarks.load import peers, plain
from benchmarks.load.files import FORMATS, JSONL, SCHEMA, TABLES, made, size_of
from rich.console import Console
from rich.table import Table

_MOST: Final = 1.3
_FLAT: Final = 1.25
_TINY: Final = 0


@dataclass(frozen=True, slots=True)
class Run:
    """What a load took, the highest memory of its process, and what the engine holds."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    held: peers.Held


Runs = dict[str, list[Run]]


def main() -> int:
    """Make the files, let everybody load them, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=_sizes, default=[10, 100], help="megabytes of each format: 10,100,700")
    parser.add_argument("--formats", type=lambda text: text.split(","), default=list(FORMATS))
    parser.add_argument("--engines", type=lambda text: text.split(","), default=list(_ENGINES))
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if unknown := {*options.formats} - {*FORMATS} | {*options.engines} - {*_ENGINES}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    os.environ.setdefault("LANCE_LOG", "error")
    out = Console(width=120)
    is_good = True
    for form in options.formats:
        peaks: list[int] = []
        for megabytes in options.size:
            home = apart(made, megabytes, form)
            found = _contest(home, form, options.engines, options.repeats)
            out.print(_table(found, form, size_of(home, form)))
            if "omnigraph" in found:
                peaks.append(_middle(found["omnigraph"]).peak_bytes)
                is_good = is_good and _is_fast(found)
        if len(peaks) > 1:
            growth = peaks[-1] / peaks[-2]
            out.print(f"{form}: memory at the largest size {growth:.2f} times that at the second largest")
            is_good = is_good and (growth <= _FLAT or max(options.size) < 500)
    return 0 if is_good else 1


def _sizes(text: str) -> list[int]:
    return sorted(int(size) for size in text.split(","))


def _contest(home: Path, form: str, engines: list[str], repeats: int) -> Runs:
    tiny = apart(made, _TINY, form)
    found: Runs = {name: [] for name in engines}
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        for _ in range(repeats):
            for name in engines:
                found[name].append(apart(_run, name, tiny, home, form, Path(folder)))
    held = {run.held for runs in found.values() for run in runs}
    assert len(held) == 1, {name: runs[0].held for name, runs in found.items()}
    return found


def _run(name: str, tiny: Path, home: Path, form: str, folder: Path) -> Run:
    engine = _ENGINES[name]
    engine.load(tiny, form, folder / f"{name}-tiny")
    to = peers.cleared(folder / name)
    start, cpu = time.perf_counter(), time.process_time()
    engine.load(home, form, to)
    seconds, spent = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    held = engine.held(to)
    peers.cleared(to)
    return Run(seconds, spent, peak, held)


@dataclass(frozen=True, slots=True)
class _Engine:
    load: Callable[[Path, str, Path], None]
    held: Callable[[Path], peers.Held]
    checks: str


def _load_omnigraph(home: Path, form: str, to: Path) -> None:
    import omnigraph

    graph = omnigraph.init(to, SCHEMA)
    if form == JSONL:
        graph.load(home / "lines.jsonl", mode="append", engine="local")
        return
    person, knows = (str(home / f"{name}.{form}") for name in TABLES)
    graph.load(nodes={"Person": person}, edges={"Knows": knows}, mode="append", engine="local")


def _held_omnigraph(to: Path) -> peers.Held:
    import omnigraph

    graph = omnigraph.open(to)
    people = "count($p) as n, sum($p.age) as ages, min($p.joined) as first, max($p.about) as last"
    knows = "count($k) as n, sum($k.since) as years, max($k.note) as last"
    node = graph.query(f"query q() {{ match {{ $p: Person }} return {{ {people} }} }}").rows[0]
    edge = graph.query(f"query q() {{ match {{ $a: Person $a $k:knows $b }} return {{ {knows} }} }}").rows[0]
    return peers.Held(
        node["n"], node["ages"], str(node["first"]), node["last"], edge["n"], edge["years"], edge["last"]
    )


_ENGINES: Final = {
    "floor": _Engine(plain.load, peers.held_lance, "none"),
    "omnigraph": _Engine(_load_omnigraph, _held_omnigraph, "types, rules, keys, ends"),
    "duckdb": _Engine(peers.load_duckdb, peers.held_duckdb, "types, keys, ends"),
    "kuzu": _Engine(peers.load_kuzu, peers.held_kuzu, "types, keys, ends"),
    "ladybug": _Engine(peers.load_ladybug, peers.held_ladybug, "types, keys, ends"),
}


def _middle(runs: list[Run]) -> Run:
    return sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]


def _is_fast(found: Runs) -> bool:
    """Is OmniGraph within its bound, by the median of the ratios of runs that took turns?"""
    pairs = zip(found["omnigraph"], found.get("floor", found["omnigraph"]), strict=True)
    return statistics.median(ours.seconds / base.seconds for ours, base in pairs) <= _MOST


def _table(found: Runs, form: str, size: int) -> Table:
    records = _middle(next(iter(found.values()))).held
    title = f"{size / 1e6:,.0f} MB of {form}: {records.nodes:,} nodes and {records.edges:,} edges"
    table = Table("engine", "reads", "checks", title=title, title_justify="left")
    for heading in ("seconds", "of the floor", "MB/s", "CPU s", "of the floor's", "cores busy", "peak MB"):
        table.add_column(heading, justify="right")
    base = _middle(found["floor"]) if "floor" in found else None
    for name, runs in found.items():
        run = _middle(runs)
        reads = "parquet" if name in ("kuzu", "ladybug") and form == JSONL else form
        table.add_row(
            name,
            reads,
            _ENGINES[name].checks,
            f"{run.seconds:.2f}",
            f"{run.seconds / base.seconds:.2f}" if base else "",
            f"{size / run.seconds / 1e6:,.0f}" if reads == form else "",
            f"{run.cpu_seconds:.2f}",
            f"{run.cpu_seconds / base.cpu_seconds:.2f}" if base else "",
            f"{run.cpu_seconds / run.seconds:.1f}",
            f"{run.peak_bytes / 1e6:,.0f}",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
