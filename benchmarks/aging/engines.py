"""The engines that age: OmniGraph, and beside it two plain Lance tables, DuckDB and Kuzu.

An engine is imported in the processes that use it only. Every write is one durable commit of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Protocol

from benchmarks.aging.work import POPULATION, Step

SCHEMA: Final = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"


def _names() -> list[str]:
    return [f"p{number}" for number in range(POPULATION)]


class Session(Protocol):
    """An engine with its store open."""

    def do(self, step: Step) -> None:
        """Make one write durable."""

    def age(self, name: str) -> Sequence[int]:
        """The age of one person."""

    def known(self, name: str) -> Sequence[str]:
        """The names of the people whom a person has edges to."""

    def close(self) -> None:
        """Let go of the store."""


class Engine(Protocol):
    """An engine and the address of its store. Instances travel to other processes."""

    @property
    def name(self) -> str: ...

    @property
    def uri(self) -> str: ...

    def create(self) -> None:
        """Make a store with its first people and edges, loaded at once."""

    def open(self) -> Session:
        """Open the store to read and write."""


@dataclass(frozen=True, slots=True)
class OmniGraph:
    """OmniGraph through its public interface."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)
    name: str = "omnigraph"

    def create(self) -> None:
        import omnigraph

        graph = omnigraph.init(self.uri, SCHEMA, storage_options=self.options or None)
        records: list[dict[str, Any]] = [{"type": "Person", "data": {"name": name, "age": 0}} for name in _names()]
        records += [{"edge": "Knows", "from": one, "to": other} for one, other in pairwise(_names())]
        graph.load(records, mode="append")
        graph.close()

    def open(self) -> Session:
        import omnigraph

        return _OmniSession(omnigraph.open(self.uri, storage_options=self.options or None))


_MUTATIONS: Final = {
    "insert": "query q($n: String, $a: I32) { insert Person { name: $n, age: $a } }",
    "update": "query q($n: String, $a: I32) { update Person set { age: $a } where name = $n }",
    "delete": "query q($n: String) { delete Person where name = $n }",
    "connect": "query q($n: String, $o: String) { insert Knows { from: $n, to: $o } }",
    "disconnect": "query q($n: String, $o: String) { delete Knows where from = $n and to = $o }",
}


@dataclass(frozen=True, slots=True)
class _OmniSession:
    graph: Any

    def do(self, step: Step) -> None:
        """Updates and deletes that other writers overtook are made again, as their error says."""
        from omnigraph.errors import ConflictError

        text = _MUTATIONS[step.kind]
        values = {"n": step.name, "a": step.age, "o": step.other}
        params = {name: value for name, value in values.items() if f"${name}:" in text}
        while True:
            try:
                self.graph.mutate(text, params)
            except ConflictError:
                continue
            return

    def age(self, name: str) -> list[int]:
        text = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age } }"
        return [row["p.age"] for row in self.graph.query(text, {"n": name}).rows]

    def known(self, name: str) -> list[str]:
        text = "query q($n: String) { match { $p: Person { name: $n }  $p knows $o } return { $o.name } }"
        return [row["o.name"] for row in self.graph.query(text, {"n": name}).rows]

    def close(self) -> None:
        self.graph.close()


