"""Documents with texts and vectors that are written to and searched: 200,000 of them, 128 dimensions."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from benchmarks.contest import CannotAnswer, Question, Row
from benchmarks.fresh.measuring import Contestant
from benchmarks.search import data, engines
from benchmarks.search.data import BEST, NEAREST, TEXT

COUNT: Final = 200_000
DIMENSION: Final = 128
WRITES: Final = ("insert a document", "update a document", "delete a document")
_PROBES: Final = 40


@dataclass(frozen=True, slots=True)
class Change:
    """What a write is about: the name, the text and the vector of a document. New ones are named by a number that
    no other has."""

    name: str
    text: str
    vector: list[float]

    @classmethod
    def of(cls, kind: str, number: int) -> Change:
        random = np.random.default_rng(number)
        text = " ".join(data.spelling(int(word)) for word in random.integers(0, 5_000, 30))
        vector: list[float] = np.round(random.normal(size=DIMENSION), 4).tolist()
        is_new = kind == "insert a document"
        return cls(f"new{number}" if is_new else f"d{number % COUNT}", text, vector)


@dataclass(frozen=True, slots=True)
class Ours:
    """OmniGraph through its public interface, with its indexes."""

    graph: Any
    session: Any

    @classmethod
    def open(cls, store: Path, home: Path) -> Ours:  # noqa: ARG003

        session = engines.OmniGraph(DIMENSION, indexed=True).open_at(store, read_only=False)
        return cls(session.graph, session)

    def ask(self, question: Question) -> Sequence[Row]:
        rows: Sequence[Row] = self.session.ask(question)
        return rows

    def write(self, kind: str, number: int) -> None:
        change = Change.of(kind, number)
        text = {
            "insert a document": ("insert Doc { name: $name, group: 1, text: $text, vector: $vector }"),
            "update a document": "update Doc set { text: $text, vector: $vector } where name = $name",
            "delete a document": "delete Doc where name = $name",
        }[kind]
        kinds = {"name": "String", "text": "String", "vector": f"Vector({DIMENSION})"}
        used = {name: getattr(change, name) for name in kinds if f"${name}" in text}
        params = ", ".join(f"${name}: {kinds[name]}" for name in used)
        self.graph.mutate(f"query m({params}) {{ {text} }}", used)


@dataclass(frozen=True, slots=True)
class LanceDB:
    """LanceDB with an index of texts and one of vectors; what the indexes lack it scans."""

    table: Any

    @classmethod
    def open(cls, store: Path, home: Path) -> LanceDB:  # noqa: ARG003
        return cls(importlib.import_module("lancedb").connect(str(store)).open_table("docs"))

    def ask(self, question: Question) -> Sequence[Row]:
        return engines.asked_of_lancedb(self.table, question, None, _PROBES)

    def write(self, kind: str, number: int) -> None:
        change = Change.of(kind, number)
        where, values = f"name = '{change.name}'", {"text": change.text, "vector": change.vector}
        if kind == "insert a document":
            self.table.add([{"name": change.name, "group": 1, **values}])
        elif kind == "update a document":
            self.table.update(where=where, values=values)
        else:
            self.table.delete(where)


@dataclass(frozen=True, slots=True)
class LanceStore:
    """How LanceDB's store is filled."""

    def store(self) -> str:
        return "lancedb"

    def build(self, home: Path, to: Path) -> None:
        lancedb, index = importlib.import_module("lancedb"), importlib.import_module("lancedb.index")
        table = lancedb.connect(str(to)).create_table("docs", data.read(home).arrow())
        table.create_index("name", config=index.BTree())
        table.create_index("text", config=index.FTS())
        table.create_index("vector", config=index.IvfFlat(distance_type="l2"))


@dataclass(frozen=True, slots=True)
class DuckDB:
    """DuckDB, which compares all vectors; its index of texts is an extension, and does not follow writes."""

    connection: Any

    @classmethod
    def open(cls, store: Path, home: Path) -> DuckDB:  # noqa: ARG003
        connection = importlib.import_module("duckdb").connect(str(store))
        connection.execute("SET enable_progress_bar = false")
        return cls(connection)

    def ask(self, question: Question) -> Sequence[Row]:
        if question.texts["kind"] == TEXT:
            raise CannotAnswer("its index of texts does not follow writes")
        text = f"SELECT name FROM Doc ORDER BY array_distance(vector, $q::FLOAT[{DIMENSION}]) LIMIT {BEST}"
        rows: list[Row] = self.connection.execute(text, {"q": question.params["vector"]}).fetchall()
        return rows

    def write(self, kind: str, number: int) -> None:
        change = Change.of(kind, number)
        text = {
            "insert a document": f"INSERT INTO Doc VALUES ($name, $text, $vector::FLOAT[{DIMENSION}])",
            "update a document": (
                f"UPDATE Doc SET text = $text, vector = $vector::FLOAT[{DIMENSION}] WHERE name = $name"
            ),
            "delete a document": "DELETE FROM Doc WHERE name = $name",
        }[kind]
        values = {"name": change.name, "text": change.text, "vector": change.vector}
        self.connection.execute(text, {name: value for name, value in values.items() if f"${name}" in text})


