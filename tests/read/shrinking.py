"""Finding a small case in which two answers differ, by leaving out whatever does not matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from tests.read.agreement import Case, kind_of, loaded, report
from tests.read.graphs import Record, SchemaPlan, TypePlan, node_id
from tests.read.query_parts import Query

from omnigraph.errors import LanguageError
from omnigraph.graph import Graph
from omnigraph.lang.query.compile import compile_read
from omnigraph.lang.schema.catalog import load_catalog

_ATTEMPTS: Final = 400


def smallest(case: Case, differs: Callable[[Graph, Query], str]) -> str:
    """The report of the smallest case with the same kind of problem that a limited number of attempts finds."""
    attempts = _ATTEMPTS
    graph = loaded(case.schema, case.records, case.settings)
    problem = differs(graph, case.query)
    kind = kind_of(problem)
    progress = True
    while progress and attempts > 0:
        progress = False
        for candidate in _smaller(case):
            attempts -= 1
            if attempts <= 0:
                break
            found = _attempt(candidate, case, graph, differs)
            if found is not None and kind_of(found[1]) == kind:
                case, (graph, problem) = candidate, found
                progress = True
                break
    return report(case, graph, problem)


def _attempt(
    candidate: Case, case: Case, graph: Graph, differs: Callable[[Graph, Query], str]
) -> tuple[Graph, str] | None:
    """The graph and the problem of a candidate, if it is one."""
    try:
        compile_read(candidate.query.text, load_catalog(candidate.schema.text))
        same = candidate.schema is case.schema and candidate.records is case.records
        tried = graph if same else loaded(candidate.schema, candidate.records, candidate.settings)
    except LanguageError:
        return None
    problem = differs(tried, candidate.query)
    return (tried, problem) if problem else None


def _smaller(case: Case) -> Iterator[Case]:
    for query in case.query.smaller():
        yield replace(case, query=query)
    size = len(case.records) // 2
    while size:
        for start in range(0, len(case.records), size):
            yield _without(case, range(start, start + size))
        size //= 2
    for schema in _smaller_schemas(case.schema):
        yield replace(case, schema=schema, records=tuple(_fitting(case.records, schema)))


def _without(case: Case, positions: range) -> Case:
    """The case without some records, and without the edges of the nodes among them."""
    catalog = load_catalog(case.schema.text)
    gone = {
        (record["type"], node_id(catalog, record))
        for i, record in enumerate(case.records)
        if i in positions and "type" in record
    }
    kept = []
    for i, record in enumerate(case.records):
        edge = catalog.edges[record["edge"]] if "edge" in record else None
        ends = [] if edge is None else [(edge.source, record["from"]), (edge.target, record["to"])]
        if i not in positions and gone.isdisjoint(ends):
            kept.append(record)
    return replace(case, records=tuple(kept))


def _smaller_schemas(schema: SchemaPlan) -> Iterator[SchemaPlan]:
    for edge in schema.edges:
        yield replace(schema, edges=tuple(one for one in schema.edges if one is not edge))
    for node in schema.nodes:
        if not schema.edges_at(node.name):
            yield replace(schema, nodes=tuple(one for one in schema.nodes if one is not node))
    for node in schema.nodes:
        for smaller in _smaller_types(node):
            yield replace(schema, nodes=tuple(smaller if one is node else one for one in schema.nodes))
    for edge in schema.edges:
        for smaller in _smaller_types(edge):
            yield replace(schema, edges=tuple(smaller if one is edge else one for one in schema.edges))


def _smaller_types(entity: TypePlan) -> Iterator[TypePlan]:
    for prop in entity.properties:
        if prop.name not in entity.key:
            yield replace(entity, properties=tuple(one for one in entity.properties if one is not prop))


def _fitting(records: Sequence[Record], schema: SchemaPlan) -> Iterator[Record]:
    """The records of the types and properties that a schema has left."""
    types = {("type", one.name): one for one in schema.nodes} | {("edge", one.name): one for one in schema.edges}
    for record in records:
        kind = "type" if "type" in record else "edge"
        entity = types.get((kind, record[kind]))
        if entity is not None:
            names = {"id", *(prop.name for prop in entity.properties)}
            yield {**record, "data": {name: value for name, value in record["data"].items() if name in names}}
