"""Run the search benchmark: `python -m benchmarks.search`, smaller with `--rows 20000`, published sizes by name
with `--sizes 500k 2M`, all of them with `--all`.

Every engine answers in a process of its own, with its default settings unless its name says others. Beside each
latency stands how many of the ten best documents were found, by a plain exact computation. The exit code is 1 if
OmniGraph finds less than 98 %.
"""

from __future__ import annotations

import argparse
import inspect
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from benchmarks.contest import Question, Worker
from benchmarks.kept import apart
from benchmarks.search import data
from benchmarks.search.engines import OmniGraph, Searching, bytes_of, competitors, times_of
from benchmarks.search.exact import Agreement, Exact, Truth, agreement
from rich.console import Console
from rich.table import Table

_LEAST: Final = 0.98
_WARMUPS: Final = 10
_ROWS_EACH: Final = 10_000
"""Questions that nobody measures: so many, and one more for so many rows, because large tables are read into
memory only once they were searched often."""
_PATIENCE: Final = 60.0
_REST: Final = 0.05
"""Seconds between two answers, in which the threads of the last engine stop to wait for more work."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many documents there are, with vectors of which dimension; what is asked, and of whom: engines with one
    of these in their name."""

    rows: int
    dimension: int
    kinds: Sequence[str] = data.KINDS
    engines: Sequence[str] = ("",)
    words: int = 3
    """How many words a text has."""