@dataclass(frozen=True, slots=True)
class DuckStore:
    """How DuckDB's store is filled."""

    def store(self) -> str:
        return "duckdb.db"

    def build(self, home: Path, to: Path) -> None:
        connection = importlib.import_module("duckdb").connect(str(to))
        connection.register("docs", _columns(home))
        connection.execute(f"CREATE TABLE Doc(name VARCHAR PRIMARY KEY, text VARCHAR, vector FLOAT[{DIMENSION}])")
        connection.execute("INSERT INTO Doc SELECT name, text, vector FROM docs")
        connection.close()


@dataclass(frozen=True, slots=True)
class Cypher:
    """Kuzu, or its successor; both compare all vectors, and have no index of texts without an extension."""

    connection: Any
    database: Any

    @classmethod
    def open(cls, package: str, store: Path, home: Path) -> Cypher:  # noqa: ARG003
        engine = importlib.import_module(package)
        database = engine.Database(str(store))
        return cls(engine.Connection(database), database)

    def ask(self, question: Question) -> Sequence[Row]:
        if question.texts["kind"] == TEXT:
            raise CannotAnswer("it has no index of texts without an extension")
        text = (
            f"MATCH (d:Doc) RETURN d.name, array_distance(d.vector, CAST($q, 'FLOAT[{DIMENSION}]')) AS far "
            f"ORDER BY far LIMIT {BEST}"
        )
        result, rows = self.connection.execute(text, {"q": question.params["vector"]}), []
        while result.has_next():
            rows.append(tuple(result.get_next()[:1]))
        return rows

    def write(self, kind: str, number: int) -> None:
        change = Change.of(kind, number)
        vector = f"CAST($vector, 'FLOAT[{DIMENSION}]')"
        text = {
            "insert a document": f"CREATE (:Doc {{name: $name, text: $text, vector: {vector}}})",
            "update a document": f"MATCH (d:Doc {{name: $name}}) SET d.text = $text, d.vector = {vector}",
            "delete a document": "MATCH (d:Doc {name: $name}) DELETE d",
        }[kind]
        values = {"name": change.name, "text": change.text, "vector": change.vector}
        self.connection.execute(text, {name: value for name, value in values.items() if f"${name}" in text})


@dataclass(frozen=True, slots=True)
class CypherStore:
    """How the store of Kuzu, or of its successor, is filled."""

    package: str

    def store(self) -> str:
        return f"{self.package}.db"

    def build(self, home: Path, to: Path) -> None:
        parquet = importlib.import_module("pyarrow.parquet")
        engine = importlib.import_module(self.package)
        rows = to.with_suffix(".parquet")
        parquet.write_table(_columns(home), rows)
        connection = engine.Connection(engine.Database(str(to)))
        columns = f"name STRING, text STRING, vector FLOAT[{DIMENSION}], PRIMARY KEY (name)"
        connection.execute(f"CREATE NODE TABLE Doc({columns})")
        connection.execute(f"COPY Doc FROM '{rows}'")
        rows.unlink()


def _columns(home: Path) -> pa.Table:
    return data.read(home).arrow().select(["name", "text", "vector"])


def questions(home: Path) -> list[Question]:
    """One about vectors, one about texts."""
    found = data.questions(home)
    return [found[NEAREST][0], found[TEXT][0]]


def contestants(home: Path) -> list[Contestant]:
    """Every engine, ours first, and the store that ours copies."""
    return [
        Contestant("omnigraph", "omnigraph", engines.OmniGraph(DIMENSION, indexed=True), Ours.open, home),
        Contestant("lancedb", "lancedb", LanceStore(), LanceDB.open, home),
        Contestant("duckdb", "duckdb", DuckStore(), DuckDB.open, home),
        *(
            Contestant(name, name, CypherStore(name), partial(Cypher.open, name), home)
            for name in ("kuzu", "ladybug")
        ),
    ]
