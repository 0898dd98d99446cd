"""The query after a write: `python -m benchmarks.fresh`, smaller with `--persons 10000`.

A row of the social graph is written (a node, an edge, an update, a delete), and the same question is put again.
Each engine answers it warm first; then writes and questions alternate. Printed are the milliseconds of the warm
question, of the write, and of the question behind it, and how many times the warm one that is.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow.parquet as pq
from benchmarks.contest import Engine as Maker
from benchmarks.contest import Question, Row
from benchmarks.engines import DuckDB, Kuzu, OmniGraph
from benchmarks.social.data import generate
from benchmarks.social.queries import MODEL, QUESTIONS
from rich.console import Console
from rich.table import Table

ASKED: Final = ("1", "4", "8", "9")
WRITES: Final = ("insert a node", "insert an edge", "update a node", "delete an edge")
_FIRST: Final = 10_000_000
_EDGES: Final = 10_007


class Engine(Protocol):
    """A store that is written to and asked in turn."""

    def ask(self, question: Question) -> Sequence[Row]: ...

    def write(self, kind: str, number: int) -> None: ...


Opener = Callable[[Path, Sequence[tuple[int, int]]], Engine]
"""Opens a store; some edges that it has are given, so that writes can delete one or add another like it."""


@dataclass(frozen=True, slots=True)
class Ours:
    """OmniGraph through its public interface."""

    graph: Any
    edges: Sequence[tuple[int, int]]

    @classmethod
    def open(cls, store: Path, edges: Sequence[tuple[int, int]]) -> Ours:
        import omnigraph

        return cls(omnigraph.open(store), edges)

    def ask(self, question: Question) -> Sequence[Row]:
        return [tuple(row.values()) for row in self.graph.query(question.text("gq"), question.params).rows]

    def write(self, kind: str, number: int) -> None:
        a, b = self.edges[number % len(self.edges)]
        person = f'id_: {number}, name: "New", gender: "male", age: 35, isMarried: true'
        text = {
            "insert a node": f'insert Person {{ {person}, birthday: date("1990-01-01") }}',
            "insert an edge": f'insert Follows {{ from: "{a}", to: "{b}" }}',
            "update a node": f"update Person set {{ age: {20 + number % 50} }} where id_ = {a}",
            "delete an edge": f'delete Follows where from = "{a}" and to = "{b}"',
        }[kind]
        self.graph.mutate(f"query m() {{ {text} }}")


@dataclass(frozen=True, slots=True)
class Relational:
    """DuckDB."""

    connection: Any
    edges: Sequence[tuple[int, int]]

    @classmethod
    def open(cls, store: Path, edges: Sequence[tuple[int, int]]) -> Relational:
        return cls(importlib.import_module("duckdb").connect(str(store)), edges)

    def ask(self, question: Question) -> Sequence[Row]:
        rows: list[Row] = self.connection.execute(question.text("sql"), dict(question.params)).fetchall()
        return rows

    def write(self, kind: str, number: int) -> None:
        a, b = self.edges[number % len(self.edges)]
        text = {
            "insert a node": f"INSERT INTO Person VALUES ({number}, 'New', 'male', 35, true, DATE '1990-01-01')",
            "insert an edge": f"INSERT INTO Follows VALUES ({a}, {b})",
            "update a node": f"UPDATE Person SET age = {20 + number % 50} WHERE id = {a}",
            "delete an edge": f"DELETE FROM Follows WHERE src = {a} AND dst = {b}",
        }[kind]
        self.connection.execute(text)


@dataclass(frozen=True, slots=True)
class Cypher:
    """Kuzu, or its successor."""

    connection: Any
    database: Any = field(repr=False)
    edges: Sequence[tuple[int, int]]

    @classmethod
    def opener(cls, package: str) -> Opener:
        def open_(store: Path, edges: Sequence[tuple[int, int]]) -> Cypher:
            engine = importlib.import_module(package)
            database = engine.Database(str(store))
            return cls(engine.Connection(database), database, edges)

        return open_

    def ask(self, question: Question) -> Sequence[Row]:
        return self._rows(question.text("cypher"), question.params)

    def _rows(self, text: str, params: Mapping[str, object]) -> list[Row]:
        result, rows = self.connection.execute(text, dict(params)), []
        while result.has_next():
            rows.append(tuple(result.get_next()))
        return rows

    def write(self, kind: str, number: int) -> None:
        a, b = self.edges[number % len(self.edges)]
        person = f"id: {number}, name: 'New', gender: 'male', age: 35, isMarried: true"
        ends = f"(a:Person {{id: {a}}}), (b:Person {{id: {b}}})"
        text = {
            "insert a node": f"CREATE (:Person {{{person}, birthday: date('1990-01-01')}})",
            "insert an edge": f"MATCH {ends} CREATE (a)-[:Follows]->(b)",
            "update a node": f"MATCH (a:Person {{id: {a}}}) SET a.age = {20 + number % 50}",
            "delete an edge": f"MATCH (a:Person {{id: {a}}})-[f:Follows]->(b:Person {{id: {b}}}) DELETE f",
        }[kind]
        self._rows(text, {})


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds: of the warm question, of the write, of the question after it."""

    warm: float
    write: float
    after: float
    rows: Sequence[Row]


