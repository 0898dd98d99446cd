"""Commits per second with several writers: threads of one process, and processes on one branch or on one each."""

from __future__ import annotations

import multiprocessing as mp
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from typing import Final

from benchmarks.s3server import distant_server
from benchmarks.writes.work import INSERT, schema
from rich.console import Console
from rich.table import Table

import omnigraph

Options = dict[str, str] | None

DELAY: Final = 0.02
"""By how many seconds a distant store answers later than a near one."""

_COMMITS: Final = {"local disk": 192, "S3, 20 ms": 64}


def writers(out: Console) -> None:
    """Commits per second of 1, 4 and 16 threads and 1, 4 and 8 processes."""
    for place, commits in _COMMITS.items():
        table = Table("writers", "commits/s", "of one writer", "CPU ms/commit", title=f"Several writers, {place}")
        with _places(place) as (root, options):
            rates: dict[str, float] = {}
            for number in (1, 4, 16):
                rate, spent = _threads(f"{root}/t{number}.omni", options, number, commits // number)
                first = rates.setdefault("threads", rate)
                table.add_row(f"{number} threads", f"{rate:.1f}", f"{rate / first:.2f}", f"{1000 * spent:.1f}")
            for number, apart in ((1, False), (4, False), (8, False), (4, True), (8, True)):
                uri = f"{root}/p{number}{apart}.omni"
                rate = _processes(uri, options, number, commits // number, apart)
                first = rates.setdefault("processes", rate)
                where = ", a branch each" if apart else ""
                table.add_row(f"{number} processes{where}", f"{rate:.1f}", f"{rate / first:.2f}", "")
        out.print(table)


@contextmanager
def _places(place: str) -> Iterator[tuple[str, Options]]:
    """Where graphs are made, and the options that it takes to reach them."""
    if place == "local disk":
        with tempfile.TemporaryDirectory() as folder:
            yield folder, None
    else:
        with distant_server("bench", DELAY) as options:
            yield "s3://bench", options


def _threads(uri: str, options: Options, number: int, each: int) -> tuple[float, float]:
    """Commits per second, and processor seconds per commit, of threads that share one graph."""
    graph = omnigraph.init(uri, schema(8), storage_options=options)
    graph.mutate(INSERT, {"n": "warm"})

    def write(who: int) -> None:
        for turn in range(each):
            graph.mutate(INSERT, {"n": f"w{who}-{turn}"})

    threads = [threading.Thread(target=write, args=(who,)) for who in range(number)]
    began, spent = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, spent = time.perf_counter() - began, time.process_time() - spent
    _require_all(graph, number * each)
    return number * each / took, spent / (number * each)


def _require_all(graph: omnigraph.Graph, rows: int) -> None:
    """Raise unless every write is there, the one that warmed up included."""
    found = graph.snapshot().tables["node:Person"].row_count
    if found != rows + 1:
        raise AssertionError(f"{found} rows instead of {rows + 1}")


def _processes(uri: str, options: Options, number: int, each: int, apart: bool) -> float:
    """Commits per second of processes, on one branch or on a branch each."""
    context = mp.get_context("spawn")
    graph = omnigraph.init(uri, schema(8), storage_options=options)
    for who in range(number if apart else 0):
        graph.create_branch(f"b{who}")
    start = context.Barrier(number + 1)
    processes = [
        context.Process(target=_write_many, args=(uri, options, f"b{who}" if apart else "main", who, each, start))
        for who in range(number)
    ]
    for process in processes:
        process.start()
    start.wait()
    began = time.perf_counter()
    start.wait()
    took = time.perf_counter() - began
    for process in processes:
        process.join()
    return number * each / took


def _write_many(uri: str, options: Options, branch: str, who: int, count: int, start: Barrier) -> None:
    graph = omnigraph.open(uri, storage_options=options)
    graph.mutate(INSERT, {"n": f"warm-{who}"}, branch=branch)
    start.wait()
    for turn in range(count):
        graph.mutate(INSERT, {"n": f"w{who}-{turn}"}, branch=branch)
    start.wait()
