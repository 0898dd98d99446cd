"""Run a contest from the command line: fill every engine's store, measure, print the tables, compare the answers.

Stores are kept between runs in the system's folder for temporary files, by size, seed and generator.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import multiprocessing as mp
import os
import platform
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.contest import (
    FLOOR,
    OURS,
    Answers,
    Engine,
    Pace,
    Question,
    cold,
    compiled_bytecode,
    imports,
    mismatches,
    warm,
    with_imports,
)
from rich.console import Console
from rich.table import Table

Generate = Callable[[int, int], Mapping[str, pa.Table]]


def arguments(description: str | None, persons: int) -> argparse.Namespace:
    """What every contest can be told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--persons", type=int, default=persons, help="the size of the graph")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engines", nargs="*", help="only these")
    parser.add_argument("--questions", nargs="*", help="only these, by number")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of five timed runs of each question")
    parser.add_argument(
        "--cold",
        type=int,
        nargs="?",
        default=3,
        const=5,
        help="fresh processes for each question: 3, or 5 if no number is given; 0 leaves this out",
    )
    parser.add_argument("--rebuild", action="store_true", help="fill the stores again")
    return parser.parse_args()


def compete(
    name: str,
    engines: Sequence[Engine],
    generate: Generate,
    questions: Sequence[Question],
    options: argparse.Namespace,
) -> int:
    """Everything from data to tables. The exit code is 1 if answers differ or we have none."""
    out = Console(width=130)
    folder = f"omnigraph-bench-{name}-{options.persons}-{options.seed}-{_edition(generate)}"
    home = Path(tempfile.gettempdir()) / folder
    if options.rebuild:
        shutil.rmtree(home, ignore_errors=True)
    _write_tables(home, lambda: generate(options.persons, options.seed))
    chosen = [engine for engine in engines if not options.engines or engine.name in (*options.engines, FLOOR)]
    present = [engine for engine in chosen if _installed(engine, out)]
    asked = [question for question in questions if not options.questions or question.number in options.questions]
    for engine in present:
        _fill(engine, home)
    environment = compiled_bytecode(home / "bytecode")
    os.environ.clear()
    os.environ.update(environment)
    versions = ", ".join(f"{engine.name} {engine.version()}" for engine in present)
    out.print(f"{versions}; Python {platform.python_version()}, {os.cpu_count()} cores")

    pace = Pace(rounds=options.rounds, cold=options.cold)
    answers = warm(present, home, asked, pace)
    title = f"{name}, {options.persons:,} persons"
    runs = pace.rounds * pace.repeats
    show(f"{title}: warm, median of up to {runs} runs", answers, present, asked, out)
    failed = _judge(answers, out)
    if options.cold:
        stores = [engine for engine in present if engine.name != FLOOR]
        first = cold(stores, home, asked, pace)
        show(f"{title}: first question of a fresh process, median of {pace.cold}", first, stores, asked, out)
        imported = imports(stores, 2 * pace.cold + 1)
        shown = ", ".join(f"{engine} {seconds * 1000:,.0f}" for engine, seconds in imported.items())
        out.print(f"Imports from the start of a bare process, milliseconds: {shown}")
        show(f"{title}: the same with imports", with_imports(first, imported), stores, asked, out)
        first.update({key: answer for key, answer in answers.items() if key[0] == FLOOR})
        failed = _judge(first, out) or failed
    return int(failed)


def _edition(generate: Generate) -> str:
    """Changes with the text of the generator's module."""
    module = inspect.getsource(sys.modules[generate.__module__])
    return hashlib.sha256(module.encode()).hexdigest()[:6]


def _write_tables(home: Path, generate: Callable[[], Mapping[str, pa.Table]]) -> None:
    """One Parquet file per type, unless they are there."""
    if (home / "tables").exists():
        return
    part = home / "part-tables"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for name, table in generate().items():
        pq.write_table(table, part / f"{name}.parquet")
    part.rename(home / "tables")


def _installed(engine: Engine, out: Console) -> bool:
    try:
        engine.version()
    except PackageNotFoundError:
        out.print(f"{engine.name} is not installed; the extra 'bench' brings it")
        return False
    return True


def _fill(engine: Engine, home: Path) -> None:
    """Fill the engine's store in a process of its own, unless it is there."""
    target = home / engine.store()
    if target.exists():
        return
    part = home / f"part-{engine.store()}"
    if part.is_dir():
        shutil.rmtree(part)
    part.unlink(missing_ok=True)
    process = mp.get_context("spawn").Process(target=engine.build, args=(home, part))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{engine.name} could not be filled")
    part.rename(target)


def _judge(answers: Answers, out: Console) -> bool:
    """Print what is wrong; whether anything is that must not be."""
    for (name, about), answer in answers.items():
        if answer.problem is not None:
            out.print(f"n/a: {name}, {about}: {answer.problem}", markup=False)
    wrong = list(mismatches(answers, FLOOR))
    for line in wrong:
        out.print(f"MISMATCH {line}", style="bold red", markup=False)
    if not wrong:
        given = sum(answer.problem is None for (name, _), answer in answers.items() if name != FLOOR)
        out.print(f"All {given} answers are those of the floor.\n")
    silent = any(answer.problem for (name, _), answer in answers.items() if name == OURS)
    return bool(wrong) or silent


def show(
    title: str, answers: Answers, engines: Sequence[Engine], questions: Sequence[Question], out: Console
) -> None:
    """One row per question, with the best peer and how many times faster we are; then the means."""
    names = [engine.name for engine in engines]
    peers = [name for name in names if name not in (OURS, FLOOR)]
    own = [name for name in (OURS, FLOOR) if name in names]
    medians = {key: answer.median for key, answer in answers.items() if answer.seconds}
    table = Table("milliseconds", title=title, title_justify="left")
    for heading in (*peers, "best peer", *own, "best / ours"):
        table.add_column(heading, justify="right")
    bests: list[float] = []
    ratios: list[float] = []
    for question in questions:
        times = {name: medians[name, question.name] for name in names if (name, question.name) in medians}
        best = min((name for name in peers if name in times), key=times.__getitem__, default="")
        ratio = times[best] / times[OURS] if best and OURS in times else None
        bests += [times[best]] if best else []
        ratios += [] if ratio is None else [ratio]
        cells = {name: _milliseconds([times[name]] if name in times else []) for name in names}
        shown = "" if ratio is None else f"{ratio:.2f}"
        table.add_row(question.name, *map(cells.__getitem__, peers), best, *map(cells.__getitem__, own), shown)
    means = {name: _milliseconds([time for key, time in medians.items() if key[0] == name]) for name in names}
    overall = f"{statistics.geometric_mean(ratios):.2f}" if ratios else ""
    smallest = f"{min(ratios):.2f}" if ratios else ""
    table.add_section()
    of_peers, of_own = map(means.__getitem__, peers), map(means.__getitem__, own)
    table.add_row("geometric mean", *of_peers, _milliseconds(bests), *of_own, overall)
    table.add_row("smallest ratio", *([""] * (len(names) + 1)), smallest)
    out.print(table)


def _milliseconds(seconds: Sequence[float]) -> str:
    return f"{statistics.geometric_mean(seconds) * 1000:,.2f}" if seconds else "n/a"