def measured(engine: Engine, question: Question, kind: str, rounds: int, first: int) -> Measured:
    """Medians of some rounds."""
    warm, writes, after = [], [], []
    engine.ask(question)
    rows: Sequence[Row] = []
    for turn in range(rounds):
        warm.append(_timed(lambda: engine.ask(question))[0])
        number = first + turn
        writes.append(_timed(lambda number=number: engine.write(kind, number))[0])  # type: ignore[misc]
        seconds, rows = _timed(lambda: engine.ask(question))
        after.append(seconds)
    median = statistics.median
    return Measured(median(warm), median(writes), median(after), rows)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    found = work()
    return time.perf_counter() - begin, found


def opened(home: Path, work: Path) -> dict[str, Engine]:
    """Every engine that is installed, each with a copy of its store that may be written to."""
    found: dict[str, Engine] = {}
    follows = pq.read_table(home / "tables" / "Follows.parquet").slice(0, _EDGES)
    edges = list(zip(follows["src"].to_pylist(), follows["dst"].to_pylist(), strict=True))
    makers: list[tuple[Maker, Opener, str]] = [
        (OmniGraph(MODEL), Ours.open, "omnigraph"),
        (DuckDB(MODEL), Relational.open, "duckdb"),
        (Kuzu("kuzu", "kuzu", MODEL), Cypher.opener("kuzu"), "kuzu"),
        (Kuzu("ladybug", "ladybug", MODEL), Cypher.opener("ladybug"), "ladybug"),
    ]
    for maker, open_, package in makers:
        if find_spec(package) is None:
            continue
        store = home / maker.store()
        if not store.exists():
            maker.build(home, store)
        copy = work / maker.store()
        (shutil.copytree if store.is_dir() else shutil.copy)(store, copy)
        found[maker.name] = open_(copy, edges)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--persons", type=int, default=100_000, help="the size of the graph")
    parser.add_argument("--rounds", type=int, default=5, help="writes of each kind before each question")
    options = parser.parse_args()
    home = Path(tempfile.gettempdir()) / f"omnigraph-bench-fresh-{options.persons}"
    if not (home / "tables").exists():
        (home / "tables").mkdir(parents=True)
        for name, table in generate(options.persons, 0).items():
            pq.write_table(table, home / "tables" / f"{name}.parquet")
    out = Console(width=130)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        engines = opened(home, Path(folder))
        table = Table(
            title=f"social graph, {options.persons:,} persons: warm / write / after the write, ms (× warm)"
        )
        for heading in ("question", "write", *engines):
            table.add_column(heading)
        number = _FIRST
        for question in (question for question in QUESTIONS if question.number in ASKED):
            for kind in WRITES:
                results = {
                    name: measured(engine, question, kind, options.rounds, number)
                    for name, engine in engines.items()
                }
                number += options.rounds
                table.add_row(question.name, kind, *map(_shown, results.values()))
                answers = {str(sorted(map(str, result.rows))) for result in results.values()}
                if len(answers) > 1:
                    failed = True
                    out.print(f"[red]{question.name} after “{kind}”: the answers differ[/red]")
        out.print(table)
    return int(failed)


def _shown(result: Measured) -> str:
    times = " / ".join(f"{seconds * 1e3:.1f}" for seconds in (result.warm, result.write, result.after))
    return f"{times} (×{result.after / result.warm:.1f})"


if __name__ == "__main__":
    sys.exit(main())
