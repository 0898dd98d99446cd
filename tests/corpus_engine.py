"""The engine of the scenarios: a real graph in this process's memory."""

from __future__ import annotations

import base64
import datetime as dt
import re
import uuid
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

import omnigraph
from omnigraph.embed.mock import MockClient
from omnigraph.errors import DataError
from omnigraph.graph import Graph
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.write.base import Base, capture

_GENERATED: Final = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_RECENT: Final = dt.timedelta(minutes=10)


class _AnyModel(MockClient):
    """The mock client under the name of the model that a schema asks for."""

    def __init__(self, catalog: Catalog) -> None:
        wanted = {embed.model for node in catalog.nodes.values() for embed in node.embeds.values()}
        self._model = next((model for model in wanted if model is not None), "mock")

    @property
    def model(self) -> str:
        return self._model


class GraphEngine:
    """A graph with the mock embedding client. It also checks what holds for every write: a refused one leaves
    no trace, and a mutation has a commit exactly if it affected something."""

    reads = True

    def __init__(self, schema: str) -> None:
        created = omnigraph.init(f"memory://{uuid.uuid4().hex}/g", schema)
        self.graph = omnigraph.open(created.address, embedder=_AnyModel(created.catalog))

    def load(self, jsonl: str, mode: Any) -> list[str]:
        """Load records; `node Person 2` and so on."""
        before = self.graph.snapshot()
        try:
            done = self.graph.load(jsonl.encode(), mode=mode)
        except DataError:
            assert self.graph.snapshot() == before
            raise
        nodes = [f"node {name} {count}" for name, count in done.nodes.items()]
        return nodes + [f"edge {name} {count}" for name, count in done.edges.items()]

    def query(self, text: str, name: str | None, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of a read, as scenarios write them."""
        return [shown_row(row) for row in self.graph.query(text, params, name=name).rows]

    def mutate(self, text: str, name: str | None, params: Mapping[str, Any]) -> tuple[int, int]:
        """Run a mutation."""
        before = self.graph.snapshot()
        try:
            done = self.graph.mutate(text, params, name=name)
        except DataError:
            assert self.graph.snapshot() == before
            raise
        assert (done.commit is None) == (done.affected_nodes + done.affected_edges == 0)
        assert done.commit is not None or self.graph.snapshot() == before
        return done.affected_nodes, done.affected_edges

    def table(self, table_key: str) -> list[dict[str, Any]]:
        """The rows of a table by id, as `shown_rows` shows them."""
        return shown_rows(self.graph, table_key)


def base_of(graph: Graph, branch: str = "main") -> Base:
    """The newest state of a branch, as a writer sees it."""
    repository = graph._repository
    return capture(repository, repository.branches.find(branch))


def stored_rows(graph: Graph, table_key: str, branch: str = "main") -> pa.Table:
    """The rows of a table by id."""
    return base_of(graph, branch).whole_rows(table_key, "true").sort_by("id")


def shown_rows(graph: Graph, table_key: str) -> list[dict[str, Any]]:
    """Rows as scenarios write them: without nulls, generated ids as `*`, this moment as `now`, bytes as base64."""
    rows = [
        {name: shown_value(value) for name, value in row.items() if value is not None}
        for row in stored_rows(graph, table_key).to_pylist()
    ]
    return sorted(rows, key=lambda row: (row["id"] == "*", row["id"] if row["id"] != "*" else str(row)))


def shown_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a result as scenarios write it, with its nulls."""
    return {name: shown_value(value) for name, value in row.items()}


def shown_value(value: Any) -> Any:
    """A value as scenarios write it."""
    match value:
        case str():
            return "*" if _GENERATED.fullmatch(value) else value
        case dt.datetime():
            is_recent = dt.datetime.now(dt.UTC) - value < _RECENT
            return "now" if is_recent else value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case dt.date():
            return value.isoformat()
        case {"data": bytes() as content}:
            return f"base64:{base64.b64encode(content).decode()}"
        case float():
            return float(f"{value:.6g}")
        case dict():
            return shown_row(value)
        case list():
            return [shown_value(item) for item in value]
        case _:
            return value
