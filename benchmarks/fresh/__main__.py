"""The query after a write: `python -m benchmarks.fresh`, smaller with `--persons 10000`, larger with `--large`.

A row of the social graph, or of one with a million nodes and five million edges, is written (a node, an edge, an
update, a delete), and the same question is put again; `--large` does the same with 200,000 texts with vectors of
128 dimensions. Each engine answers it warm first; then writes and questions alternate. Printed are the
milliseconds of the warm question, of the write, and of the question behind it, and how many times the warm one
that is. The exit code is 1 if answers differ: those of graphs have to be the same, of searches nine of ten.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from benchmarks.contest import Question
from benchmarks.fresh import documents, graphs
from benchmarks.fresh.measuring import Contestant, Measured, Served
from benchmarks.search import data
from benchmarks.search.engines import OmniGraph
from benchmarks.social.data import generate
from benchmarks.social.queries import MODEL, QUESTIONS
from rich.console import Console
from rich.table import Table

_FIRST: Final = 10_000_000
_NEARLY: Final = 0.9


def contest(
    title: str,
    contestants: Sequence[Contestant],
    home: Path,
    asked: Sequence[Question],
    writes: Sequence[str],
    rounds: int,
    nearly: float,
    out: Console,
) -> bool:
    """Every question behind every kind of write; did any answers differ by more than they may?"""
    present = [each for each in contestants if find_spec(each.package) is not None]
    for each in present:
        each.fill(home)
    table = Table("question", "write", title=f"{title}: warm / write / after the write, ms (× warm)")
    failed, number = False, _FIRST
    with tempfile.TemporaryDirectory() as folder:
        engines = [Served(each, home, Path(folder)) for each in present]
        for engine in engines:
            table.add_column(engine.name)
        try:
            for question in asked:
                for kind in writes:
                    found = [engine.measured(question, kind, rounds, number) for engine in engines]
                    number += rounds
                    table.add_row(question.name, kind, *map(str, found))
                    for engine, one in zip(engines, found, strict=True):
                        failed |= _differs(engine.name, question, kind, found[0], one, nearly, out)
        finally:
            for engine in engines:
                engine.close()
    out.print(table)
    return failed


def _differs(
    name: str, question: Question, kind: str, ours: Measured, theirs: Measured, nearly: float, out: Console
) -> bool:
    about = f"{question.name} after “{kind}”, {name}"
    if theirs.problem is not None:
        out.print(f"n/a: {about}: {theirs.problem}", markup=False)
        return theirs is ours
    expected, found = ({str(row) for row in one.rows} for one in (ours, theirs))
    common = len(expected & found) / max(len(expected | found) if nearly == 1 else len(expected), 1)
    if common < nearly:
        out.print(f"[red]{about}: the answers differ, {common:.2f} are the same[/red]")
    return common < nearly


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--persons", type=int, default=100_000, help="the size of the social graph")
    parser.add_argument("--rounds", type=int, default=5, help="writes of each kind before each question")
    parser.add_argument("--large", action="store_true", help="a million nodes, and 200,000 documents")
    parser.add_argument("--only", choices=("graph", "documents"), help="one part of --large")
    options = parser.parse_args()
    out, below = Console(width=160), Path(tempfile.gettempdir())
    failed = False
    if options.only != "documents":
        home = below / f"omnigraph-bench-fresh-{'large' if options.large else options.persons}"
        if not (home / "tables").exists():
            graphs.write_tables(home, graphs.large() if options.large else generate(options.persons, 0))
        model, numbers = (graphs.LARGE, graphs.ASKED_OF_LARGE) if options.large else (MODEL, graphs.ASKED)
        size = (
            f"{graphs.PEOPLE:,} nodes, {graphs.FOLLOWS:,} edges"
            if options.large
            else f"social graph, {options.persons:,} persons"
        )
        asked = [question for question in QUESTIONS if question.number in numbers]
        some = graphs.contestants(model, home)
        failed |= contest(size, some, home, asked, graphs.WRITES, options.rounds, 1, out)
    if options.large and options.only != "graph":
        home = below / "omnigraph-bench-fresh-documents"
        if not (home / "documents.npz").exists():
            home.mkdir(parents=True, exist_ok=True)
            data.write(home, documents.COUNT, documents.DIMENSION, 0, 10)
        plain = OmniGraph(documents.DIMENSION, indexed=False)
        some = documents.contestants(home)
        Contestant("omnigraph", "omnigraph", plain, some[0].open, home).fill(home)
        size = f"{documents.COUNT:,} texts with vectors of {documents.DIMENSION} dimensions"
        asked = documents.questions(home)
        failed |= contest(size, some, home, asked, documents.WRITES, options.rounds, _NEARLY, out)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
