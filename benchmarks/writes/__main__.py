"""What writes cost: requests, latency, throughput with several writers, a large upsert, and memory.

Run with `make bench`; each part alone with `--only trips|latency|writers|upsert|trust|memory`. `--commits` is the
longest history of the trips, `--writes` how many writes the memory part makes: 20,000 take a quarter of an hour.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from benchmarks.writes.trips import trips
from benchmarks.writes.work import cases, person, schema
from benchmarks.writes.writers import writers
from rich.console import Console
from rich.table import Table

import omnigraph
from omnigraph.graph import Graph


def latency(out: Console) -> None:
    """Percentiles of single-row writes on a local disk."""
    table = Table("write", "p50 ms", "p90 ms", "p99 ms", title="One-row writes on a local disk, one writer")
    with tempfile.TemporaryDirectory() as folder:
        graph = omnigraph.init(f"{folder}/g.omni", schema(8))
        graph.load([person("p0")], mode="append")
        samples: dict[str, list[float]] = {}
        for turn in range(200):
            for verb, text, name in cases(turn):
                start = time.perf_counter()
                graph.mutate(text, {"n": name})
                samples.setdefault(verb, []).append((time.perf_counter() - start) * 1000)
    for verb, times in samples.items():
        cuts = statistics.quantiles(times, n=100)
        table.add_row(verb, f"{cuts[49]:.1f}", f"{cuts[89]:.1f}", f"{cuts[98]:.1f}")
    out.print(table)


def trust(out: Console) -> None:
    """What checks and syncs cost: the same writes in turn with each setting, in one run on one disk."""
    table = Table(
        "write", "synced, p50 ms", "not synced", "ratio", "syncs", title="The price of surviving a power cut"
    )
    samples: dict[tuple[str, str], list[float]] = {}
    syncs: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        graphs = {}
        for setting in ("on", "off"):
            graphs[setting] = omnigraph.init(f"{folder}/{setting}.omni", schema(8))
            graphs[setting].load([person("p0")], mode="append")
        for turn in range(150):
            for verb, text, name in cases(turn):
                for setting, graph in graphs.items():
                    os.environ["OMNIGRAPH_SYNC"] = setting
                    with _counted_syncs() as counted:
                        start = time.perf_counter()
                        graph.mutate(text, {"n": name})
                        took = (time.perf_counter() - start) * 1000
                    samples.setdefault((verb, setting), []).append(took)
                    if setting == "on":
                        syncs[verb] = counted[0]
        os.environ.pop("OMNIGRAPH_SYNC")
    for verb in syncs:
        synced, unsynced = (statistics.median(samples[verb, setting]) for setting in ("on", "off"))
        table.add_row(verb, f"{synced:.1f}", f"{unsynced:.1f}", f"{synced / unsynced:.2f}", str(syncs[verb]))
    out.print(table)
    _first_reads(out)


@contextmanager
def _counted_syncs() -> Iterator[list[int]]:
    """How often this process syncs a file or a folder in a block."""
    sync, counted = os.fsync, [0]

    def count(fd: Any) -> None:
        counted[0] += 1
        sync(fd)

    os.fsync = count
    try:
        yield counted
    finally:
        os.fsync = sync


def _first_reads(out: Console) -> None:
    """The first query of a graph that was just opened, with and without comparing checksums."""
    table = Table(
        "first query", "checked, ms", "not checked", "ratio", title="The price of checksums, 500,000 rows"
    )
    samples: dict[tuple[str, str], list[float]] = {}
    queries = {
        "one row": ("query q($n: String) { match { $p: Person { name: $n } } return { $p.age } }", {"n": "p77"}),
        "a column": ("query q() { match { $p: Person } return { sum($p.age) as total } }", {}),
    }
    with tempfile.TemporaryDirectory() as folder:
        _fill(omnigraph.init(f"{folder}/g.omni", schema(2)), 500_000)
        for _ in range(7):
            for name, (text, params) in queries.items():
                for setting in ("on", "off"):
                    os.environ["OMNIGRAPH_VERIFY"] = setting
                    graph = omnigraph.open(f"{folder}/g.omni", read_only=True)
                    samples.setdefault((name, setting), []).append(
                        1000 * _timed(partial(graph.query, text, params))
                    )
        os.environ.pop("OMNIGRAPH_VERIFY")
    for name in queries:
        checked, unchecked = (statistics.median(samples[name, setting]) for setting in ("on", "off"))
        table.add_row(name, f"{checked:.1f}", f"{unchecked:.1f}", f"{checked / unchecked:.2f}")
    out.print(table)


def upsert(out: Console) -> None:
    """A merge of 10,000 rows into a million, beside Lance's own merge_insert of the same rows."""
    rows, changed = 1_000_000, 10_000
    table = Table("what", "seconds", "ratio", title=f"Merge of {changed:,} rows into {rows:,}")
    with tempfile.TemporaryDirectory() as folder:
        graph = omnigraph.init(f"{folder}/g.omni", schema(2))
        _fill(graph, rows)
        records = "\n".join(json.dumps(person(f"p{i * (rows // changed)}")) for i in range(changed))
        small = "\n".join(json.dumps(person(f"p{i}")) for i in range(100))
        graph.load(small, mode="merge")
        ours = _timed(lambda: graph.load(records, mode="merge"))
        plain = lance.write_dataset(
            _people(rows), f"{folder}/plain", max_rows_per_file=100_000, enable_stable_row_ids=True
        )
        source = _people(changed, step=rows // changed)
        merge = plain.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        theirs = _timed(lambda: merge.execute(source))
    table.add_row("Lance merge_insert, no checks, no parsing", f"{theirs:.2f}", "1.0")
    table.add_row("graph.load merge: parse, validate, stage, commit", f"{ours:.2f}", f"{ours / theirs:.1f}")
    out.print(table)


def _people(count: int, step: int = 1) -> pa.Table:
    names = pa.array([f"p{i * step}" for i in range(count)])
    return pa.table({"id": names, "age": pa.array([0] * count, pa.int32()), "name": names})


def _fill(graph: Graph, rows: int) -> None:
    """Append in slices, each of them small enough for a load in this process."""
    for start in range(0, rows, 250_000):
        lines = "\n".join(json.dumps(person(f"p{i}")) for i in range(start, start + 250_000))
        graph.load(lines, mode="append")


def _timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


NODES, EDGES = 8, 4


def memory(out: Console, writes: int) -> None:
    """The memory of a process that makes many one-row writes: a node, then three edges, and so on.

    The nodes go to eight types in turn and the edges to four, because a write takes longer the more fragments its
    table has. Nothing is compacted, so each table has one fragment for each of its writes.
    """
    out.print("[italic]Memory of one process that makes one-row writes[/italic]")
    context = mp.get_context("spawn")
    ours, theirs = context.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        process = context.Process(target=_write_and_measure, args=(f"{folder}/g.omni", writes, theirs))
        process.start()
        theirs.close()
        first = None
        while True:
            try:
                done, used, seconds = ours.recv()
            except EOFError:
                break
            first = used if first is None else first
            out.print(f"{done:8,} writes  {used >> 20:6,} MB  {(used - first) >> 20:+6,} MB  {seconds:6.0f} s")
        process.join()


def _write_and_measure(uri: str, writes: int, reports: Connection) -> None:
    nodes = "\n".join(f"node N{i} {{ name: String @key }}" for i in range(NODES))
    edges = "\n".join(f"edge E{i}: N0 -> N0" for i in range(EDGES))
    graph = omnigraph.init(uri, f"{nodes}\n{edges}")
    graph.load([{"type": "N0", "data": {"name": name}} for name in ("a", "b")], mode="append")
    start = time.perf_counter()
    ends = cycle(range(EDGES))
    reports.send((0, _resident(), 0.0))
    for turn in range(1, writes + 1):
        if turn % 4 == 0:
            kind = turn // 4 % NODES
            graph.mutate(f"query q($n: String) {{ insert N{kind} {{ name: $n }} }}", {"n": f"n{turn}"})
        else:
            graph.mutate(f'query q() {{ insert E{next(ends)} {{ from: "a", to: "b" }} }}')
        if turn in (100, 500) or turn % 1000 == 0 or turn == writes:
            reports.send((turn, _resident(), time.perf_counter() - start))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


PARTS: dict[str, Callable[[Console], None]] = {
    "latency": latency,
    "writers": writers,
    "upsert": upsert,
    "trust": trust,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["trips", *PARTS, "memory"])
    parser.add_argument("--commits", type=int, default=1_000, help="the longest history of the trips")
    parser.add_argument("--writes", type=int, default=2_000, help="how many writes the memory part makes")
    arguments = parser.parse_args()
    only = arguments.only
    out = Console(width=110)
    if only in (None, "trips"):
        trips(out, arguments.commits)
    for name, part in PARTS.items():
        if only in (None, name):
            part(out)
    if only in (None, "memory"):
        memory(out, arguments.writes)


if __name__ == "__main__":
    main()
