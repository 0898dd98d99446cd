"""Matching in the reference interpreter: a bag of rows, which one operation after the other makes anew."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from tests.read.reference_expressions import computed
from tests.read.reference_search import Embed, bm25, cosine, fused, l2, matches, matches_fuzzily, ranks
from tests.read.reference_values import (
    Entity,
    Operand,
    Refused,
    holds,
    property_of,
    round_f32,
)

from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType
from omnigraph.lang.values import ValueType

Row = Mapping[str, Entity | None]
"""What each variable is; None where an optional block did not match."""


@dataclass(frozen=True)
class GraphData:
    """A whole graph: nodes as `type → id → properties`, edges as `type → (id, source, target, properties)`."""

    catalog: Catalog
    nodes: Mapping[str, Mapping[str, Mapping[str, Any]]]
    edges: Mapping[str, Sequence[tuple[str, str, str, Mapping[str, Any]]]]

    @cached_property
    def all_nodes(self) -> dict[str, dict[str, Entity]]:
        """The nodes of every type by id."""
        return {
            node.name: {
                node_id: Entity(node.name, node_id, {**values, "id": node_id}, _types(node))
                for node_id, values in self.nodes.get(node.name, {}).items()
            }
            for node in self.catalog.nodes.values()
        }

    @cached_property
    def all_edges(self) -> dict[str, list[Entity]]:
        """The edges of every type whose ends both exist."""
        return {
            edge.name: [
                Entity(edge.name, edge_id, {**values, "id": edge_id, "src": source, "dst": target}, _types(edge))
                for edge_id, source, target, values in self.edges.get(edge.name, ())
                if source in self.all_nodes[edge.source] and target in self.all_nodes[edge.target]
            ]
            for edge in self.catalog.edges.values()
        }

    @cached_property
    def touching(self) -> dict[tuple[str, str, str], list[Entity]]:
        """The edges of a type at a node: `src` if it is their source, `dst` if it is their target."""
        found: dict[tuple[str, str, str], list[Entity]] = {}
        for name, edges in self.all_edges.items():
            for edge in edges:
                for end in ("src", "dst"):
                    found.setdefault((name, end, edge.values[end]), []).append(edge)
        return found


def _types(entity: EntityType) -> Mapping[str, ValueType]:
    return {name: prop.type for name, prop in entity.properties.items()}


_REVERSED: Final = {
    ir.Direction.OUT: ir.Direction.IN,
    ir.Direction.IN: ir.Direction.OUT,
    ir.Direction.BOTH: ir.Direction.BOTH,
}


class TooManyRows(Exception):
    """The query has more rows on its way than a slow interpreter should look at."""


class Interpreter:
    """One execution: the data, the parameters, the present, and the most rows it may come to."""

    def __init__(
        self, data: GraphData, params: Mapping[str, Any], now: dt.datetime, embed: Embed, most: int
    ) -> None:
        self.data = data
        self.most = most
        self.params = {**params, ir.NOW: now}
        self.embed = embed

    def rows(self, operations: Iterable[ir.Operation], rows: list[Row]) -> list[Row]:
        """The bag of rows behind the operations."""
        for operation in operations:
            rows = [made for row in rows for made in self._step(operation, row)]
            if len(rows) > self.most:
                raise TooManyRows(len(rows))
        return rows

    def _step(self, operation: ir.Operation, row: Row) -> Iterator[Row]:
        match operation:
            case ir.NodeScan(variable, type_name, filters):
                for node in self.data.all_nodes[type_name].values():
                    found: Row = {**row, variable: node}
                    if self._all_hold(filters, found):
                        yield found
            case ir.Expand():
                for found in self._expand(operation, row):
                    if operation.closes is not None:
                        if found[operation.target] is row[operation.closes]:
                            yield found
                    elif self._all_hold(operation.target_filters, found):
                        yield found
            case ir.Filter():
                if self._all_hold([operation], row):
                    yield row
            case ir.Optionally(inner, introduces):
                yield from self.rows(inner, [row]) or [{**row, **dict.fromkeys(introduces)}]
            case ir.AntiJoin(_, inner):
                if not self.rows(inner, [row]):
                    yield row

    def _expand(self, expand: ir.Expand, row: Row) -> Iterator[Row]:
        source = row[expand.source]
        if source is None:
            return
        edge, targets = self.data.catalog.followed(expand.edge_type), self.data.all_nodes[expand.target_type]
        if expand.edge_variable is not None:
            for one, reached in self._steps(edge, source.id, expand.direction):
                yield {**row, expand.edge_variable: one, expand.target: targets[reached]}
            return
        for reached in self._reached(edge, source.id, expand):
            yield {**row, expand.target: targets[reached]}

    def _steps(self, edge: EdgeType, node_id: str, direction: ir.Direction) -> Iterator[tuple[Entity, str]]:
        """The edges at a node and where they lead; both ways, a loop leads once."""
        if direction is not ir.Direction.IN:
            for one in self._touching(edge, "src", node_id):
                yield one, one.values["dst"]
        if direction is not ir.Direction.OUT:
            for one in self._touching(edge, "dst", node_id):
                if direction is ir.Direction.IN or one.values["src"] != node_id:
                    yield one, one.values["src"]

    def _touching(self, edge: EdgeType, end: str, node_id: str) -> Iterator[Entity]:
        for one in edge.each:
            yield from self.data.touching.get((one.name, end, node_id), ())

    def _reached(self, edge: EdgeType, start: str, expand: ir.Expand) -> list[str]:
        """Breadth first; an edge between different types is followed once at most."""
        if not edge.symmetric:
            if expand.min_hops > 1:
                return []
            return list(dict.fromkeys(reached for _, reached in self._steps(edge, start, expand.direction)))
        if expand.backwards:
            lefts = self.data.all_nodes[expand.target_type]
            forth = _REVERSED[expand.direction]
            return [left for left in lefts if start in self._searched(edge, left, forth, expand)]
        return self._searched(edge, start, expand.direction, expand)

    def _searched(self, edge: EdgeType, start: str, direction: ir.Direction, expand: ir.Expand) -> list[str]:
        """What is found from the left variable of a clause."""
        frontier, visited, seen = [start], {start}, dict[str, None]()
        for hop in range(1, expand.max_hops + 1):
            following = []
            for at in frontier:
                for _, reached in self._steps(edge, at, direction):
                    if reached == at:
                        if hop >= expand.min_hops:
                            seen[reached] = None
                    elif reached not in visited:
                        visited.add(reached)
                        following.append(reached)
                        if hop >= expand.min_hops:
                            seen[reached] = None
            frontier = following
            if not frontier:
                break
        return list(seen)

    def _all_hold(self, conditions: Iterable[ir.Filter], row: Row) -> bool:
        return all(
            holds(
                self.operand(condition.left, row),
                condition.op,
                None if condition.right is None else self.operand(condition.right, row),
            )
            for condition in conditions
        )

    def operand(self, expression: ir.Expr, row: Row) -> Operand:
        """What an expression is in a row."""
        match expression:
            case ir.Prop(variable, name):
                return property_of(row[variable], name)
            case ir.Var(name):
                entity = row[name]
                return Operand(None if entity is None else entity.id)
            case ir.Param(name):
                return Operand(self.params[name], constant=True)
            case ir.Constant(value):
                return Operand(value, constant=True)
            case ir.TextMatch():
                return Operand(self._matches(expression, row))
            case ir.Call() | ir.Filter():
                return computed(expression, lambda part: self.operand(part, row))
            case _:
                raise AssertionError(expression)

    def _constant(self, expression: ir.Expr) -> Any:
        return self.operand(expression, {}).value

    def _matches(self, call: ir.TextMatch, row: Row) -> bool | None:
        text = property_of(row[call.variable], call.property).value
        query = self._constant(call.query)
        if call.edits is None:
            return None if text is None or query is None else matches(text, query)
        edits = self._constant(call.edits)
        if edits is not None and edits < 0:
            raise Refused("a negative number of edits")
        return None if None in (text, query, edits) else matches_fuzzily(text, query, edits)

    def scores(self, ranking: ir.Ranking, rows: Sequence[Row]) -> list[float | None]:
        """The score of the ranked entity in each row, or the distance."""
        if isinstance(ranking, ir.Rrf):
            k = self._constant(ranking.k)
            if k is None or k <= 0:
                raise Refused("the constant of rrf must be positive")
            arms = [self.places(arm, rows) for arm in (ranking.first, ranking.second)]
            ids = [self._ranked(ranking, row) for row in rows]
            return [None if one is None else fused([arm.get(one) for arm in arms], k) for one in ids]
        return [self._score(ranking, row[ranking.variable]) for row in rows]

    def places(self, arm: ir.Score, rows: Sequence[Row]) -> dict[str, int]:
        """The place of each entity that one arm of `rrf` ranks."""
        found = []
        for row, score in zip(rows, self.scores(arm, rows), strict=True):
            entity = row[arm.variable]
            if entity is not None and counts(arm, score):
                assert score is not None
                found.append((entity.id, score))
        return ranks(found, best_is_largest=arm.function == "bm25")

    @staticmethod
    def _ranked(ranking: ir.Rrf, row: Row) -> str | None:
        entity = row[ranking.first.variable]
        return None if entity is None else entity.id

    def _score(self, ranking: ir.Score, entity: Entity | None) -> float | None:
        stored, query = property_of(entity, ranking.property).value, self._constant(ranking.query)
        if entity is None or stored is None or query is None:
            return None
        if isinstance(ranking, ir.Nearest):
            wanted = self.embed(query, ranking.dimension) if isinstance(query, str) else round_f32(query)
            return cosine(stored, wanted) if ranking.metric == "cosine" else l2(stored, wanted)
        column = [node.values[ranking.property] for node in self.data.all_nodes[entity.type_name].values()]
        return bm25(stored, query, [text for text in column if text is not None])


def counts(ranking: ir.Ranking, score: float | None) -> bool:
    """Does a row with this score stay when the rows are ordered by it?"""
    return score is not None and (ranking.function != "bm25" or score > 0)
