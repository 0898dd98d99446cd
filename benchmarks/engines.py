"""The engines of the contests: Kuzu, Ladybug, lance-graph, DuckDB and OmniGraph, each set up as its manual says.

All get the same Parquet files, one per node and edge type. An engine is imported in its own process only.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.contest import OURS, Engine, Question, Row, Session
from benchmarks.kept import slices

if TYPE_CHECKING:
    from omnigraph.graph import Graph

_KUZU: Final = {
    pa.int32(): "INT32",
    pa.int64(): "INT64",
    pa.string(): "STRING",
    pa.bool_(): "BOOL",
    pa.date32(): "DATE",
}
_SQL: Final = {**_KUZU, pa.int32(): "INTEGER", pa.int64(): "BIGINT", pa.string(): "VARCHAR"}


@dataclass(frozen=True, slots=True)
class Model:
    """What a graph is made of. Nodes have an ``id``, in OmniGraph called ``id_``, edges ``src`` and ``dst``."""

    nodes: Sequence[str]
    edges: Mapping[str, tuple[str, str]]
    schema: str

    def path(self, home: Path, table: str) -> Path:
        """Where the rows of a type are."""
        return home / "tables" / f"{table}.parquet"

    def columns(self, home: Path, table: str, types: Mapping[pa.DataType, str]) -> str:
        """The columns of a type for a CREATE statement."""
        schema = pq.read_schema(self.path(home, table))
        return ", ".join(f"{column.name} {types[column.type]}" for column in schema)


@dataclass(frozen=True, slots=True)
class Kuzu:
    """Kuzu, or its successor with the same interface."""

    name: str
    package: str
    model: Model

    @property
    def modules(self) -> Sequence[str]:
        return [self.package]

    def version(self) -> str:
        return version(self.package)

    def store(self) -> str:
        return f"{self.name}-{self.version()}.db"

    def build(self, home: Path, to: Path) -> None:
        engine = importlib.import_module(self.package)
        database = engine.Database(str(to))
        connection = engine.Connection(database)
        for label in self.model.nodes:
            columns = self.model.columns(home, label, _KUZU)
            connection.execute(f"CREATE NODE TABLE {label}({columns}, PRIMARY KEY (id))")
        for label, (source, target) in self.model.edges.items():
            connection.execute(f"CREATE REL TABLE {label}(FROM {source} TO {target})")
        for label in (*self.model.nodes, *self.model.edges):
            connection.execute(f"COPY {label} FROM '{self.model.path(home, label)}'")
        connection.close()
        database.close()

    def open(self, home: Path) -> Session:
        engine = importlib.import_module(self.package)
        database = engine.Database(str(home / self.store()), read_only=True)
        return _KuzuSession(engine.Connection(database))


@dataclass(frozen=True, slots=True)
class _KuzuSession:
    connection: Any

    def ask(self, question: Question) -> list[Row]:
        result = self.connection.execute(question.text("cypher"), dict(question.params))
        rows = []
        while result.has_next():
            rows.append(tuple(result.get_next()))
        return rows


@dataclass(frozen=True, slots=True)
class DuckDB:
    """DuckDB: nodes have primary keys, rows lie in the order of their keys."""

    model: Model
    name: str = "duckdb"

    @property
    def modules(self) -> Sequence[str]:
        return ["duckdb"]

    def version(self) -> str:
        return version("duckdb")

    def store(self) -> str:
        return f"duckdb-{self.version()}.db"

    def build(self, home: Path, to: Path) -> None:
        connection = importlib.import_module("duckdb").connect(str(to))
        for label in (*self.model.nodes, *self.model.edges):
            columns, node = self.model.columns(home, label, _SQL), label in self.model.nodes
            connection.execute(f"CREATE TABLE {label}({columns}{', PRIMARY KEY (id)' if node else ''})")
            order = "id" if node else "src, dst"
            source = self.model.path(home, label)
            connection.execute(f"INSERT INTO {label} SELECT * FROM '{source}' ORDER BY {order}")
        connection.close()

    def open(self, home: Path) -> Session:
        connection = importlib.import_module("duckdb").connect(str(home / self.store()), read_only=True)
        connection.execute("SET enable_progress_bar = false")
        return _DuckSession(connection)


@dataclass(frozen=True, slots=True)
class _DuckSession:
    connection: Any

    def ask(self, question: Question) -> list[Row]:
        rows: list[Row] = self.connection.execute(question.text("sql"), dict(question.params)).fetchall()
        return rows


@dataclass(frozen=True, slots=True)
class LanceGraph:
    """lance-graph: it plans Cypher over Arrow tables in memory, which opening reads from Lance datasets."""

    model: Model
    name: str = "lance-graph"

    @property
    def modules(self) -> Sequence[str]:
        return ["lance", "lance_graph"]

    def version(self) -> str:
        return version("lance-graph")

    def store(self) -> str:
        return f"lance-graph-{self.version()}"

    def build(self, home: Path, to: Path) -> None:
        lance = importlib.import_module("lance")
        for label in (*self.model.nodes, *self.model.edges):
            table = pq.read_table(self.model.path(home, label))
            lower = table.rename_columns([name.lower() for name in table.column_names])
            lance.write_dataset(lower, str(to / f"{label}.lance"), mode="create")

    def open(self, home: Path) -> Session:
        lance, engine = importlib.import_module("lance"), importlib.import_module("lance_graph")
        config = engine.GraphConfig.builder()
        for label in self.model.nodes:
            config = config.with_node_label(label, "id")
        for label in self.model.edges:
            config = config.with_relationship(label, "src", "dst")
        folder = home / self.store()
        tables = {
            label: lance.dataset(str(folder / f"{label}.lance")).to_table().combine_chunks()
            for label in (*self.model.nodes, *self.model.edges)
        }
        return _LanceGraphSession(engine, config.build(), tables)


@dataclass(frozen=True, slots=True)
class _LanceGraphSession:
    engine: Any
    config: Any
    tables: Mapping[str, pa.Table]

    def ask(self, question: Question) -> list[Row]:
        """Parameters are not understood everywhere, so they are written into the text."""
        text = question.text("lance", "cypher")
        for name, value in question.params.items():
            text = text.replace(f"${name}", f"'{value}'" if isinstance(value, str) else str(value))
        query = self.engine.CypherQuery(text).with_config(self.config)
        used = {label: self.tables[label] for label in (*query.node_labels(), *query.relationship_types())}
        result = query.execute(used)
        return [tuple(row.values()) for row in result.to_pylist()]


@dataclass(frozen=True, slots=True)
class OmniGraph:
    """OmniGraph, loaded and read through its public interface."""

    model: Model
    name: str = OURS

    @property
    def modules(self) -> Sequence[str]:
        return ["omnigraph.opening"]

    def version(self) -> str:
        return version("omnigraph")

    def store(self) -> str:
        return f"{hashlib.sha256(self.model.schema.encode()).hexdigest()[:8]}.omni"

    def build(self, home: Path, to: Path) -> None:
        import omnigraph

        graph = omnigraph.init(to, self.model.schema)
        for label in (*self.model.nodes, *self.model.edges):
            for text in slices(self._records(home, label)):
                graph.load(text, mode="append")
        graph.ensure_indices()

    def _records(self, home: Path, label: str) -> Iterator[str]:
        table = pq.read_table(self.model.path(home, label))
        if label in self.model.edges:
            src, dst = table["src"].to_pylist(), table["dst"].to_pylist()
            return (f'{{"edge": "{label}", "from": "{a}", "to": "{b}"}}' for a, b in zip(src, dst, strict=True))
        rows = table.rename_columns(["id_", *table.column_names[1:]]).to_pylist()
        return (json.dumps({"type": label, "data": row}, default=str) for row in rows)

    def open(self, home: Path) -> Session:
        import omnigraph

        return _OmniSession(omnigraph.open(home / self.store(), read_only=True))


@dataclass(frozen=True, slots=True)
class _OmniSession:
    graph: Graph

    def ask(self, question: Question) -> list[Row]:
        result = self.graph.query(question.text("gq"), question.params)
        return [tuple(row.values()) for row in result.rows]


def peers_and_ours(model: Model) -> list[Engine]:
    """Everybody with a store, the peers first."""
    return [
        Kuzu("kuzu", "kuzu", model),
        Kuzu("ladybug", "ladybug", model),
        LanceGraph(model),
        DuckDB(model),
        OmniGraph(model),
    ]