_WORDS: Final = 30
_FAST: Final = ("omnigraph, indexed", "IVF_FLAT", "IVF_RQ")
SIZES: Final[Mapping[str, Size]] = {
    "100k": Size(100_000, 128, words=_WORDS),
    "200k": Size(200_000, 128, data.VECTORS, ("omnigraph", "IVF_FLAT", "IVF_RQ")),
    "500k": Size(500_000, 128, data.VECTORS, ("omnigraph", "IVF_FLAT", "IVF_RQ")),
    "2M": Size(2_000_000, 128, data.VECTORS, _FAST),
    "200k-wide": Size(200_000, 768, data.VECTORS, _FAST),
    "1M-texts": Size(1_000_000, 8, (data.TEXT,), ("omnigraph, indexed", "FTS", "bm25s"), _WORDS),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """What one engine did with one kind of questions."""

    engine: Searching
    cold: Sequence[float]
    warm: Sequence[float]
    cpu: Sequence[float]
    agreements: Sequence[Agreement]

    @property
    def recall(self) -> float:
        return statistics.mean(one.recall for one in self.agreements)

    @property
    def order(self) -> float:
        known = [one.order for one in self.agreements if one.order is not None]
        return statistics.mean(known) if known else 1.0


def measure(
    engines: Sequence[Searching],
    home: Path,
    questions: Sequence[Question],
    truth: Sequence[Truth],
    cold: int,
    warmups: int,
) -> list[Measured]:
    """Questions of one kind to all engines, which take turns."""
    first = [[_cold(engine, home, questions[number]) for number in range(cold)] for engine in engines]
    workers = [Worker(engine, home) for engine in engines]
    seconds: list[list[float]] = [[] for _ in engines]
    cpu: list[list[float]] = [[] for _ in engines]
    found: list[list[Agreement]] = [[] for _ in engines]
    try:
        for number, question in enumerate((*islice(cycle(questions), warmups), *questions)):
            for index, worker in enumerate(workers):
                time.sleep(_REST)
                answer = worker.put(question, 0, 1, _PATIENCE)
                if answer.problem is not None:
                    raise SystemExit(f"{worker.engine.name}, {question.name}: {answer.problem}")
                if number >= warmups:
                    seconds[index] += answer.seconds
                    cpu[index] += answer.cpu
                    found[index].append(agreement(truth[number - warmups], answer.rows))
    finally:
        for worker in workers:
            worker.close()
    return [Measured(*parts) for parts in zip(engines, first, seconds, cpu, found, strict=True)]


def _cold(engine: Searching, home: Path, question: Question) -> float:
    """The first question of a fresh process, opening included."""
    worker = Worker(engine, home)
    try:
        answer = worker.put(question, 0, 1, _PATIENCE)
        if answer.problem is not None:
            raise SystemExit(f"{engine.name}, {question.name}: {answer.problem}")
        return answer.median
    finally:
        worker.close()


def show(title: str, found: Sequence[Measured], out: Console) -> None:
    """One row per engine."""
    table = Table("milliseconds", title=title, title_justify="left")
    for heading in ("cold", "warm, median", "warm, p95", "CPU, median", "recall@10", "order (Kendall)"):
        table.add_column(heading, justify="right")
    for one in found:
        cuts = statistics.quantiles(one.warm, n=20)
        median = statistics.median
        times = (f"{s * 1000:,.2f}" for s in (median(one.cold), cuts[9], cuts[18], median(one.cpu)))
        table.add_row(one.engine.name, *times, f"{one.recall:.3f}", f"{one.order:.3f}")
    out.print(table)


def show_stores(engines: Sequence[Searching], home: Path, out: Console) -> None:
    """How long stores took to make, and how large they are."""
    table = Table("stores", title_justify="left")
    for heading in ("rows, s", "indexes, s", "rows, MB", "indexes, MB"):
        table.add_column(heading, justify="right")
    for engine in {engine.store(): engine for engine in engines}.values():
        times, sizes = times_of(home / engine.store()), bytes_of(home / engine.store())
        took = (f"{times[part]:,.1f}" if part in times else "" for part in ("rows", "indexes"))
        table.add_row(engine.store(), *took, *(f"{size / 1e6:,.1f}" for size in sizes))
    out.print(table)


def _fill(engine: Searching, home: Path) -> None:
    """Fill the engine's store in a process of its own, unless it is there."""
    if (home / engine.store()).exists():
        return
    part = home / f"part-{engine.store()}"
    shutil.rmtree(part, ignore_errors=True)
    apart(engine.build, home, part)
    part.rename(home / engine.store())


def _installed(engine: Searching, out: Console) -> bool:
    try:
        engine.version()
    except PackageNotFoundError:
        out.print(f"{engine.name} is not installed; the extra 'bench' brings it")
        return False
    return True


def _home(size: Size, options: argparse.Namespace) -> Path:
    """The folder of this size, seed and generator, with its documents."""
    edition = sha256(inspect.getsource(data).encode()).hexdigest()[:6]
    name = f"{size.rows}-{size.dimension}-{size.words}-{options.questions}-{options.seed}"
    home = Path(tempfile.gettempdir()) / f"omnigraph-bench-search-{name}-{edition}"
    if options.rebuild:
        shutil.rmtree(home, ignore_errors=True)
    if not (home / "documents.npz").exists():
        home.mkdir(parents=True, exist_ok=True)
        apart(data.write, home, size.rows, size.dimension, options.seed, options.questions, size.words)
    return home


def run(size: Size, options: argparse.Namespace, out: Console) -> bool:
    """Build what is missing of one size, measure and print; does OmniGraph find too few?"""
    home = _home(size, options)
    everybody = [engine for engine in competitors(size.dimension) if _installed(engine, out)]
    engines = [engine for engine in everybody if any(part in engine.name for part in size.engines)]
    engines = [engine for engine in engines if set(engine.kinds) & set(size.kinds)]
    for engine in everybody[:1] + engines:
        _fill(engine, home)
    versions = {f"{engine.modules[0].split('.')[0]} {engine.version()}": None for engine in engines}
    out.print(f"{', '.join(versions)}; Python {platform.python_version()}, {os.cpu_count()} cores")
    exact, failed = Exact(data.read(home)), False
    for kind, questions in data.questions(home).items():
        if kind not in size.kinds:
            continue
        able = [engine for engine in engines if kind in engine.kinds]
        warmups = _WARMUPS + size.rows // _ROWS_EACH
        found = measure(able, home, questions, exact.answers(questions), options.cold, warmups)
        about = f"{size.rows:,} × {size.dimension}" if kind != data.TEXT else f"{size.rows:,} texts"
        show(f"{kind}: {about}, {len(questions)} questions", found, out)
        ours = [one for one in found if isinstance(one.engine, OmniGraph)]
        failed |= any(one.recall < _LEAST for one in ours)
    show_stores(engines, home, out)
    return failed


def _narrowed(size: Size, options: argparse.Namespace) -> Size:
    """A published size with only those kinds and engines that are asked for."""
    kinds = tuple(kind for kind in size.kinds if kind in options.kinds)
    return replace(size, kinds=kinds, engines=size.engines if options.engines == [""] else options.engines)


def main() -> int:
    """Every size that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="every size that is published: hours, and 20 GB")
    parser.add_argument("--sizes", nargs="*", choices=SIZES, default=[], help="these of the published sizes")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--questions", type=int, default=100, help="of each kind")
    parser.add_argument("--cold", type=int, default=3, help="fresh processes for each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", choices=data.KINDS, default=data.KINDS, help="only these")
    parser.add_argument("--engines", nargs="*", default=[""], help="only those with one of these in their name")
    parser.add_argument("--rebuild", action="store_true", help="make everything again")
    options = parser.parse_args()
    if options.cold < 1 or options.questions < 10:
        parser.error("medians need at least --cold 1 and --questions 10")
    out = Console(width=120)
    words = _WORDS if data.TEXT in options.kinds else 3
    one = Size(options.rows, options.dimension, options.kinds, options.engines, words)
    names = list(SIZES) if options.all else options.sizes
    sizes = [_narrowed(SIZES[name], options) for name in names] or [one]
    failures = [run(size, options, out) for size in sizes]
    return int(any(failures))


if __name__ == "__main__":
    sys.exit(main())
