"""Running a mutation in memory: its statements in order, over the base and the rows written so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import BadValue
from omnigraph.formats.rows import fresh_id, rows_of
from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import EntityType, NodeType
from omnigraph.lang.values import FLOATS, Scalar, fitting_float, in_range
from omnigraph.write.base import Base
from omnigraph.write.delta import one_chunk
from omnigraph.write.mutations.pending import PendingChanges
from omnigraph.write.mutations.predicates import evaluate, where_clause
from omnigraph.write.vectors import fill_vectors

_ENDS = {"from": "src", "to": "dst"}


@dataclass(slots=True)
class Executed:
    """What a mutation did in memory. ``unembedded`` names vector properties that stayed null."""

    pending: PendingChanges
    affected_nodes: int = 0
    affected_edges: int = 0
    unembedded: set[str] = field(default_factory=set)


def execute(
    mutation: ir.MutationIR,
    values: Mapping[str, Value],
    base: Base,
    embedder: EmbeddingClient | None,
    limit: int,
) -> Executed:
    """Run all statements; nothing is written to the store. ``limit`` is the memory, in bytes, they may take."""
    run = Executed(PendingChanges(base, limit))
    for op in mutation.ops:
        match op:
            case ir.InsertOp():
                _insert(op, values, run, embedder)
            case ir.UpdateOp():
                _update(op, values, run, embedder)
            case ir.DeleteOp():
                _delete(op, values, run)
    return run


def _insert(op: ir.InsertOp, values: Mapping[str, Value], run: Executed, embedder: EmbeddingClient | None) -> None:
    base = run.pending.base
    table_key = f"{op.kind}:{op.type_name}"
    entity = base.entity(table_key)
    given: dict[str, list[Any]] = {}
    for assignment in op.assignments:
        name = _ENDS.get(assignment.property, assignment.property) if op.kind == "edge" else assignment.property
        given[name] = [_stored(entity, name, assignment.value, values)]
    keyed = isinstance(entity, NodeType) and bool(entity.key)
    if isinstance(entity, NodeType) and keyed:
        given["id"] = [_key_of(entity, {name: column[0] for name, column in given.items()})]
    else:
        given["id"] = [fresh_id()]
    rows = rows_of(entity, given, 1)
    if isinstance(entity, NodeType):
        rows, skipped = fill_vectors(entity, rows, dict.fromkeys(given, True), embedder)
        run.unembedded.update(skipped)
        run.affected_nodes += 1
    else:
        run.affected_edges += 1
    run.pending.write(table_key, rows, fresh=not keyed)


def _key_of(node: NodeType, values: Mapping[str, Any]) -> str:
    try:
        return node.id_of(values)
    except ValueError as error:
        raise BadValue(f"the key of {node.name}: {error}") from error


def _stored(entity: EntityType, name: str, expression: ir.Expr, values: Mapping[str, Value]) -> Any:
    """An assigned value as its column stores it: integers widen to floats, floats become integers without loss."""
    value = evaluate(expression, values)
    prop = entity.properties.get(name)
    if prop is None or value is None:
        return value
    try:
        if isinstance(value, tuple):
            return [_number(prop.type.scalar, item) for item in value]
        return _number(prop.type.scalar, value)
    except ValueError as error:
        source = f", the value of parameter '{expression.name}'" if isinstance(expression, ir.Param) else ""
        reason = f"{entity.name}.{prop.name} is {prop.type.required()} and cannot hold {error}{source}"
        raise BadValue(reason) from None


def _number(scalar: Scalar, value: Value) -> Value:
    """A number as a scalar type has it, anything else as it is; ValueError shows a number that does not fit."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if scalar in FLOATS:
        number = fitting_float(value, scalar)
        if number is None:
            raise ValueError(value)
        return number
    if value != int(value) or not in_range(value, scalar):
        raise ValueError(value)
    return int(value)


def _update(op: ir.UpdateOp, values: Mapping[str, Value], run: Executed, embedder: EmbeddingClient | None) -> None:
    base = run.pending.base
    table_key = f"node:{op.type_name}"
    node = base.catalog.nodes[op.type_name]
    rows = run.pending.matching(table_key, where_clause(op.predicates, base.schema(table_key), values))
    if not rows.num_rows:
        return
    assigned = {a.property: _stored(node, a.property, a.value, values) for a in op.assignments}
    patch = rows_of(node, {name: [value] * rows.num_rows for name, value in assigned.items()}, rows.num_rows)
    for name in assigned:
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, patch.schema.field(name), patch[name])
    stale = {name: name in assigned for name, embed in node.embeds.items() if embed.source in assigned}
    if stale:
        narrowed = {name: kept for name, kept in stale.items() if not kept}
        rows, skipped = fill_vectors(node, rows, _kept_except(node, narrowed), embedder)
        run.unembedded.update(skipped)
    run.affected_nodes += rows.num_rows
    run.pending.write(table_key, rows, fresh=False)


def _kept_except(node: NodeType, stale: Mapping[str, bool]) -> dict[str, bool]:
    """For each vector property, whether its values are kept: all but those whose source has changed."""
    return {name: name not in stale for name in node.embeds}


def _delete(op: ir.DeleteOp, values: Mapping[str, Value], run: Executed) -> None:
    base = run.pending.base
    table_key = f"{op.kind}:{op.type_name}"
    where = where_clause(op.predicates, base.schema(table_key), values)
    ids = one_chunk(base.scan(table_key, ["id"], where.sql)["id"])
    if not len(ids):
        return
    if op.kind == "edge":
        run.affected_edges += run.pending.delete(table_key, ids)
        return
    run.affected_nodes += run.pending.delete(table_key, ids)
    for edge in base.catalog.incident[op.type_name]:
        for column, end in (("src", edge.source), ("dst", edge.target)):
            if end == op.type_name:
                touching = base.rows_with(edge.table_key, {column: ids}, ["id"])
                run.affected_edges += run.pending.delete(edge.table_key, one_chunk(touching["id"]))
