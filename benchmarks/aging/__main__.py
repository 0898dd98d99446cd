"""What one-row commits do to a store: the cost of a write, a look-up, a hop and an open as history grows.

`python -m benchmarks.aging --commits 5000 --writers 4 --store s3`. DuckDB and Kuzu let one process write, and know
no S3, so they take part only with one writer on a local disk. Costs are medians of a fresh process; requests are
those that an S3 server got, or the reads and writes of files that the kernel counted for the process.
"""

from __future__ import annotations

import argparse
import datetime as dt
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from benchmarks.aging.engines import SCHEMA, DuckDB, Engine, Kuzu, OmniGraph, PlainLance
from benchmarks.aging.measuring import WARM, Costs, Meter, ProcessMeter, ServerMeter, apart, measured, write
from benchmarks.s3server import counting_server
from rich.console import Console
from rich.table import Table

import omnigraph

CHECKPOINTS: Final = (10, 100, 1_000, 5_000)
BUCKET: Final = "aging"
KEPT: Final = 10
LOG: Final = "/_graph_commits.lance/"
"""Where the records of commits lie, which stay when their states go."""
VERBS: Final = ("write", "look-up", "one hop", "open")

Stored = list[tuple[str, int]]
"""Files below a place, with their sizes."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where stores lie: how to address one, what it takes to use it, and what lies there."""

    root: str
    options: Mapping[str, str]
    meter: Meter
    stored: Callable[[str], Stored]


@dataclass(slots=True)
class Life:
    """One store as it ages."""

    engine: Engine
    commits: int = 0
    costs: dict[int, Costs] = field(default_factory=dict)
    sizes: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Commits, files and bytes at each checkpoint, before measuring."""

    def grow(self, to: int, writers: int) -> None:
        """Write until the store has that many commits, each writer its share."""
        each = max(0, to - self.commits) // writers
        if each:
            start = self.commits
            apart(write, [(self.engine, f"w{start}-{who}", 0, each) for who in range(writers)])
            self.commits += each * writers

    def measure(self, at: int, place: Place, window: int) -> None:
        """What the store holds, and what using it costs."""
        stored = place.stored(self.engine.uri)
        self.sizes[at] = (self.commits, len(stored), sum(size for _, size in stored))
        self.costs[at] = measured(self.engine, place.meter, f"m{at}", window)
        self.commits += WARM + window


@contextmanager
def local_place() -> Iterator[Place]:
    """A folder of its own."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        yield Place(folder, {}, ProcessMeter(), _files)


def _files(uri: str) -> Stored:
    root = Path(uri)
    beside = [path for path in root.parent.glob(f"{root.name}.*") if path.is_file()]
    every = [path for path in root.rglob("*") if path.is_file()] if root.is_dir() else [root]
    return [(str(path.relative_to(root.parent)), path.stat().st_size) for path in every + beside]


@contextmanager
def s3_place() -> Iterator[Place]:
    """A bucket on a server of its own."""
    with counting_server(BUCKET) as server:

        def stored(uri: str) -> Stored:
            return server.stored(BUCKET, uri.removeprefix(f"s3://{BUCKET}/") + "/")

        yield Place(f"s3://{BUCKET}", server.storage_options, ServerMeter(server.endpoint), stored)


def engines(place: Place, store: str, writers: int, only: str | None) -> list[Engine]:
    """The engines that can do this; peers that are not installed are left out, and that is said."""
    found: list[Engine] = [OmniGraph(f"{place.root}/aged.omni", place.options)]
    if writers == 1:
        found.append(PlainLance(f"{place.root}/lance", place.options))
    if writers == 1 and store == "local":
        for peer in (DuckDB(f"{place.root}/duck.db"), Kuzu(f"{place.root}/kuzu.db")):
            if find_spec(peer.name) is None:
                print(f"{peer.name} is not installed: `pip install '.[bench]'`")
            else:
                found.append(peer)
    return [engine for engine in found if only in (None, engine.name)]