@dataclass(frozen=True, slots=True)
class PlainLance:
    """Two Lance tables, written with Lance's own calls: no keys, no rules, no history of the whole."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)
    name: str = "lance"

    def create(self) -> None:
        lance, pa = importlib.import_module("lance"), importlib.import_module("pyarrow")
        options = dict(self.options) or None
        names = _names()
        people = pa.table({"name": names, "age": pa.array([0] * len(names), pa.int32())})
        edges = pa.table({"src": names[:-1], "dst": names[1:]})
        lance.write_dataset(people, f"{self.uri}/people", storage_options=options, enable_stable_row_ids=True)
        lance.write_dataset(edges, f"{self.uri}/edges", storage_options=options, enable_stable_row_ids=True)

    def open(self) -> Session:
        lance = importlib.import_module("lance")
        options = dict(self.options) or None
        people, edges = (
            lance.dataset(f"{self.uri}/{name}", storage_options=options) for name in ("people", "edges")
        )
        return _LanceSession(people, edges)


@dataclass(slots=True)
class _LanceSession:
    people: Any
    edges: Any

    def do(self, step: Step) -> None:
        pa = importlib.import_module("pyarrow")
        match step.kind:
            case "insert":
                row = {"name": [step.name], "age": pa.array([step.age], pa.int32())}
                self.people = self.people.insert(pa.table(row)) or self.people
            case "update":
                self.people.update({"age": str(step.age)}, where=f"name = '{step.name}'")
            case "delete":
                self.people.delete(f"name = '{step.name}'")
                self.edges.delete(f"src = '{step.name}' or dst = '{step.name}'")
            case "connect":
                self.edges = self.edges.insert(pa.table({"src": [step.name], "dst": [step.other]})) or self.edges
            case "disconnect":
                self.edges.delete(f"src = '{step.name}' and dst = '{step.other}'")

    def age(self, name: str) -> list[int]:
        found: list[int] = self.people.to_table(["age"], filter=f"name = '{name}'")["age"].to_pylist()
        return found

    def known(self, name: str) -> list[str]:
        found: list[str] = self.edges.to_table(["dst"], filter=f"src = '{name}'")["dst"].to_pylist()
        return found

    def close(self) -> None:
        del self.people, self.edges


@dataclass(frozen=True, slots=True)
class DuckDB:
    """DuckDB in one file: people have a primary key, edges are indexed by their source."""

    uri: str
    name: str = "duckdb"

    def create(self) -> None:
        connection = importlib.import_module("duckdb").connect(self.uri)
        connection.execute("CREATE TABLE person(name VARCHAR PRIMARY KEY, age INTEGER)")
        connection.execute("CREATE TABLE knows(src VARCHAR, dst VARCHAR)")
        connection.execute("CREATE INDEX knows_src ON knows(src)")
        connection.execute(f"INSERT INTO person SELECT 'p' || i, 0 FROM range({POPULATION}) r(i)")
        edges = f"SELECT 'p' || i, 'p' || (i + 1) FROM range({POPULATION - 1}) r(i)"
        connection.execute(f"INSERT INTO knows {edges}")
        connection.close()

    def open(self) -> Session:
        return _DuckSession(importlib.import_module("duckdb").connect(self.uri))


@dataclass(frozen=True, slots=True)
class _DuckSession:
    connection: Any

    def do(self, step: Step) -> None:
        run = self.connection.execute
        match step.kind:
            case "insert":
                run("INSERT INTO person VALUES (?, ?)", [step.name, step.age])
            case "update":
                run("UPDATE person SET age = ? WHERE name = ?", [step.age, step.name])
            case "delete":
                run("BEGIN")
                run("DELETE FROM knows WHERE src = ? OR dst = ?", [step.name, step.name])
                run("DELETE FROM person WHERE name = ?", [step.name])
                run("COMMIT")
            case "connect":
                run("INSERT INTO knows VALUES (?, ?)", [step.name, step.other])
            case "disconnect":
                run("DELETE FROM knows WHERE src = ? AND dst = ?", [step.name, step.other])

    def age(self, name: str) -> list[int]:
        return [
            row[0] for row in self.connection.execute("SELECT age FROM person WHERE name = ?", [name]).fetchall()
        ]

    def known(self, name: str) -> list[str]:
        text = "SELECT p.name FROM knows k JOIN person p ON p.name = k.dst WHERE k.src = ?"
        return [row[0] for row in self.connection.execute(text, [name]).fetchall()]

    def close(self) -> None:
        self.connection.close()


@dataclass(frozen=True, slots=True)
class Kuzu:
    """Kuzu in one file."""

    uri: str
    name: str = "kuzu"

    def create(self) -> None:
        session = self.open()
        session.run("CREATE NODE TABLE Person(name STRING, age INT32, PRIMARY KEY (name))")
        session.run("CREATE REL TABLE Knows(FROM Person TO Person)")
        session.run("UNWIND $names AS name CREATE (:Person {name: name, age: 0})", names=_names())
        both = "UNWIND $names AS n MATCH (a:Person {name: n[1]}), (b:Person {name: n[2]})"
        session.run(f"{both} CREATE (a)-[:Knows]->(b)", names=[list(pair) for pair in pairwise(_names())])
        session.close()

    def open(self) -> _KuzuSession:
        kuzu = importlib.import_module("kuzu")
        database = kuzu.Database(self.uri)
        return _KuzuSession(database, kuzu.Connection(database))


@dataclass(frozen=True, slots=True)
class _KuzuSession:
    database: Any
    connection: Any

    def run(self, text: str, **params: object) -> list[Any]:
        result = self.connection.execute(text, params)
        rows = []
        while result.has_next():
            rows.append(result.get_next()[0])
        return rows

    def do(self, step: Step) -> None:
        both = "MATCH (a:Person {name: $n}), (b:Person {name: $o})"
        match step.kind:
            case "insert":
                self.run("CREATE (:Person {name: $n, age: $a})", n=step.name, a=step.age)
            case "update":
                self.run("MATCH (p:Person {name: $n}) SET p.age = $a", n=step.name, a=step.age)
            case "delete":
                self.run("MATCH (p:Person {name: $n}) DETACH DELETE p", n=step.name)
            case "connect":
                self.run(f"{both} CREATE (a)-[:Knows]->(b)", n=step.name, o=step.other)
            case "disconnect":
                text = "MATCH (a:Person {name: $n})-[k:Knows]->(b:Person {name: $o}) DELETE k"
                self.run(text, n=step.name, o=step.other)

    def age(self, name: str) -> list[int]:
        return self.run("MATCH (p:Person {name: $n}) RETURN p.age", n=name)

    def known(self, name: str) -> list[str]:
        return self.run("MATCH (:Person {name: $n})-[:Knows]->(o:Person) RETURN o.name", n=name)

    def close(self) -> None:
        self.connection.close()
        self.database.close()
