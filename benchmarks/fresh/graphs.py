"""A graph that is written to and asked: the social graph, or one with a million nodes and five million edges."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.contest import Question, Row
from benchmarks.engines import DuckDB, Kuzu, Model, OmniGraph
from benchmarks.fresh.measuring import Contestant
from benchmarks.social.queries import MODEL

ASKED: Final = ("1", "4", "8", "9")
ASKED_OF_LARGE: Final = ("1", "8", "9")
LARGE: Final = Model(
    nodes=("Person",),
    edges={"Follows": ("Person", "Person")},
    schema="\n".join(line for line in MODEL.schema.splitlines() if "Person {" in line or "Follows" in line),
)
WRITES: Final = ("insert a node", "insert an edge", "update a node", "delete an edge")
_EDGES: Final = 10_007
PEOPLE: Final = 1_000_000
FOLLOWS: Final = 5_000_000


@dataclass(frozen=True, slots=True)
class Edges:
    """Some pairs of nodes with an edge between them, and as many without: edges that writes delete or add."""

    present: Sequence[tuple[int, int]]
    absent: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, tables: Path) -> Edges:
        follows = pq.read_table(tables / "Follows.parquet")
        sources, targets = (follows[name].to_numpy().astype(np.int64) for name in ("src", "dst"))
        some = np.random.default_rng(0).choice(np.unique(sources), (2, 2 * _EDGES))
        free = ~np.isin(some[0] << 32 | some[1], sources << 32 | targets)
        absent = dict.fromkeys(zip(*some[:, free].tolist(), strict=True))
        present = dict.fromkeys(zip(sources.tolist()[: 2 * _EDGES], targets.tolist()[: 2 * _EDGES], strict=True))
        return cls(list(present)[:_EDGES], list(absent)[:_EDGES])

    def chosen(self, kind: str, number: int) -> tuple[int, int]:
        """The edge that a write is about; one is inserted or deleted only once."""
        return (self.absent if kind == "insert an edge" else self.present)[number % _EDGES]


@dataclass(frozen=True, slots=True)
class Ours:
    """OmniGraph through its public interface."""

    graph: Any
    edges: Edges

    @classmethod
    def open(cls, store: Path, tables: Path) -> Ours:
        import omnigraph

        return cls(omnigraph.open(store), Edges.of(tables))

    def ask(self, question: Question) -> Sequence[Row]:
        return [tuple(row.values()) for row in self.graph.query(question.text("gq"), question.params).rows]

    def write(self, kind: str, number: int) -> None:
        a, b = self.edges.chosen(kind, number)
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
    edges: Edges

    @classmethod
    def open(cls, store: Path, tables: Path) -> Relational:
        connection = importlib.import_module("duckdb").connect(str(store))
        connection.execute("SET enable_progress_bar = false")
        return cls(connection, Edges.of(tables))

    def ask(self, question: Question) -> Sequence[Row]:
        rows: list[Row] = self.connection.execute(question.text("sql"), dict(question.params)).fetchall()
        return rows

    def write(self, kind: str, number: int) -> None:
        a, b = self.edges.chosen(kind, number)
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
    edges: Edges

    @classmethod
    def open(cls, package: str, store: Path, tables: Path) -> Cypher:
        engine = importlib.import_module(package)
        database = engine.Database(str(store))
        return cls(engine.Connection(database), database, Edges.of(tables))

    def ask(self, question: Question) -> Sequence[Row]:
        return self._rows(question.text("cypher"), question.params)

    def _rows(self, text: str, params: Mapping[str, object]) -> list[Row]:
        result, rows = self.connection.execute(text, dict(params)), []
        while result.has_next():
            rows.append(tuple(result.get_next()))
        return rows

    def write(self, kind: str, number: int) -> None:
        a, b = self.edges.chosen(kind, number)
        person = f"id: {number}, name: 'New', gender: 'male', age: 35, isMarried: true"
        ends = f"(a:Person {{id: {a}}}), (b:Person {{id: {b}}})"
        text = {
            "insert a node": f"CREATE (:Person {{{person}, birthday: date('1990-01-01')}})",
            "insert an edge": f"MATCH {ends} CREATE (a)-[:Follows]->(b)",
            "update a node": f"MATCH (a:Person {{id: {a}}}) SET a.age = {20 + number % 50}",
            "delete an edge": f"MATCH (a:Person {{id: {a}}})-[f:Follows]->(b:Person {{id: {b}}}) DELETE f",
        }[kind]
        self._rows(text, {})


def large() -> dict[str, pa.Table]:
    """People who follow others at random."""
    random, numbers = np.random.default_rng(0), np.arange(PEOPLE)
    people = {
        "id": pa.array(numbers),
        "name": pa.array(np.char.add("name ", (numbers % 50_000).astype(str))),
        "gender": pa.array(np.where(numbers % 2, "male", "female")),
        "age": pa.array(random.integers(18, 90, PEOPLE).astype(np.int32)),
        "isMarried": pa.array(random.integers(0, 2, PEOPLE).astype(np.bool_)),
        "birthday": pa.array(random.integers(0, 12_000, PEOPLE).astype(np.int32)).cast(pa.date32()),
    }
    ends = np.unique(
        random.integers(0, PEOPLE, FOLLOWS + FOLLOWS // 1_000) << 32
        | random.integers(0, PEOPLE, FOLLOWS + FOLLOWS // 1_000)
    )[:FOLLOWS]
    follows = {"src": pa.array(ends >> 32), "dst": pa.array(ends & 0xFFFFFFFF)}
    return {"Person": pa.table(people), "Follows": pa.table(follows)}


def contestants(model: Model, home: Path) -> list[Contestant]:
    """Every engine, ours first."""
    tables = home / "tables"
    return [
        Contestant("omnigraph", "omnigraph", OmniGraph(model), Ours.open, tables),
        Contestant("duckdb", "duckdb", DuckDB(model), Relational.open, tables),
        *(
            Contestant(name, name, Kuzu(name, name, model), partial(Cypher.open, name), tables)
            for name in ("kuzu", "ladybug")
        ),
    ]


def write_tables(home: Path, tables: Mapping[str, pa.Table]) -> None:
    """The rows of each type, from which stores are filled."""
    (home / "tables").mkdir(parents=True)
    for name, rows in tables.items():
        pq.write_table(rows, home / "tables" / f"{name}.parquet")
