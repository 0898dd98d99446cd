"""The reference interpreter as an engine of the scenarios: it writes to a real graph and reads whole tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any

from tests.corpus_engine import GraphEngine, base_of, shown_row
from tests.read.reference import MOST_ROWS, run
from tests.read.reference_results import Answer
from tests.read.reference_rows import GraphData

from omnigraph.graph import Graph
from omnigraph.lang.parameters import bind_parameters
from omnigraph.lang.query.compile import compile_read
from omnigraph.lang.schema.catalog import EntityType


class ReferenceEngine(GraphEngine):
    """A graph whose queries the reference interpreter answers."""

    def query(self, text: str, name: str | None, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows as scenarios write them."""
        return [shown_row(row) for row in reference_answer(self.graph, text, params, name).dictionaries]


def data_of(graph: Graph, branch: str = "main") -> GraphData:
    """Everything that is in a branch."""
    catalog, base = graph.catalog, base_of(graph, branch)
    nodes = {
        node.name: {row.pop("id"): row for row in base.whole_rows(node.table_key, "true").to_pylist()}
        for node in catalog.nodes.values()
    }
    edges = {
        edge.name: [
            (row.pop("id"), row.pop("src"), row.pop("dst"), row)
            for row in base.whole_rows(edge.table_key, "true").to_pylist()
        ]
        for edge in catalog.edges.values()
    }
    return GraphData(catalog, nodes, edges)


def records_of(data: GraphData) -> Iterator[dict[str, Any]]:
    """The records that would make such a graph, but for its blobs."""
    for node in data.catalog.nodes.values():
        for node_id, values in data.nodes[node.name].items():
            own = {} if node.key else {"id": node_id}
            yield {"type": node.name, "data": {**own, **_json_values(node, values)}}
    for edge in data.catalog.edges.values():
        for edge_id, source, target, values in data.edges[edge.name]:
            ends = {"from": source, "to": target}
            yield {"edge": edge.name, **ends, "data": {"id": edge_id, **_json_values(edge, values)}}


def _json_values(entity: EntityType, values: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in values.items() if not entity.properties[name].type.is_blob}
    return {name: _json_value(value) for name, value in plain.items() if value is not None}


def _json_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    return value.isoformat() if isinstance(value, dt.date) else value


def reference_answer(
    graph: Graph,
    text: str,
    params: Mapping[str, Any],
    name: str | None = None,
    data: GraphData | None = None,
    most: int = MOST_ROWS,
) -> Answer:
    """What the reference interpreter says to a query."""
    data = data or data_of(graph)
    compiled = compile_read(text, data.catalog, name)
    bound = bind_parameters(compiled.name, compiled.params, params)

    def embed(query: str, dimension: int) -> list[float]:
        client = graph._embedder()
        assert client is not None
        vector: list[float] = client.embed([query], dimension, "query")[0].tolist()
        return vector

    return run(compiled.ir, data, bound, dt.datetime.now(dt.UTC), embed, most)