def report(out: Console, life: Life) -> None:
    """The costs of one engine at all checkpoints, and the last beside the first."""
    points = list(life.costs)
    table = Table("verb", "", *(f"{point:,}" for point in points), "last / first", title=life.engine.name)
    for verb in VERBS:
        costs = [life.costs[point][verb] for point in points]
        for what, shown in (("milliseconds", "ms"), ("requests", "requests"), ("bytes", "bytes")):
            values = [getattr(cost, what) for cost in costs]
            ratio = f"{values[-1] / values[0]:.2f}" if values[0] else "-"
            digits = 1 if what == "milliseconds" else 0
            table.add_row(verb, shown, *(f"{value:,.{digits}f}" for value in values), ratio)
    for column, shown in ((1, "files"), (2, "bytes")):
        table.add_row("stored", shown, *(f"{life.sizes[point][column]:,}" for point in points), "")
    table.add_row("stored", "bytes per commit since", *_growth(life), "")
    out.print(table)


def _growth(life: Life) -> Iterator[str]:
    before = (0, 0, 0)
    for now in life.sizes.values():
        yield f"{(now[2] - before[2]) / max(1, now[0] - before[0]):,.0f}"
        before = now


def shares(out: Console, stored: Stored, commits: int) -> None:
    """Where the bytes of a graph lie, by the kind of table and of file."""
    sizes: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for name, size in stored:
        folder = _kind(name)
        sizes[folder] += size
        files[folder] += 1
    table = Table("files of", "files", "bytes", "bytes per commit", title="Where the bytes are")
    for folder, size in sizes.most_common(12):
        table.add_row(folder, f"{files[folder]:,}", f"{size:,}", f"{size / commits:,.0f}")
    out.print(table)


def _kind(name: str) -> str:
    parts = name.split("/")[1:] or [name]
    if parts[0] in ("nodes", "edges"):
        return "/".join([parts[0], *parts[2:-1]])
    return "/".join(parts[:-1]) or parts[0]


def at_once(life: Life, place: Place) -> Stored:
    """The same rows in a new graph, loaded in one commit."""
    aged = omnigraph.open(life.engine.uri, read_only=True, storage_options=place.options or None)
    fresh = omnigraph.init(f"{place.root}/fresh.omni", SCHEMA, storage_options=place.options or None)
    with tempfile.TemporaryDirectory() as folder:
        aged.export(f"{folder}/all.jsonl")
        fresh.load(Path(f"{folder}/all.jsonl"), mode="append")
    return place.stored(f"{place.root}/fresh.omni")


def _counted(table: Table, name: str, stored: Stored) -> tuple[int, int]:
    """How many files and bytes there are, also as a row of a table."""
    files, size = len(stored), sum(size for _, size in stored)
    table.add_row(name, f"{files:,}", f"{size:,}")
    return files, size


def tidied(out: Console, life: Life, place: Place) -> None:
    """What is left after a cleanup, with and without the log of commits, beside the same rows in a new graph."""
    graph = omnigraph.open(life.engine.uri, storage_options=place.options or None)
    graph.cleanup(keep=KEPT, grace=dt.timedelta(0), confirm=True)
    table = Table("graph", "files", "bytes", title=f"After cleanup --keep {KEPT}")
    cleaned = place.stored(life.engine.uri)
    counts = [
        _counted(table, "cleaned", cleaned),
        _counted(table, "cleaned, without the log", [each for each in cleaned if LOG not in each[0]]),
    ]
    loaded = _counted(table, "loaded at once", at_once(life, place))
    for name, (files, size) in zip(("ratio", "ratio without the log"), counts, strict=True):
        table.add_row(name, f"{files / loaded[0]:.2f}", f"{size / loaded[1]:.2f}")
    out.print(table)


def main() -> None:
    """Age, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=5_000)
    parser.add_argument("--writers", type=int, choices=(1, 4), default=1)
    parser.add_argument("--store", choices=("local", "s3"), default="local")
    parser.add_argument("--window", type=int, default=30, help="how many writes and reads are measured each time")
    parser.add_argument("--only", help="measure only this engine")
    given = parser.parse_args()
    out = Console(width=110)
    points = sorted({point for point in CHECKPOINTS if point < given.commits} | {given.commits})
    with local_place() if given.store == "local" else s3_place() as place:
        lives = [Life(engine) for engine in engines(place, given.store, given.writers, given.only)]
        for life in lives:
            apart(life.engine.create, [()])
        for point in points:
            for life in lives:
                life.grow(point, given.writers)
                life.measure(point, place, given.window)
        out.print(f"[bold]{given.writers} writing process(es), {given.store}[/bold]")
        for life in lives:
            report(out, life)
        for life in lives:
            if isinstance(life.engine, OmniGraph):
                shares(out, place.stored(life.engine.uri), life.commits)
                tidied(out, life, place)


if __name__ == "__main__":
    main()
