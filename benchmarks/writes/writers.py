"""Commits per second with several writers: threads of one process, and processes on one branch or on one each.

Everything takes turns, in as many rounds as a place allows, and medians are shown. What one writer reaches is
measured in the same rounds, in a process that has written before.
"""

from __future__ import annotations

import multiprocessing as mp
import statistics
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
_ROUNDS: Final = {"local disk": 3, "S3, 20 ms": 1}
_THREADS: Final = (1, 4, 16)
_PROCESSES: Final = ((1, False), (4, False), (8, False), (4, True), (8, True))


def writers(out: Console) -> None:
    """Commits per second of 1, 4 and 16 threads and 1, 4 and 8 processes."""
    for place, commits in _COMMITS.items():
        with _places(place) as (root, options):
            _threads(f"{root}/before.omni", options, 1, 16)
            threads: dict[int, list[tuple[float, float]]] = {number: [] for number in _THREADS}
            processes: dict[tuple[int, bool], list[float]] = {each: [] for each in _PROCESSES}
            for turn in range(_ROUNDS[place]):
                for number, found in threads.items():
                    found.append(_threads(f"{root}/t{number}-{turn}.omni", options, number, commits // number))
                for (number, apart), rates in processes.items():
                    uri = f"{root}/p{number}{apart}{turn}.omni"
                    rates.append(_processes(uri, options, number, commits // number, apart))
        out.print(_table(place, threads, processes))


def _table(
    place: str,
    threads: dict[int, list[tuple[float, float]]],
    processes: dict[tuple[int, bool], list[float]],
) -> Table:
    """The median of each kind of writers, and of its relation to one writer in the same round."""
    table = Table("writers", "commits/s", "of one writer", "CPU ms/commit", title=f"Several writers, {place}")
    alone = [rate for rate, _ in threads[1]]
    for number, found in threads.items():
        rates = [rate for rate, _ in found]
        spent = statistics.median(seconds for _, seconds in found)
        table.add_row(f"{number} threads", *_medians(rates, alone), f"{1000 * spent:.1f}")
    for (number, apart), rates in processes.items():
        where = ", a branch each" if apart else ""
        table.add_row(f"{number} processes{where}", *_medians(rates, processes[1, False]), "")
    return table


def _medians(rates: list[float], alone: list[float]) -> tuple[str, str]:
    ratios = [rate / one for rate, one in zip(rates, alone, strict=True)]
    return f"{statistics.median(rates):.1f}", f"{statistics.median(ratios):.2f}"


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
