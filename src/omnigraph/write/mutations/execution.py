"""Running a mutation in memory: its statements in order, over the base and the rows written so far."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import BadValue
from omnigraph.formats.rows import BLOB_PREFIX, fresh_id, rows_of
from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import EntityType, NodeType
from omnigraph.lang.values import FLOATS, Scalar, fitting_float, in_range
from omnigraph.read.run.expressions import Expressions
from omnigraph.write.base import Base
from omnigraph.write.delta import one_chunk
from omnigraph.write.mutations.computing import column_of, expressions_of, value_of
from omnigraph.write.mutations.pending import PendingChanges
from omnigraph.write.mutations.predicates import where_clause
from omnigraph.write.vectors import fill_vectors

_ENDS = {"from": "src", "to": "dst"}


@dataclass(slots=True)
class Executed:
    """What a mutation did in memory. ``unembedded`` names vector properties that stayed null, and ``copied`` has
    the bytes at addresses that it assigns to blobs."""

    pending: PendingChanges
    affected_nodes: int = 0
    affected_edges: int = 0
    unembedded: set[str] = field(default_factory=set)
    copied: Mapping[str, bytes] = field(default_factory=dict)


def execute(
    mutation: ir.MutationIR,
    values: Mapping[str, Value],
    base: Base,
    embedder: EmbeddingClient | None,
    limit: int,
    copied: Mapping[str, bytes],
) -> Executed:
    """Run all statements; nothing is written to the store. ``limit`` is the memory, in bytes, they may take, and
    ``copied`` the bytes at addresses that are assigned to blobs."""
    run = Executed(PendingChanges(base, limit), copied=copied)
    given = expressions_of(mutation.name, values)
    for op in mutation.ops:
        match op:
            case ir.InsertOp():
                _insert(op, given, run, embedder)
            case ir.UpdateOp():
                _update(op, given, run, embedder)
            case ir.DeleteOp():
                _delete(op, given, run)
    return run


def _insert(op: ir.InsertOp, given: Expressions, run: Executed, embedder: EmbeddingClient | None) -> None:
    base = run.pending.base
    table_key = f"{op.kind}:{op.type_name}"
    entity = base.entity(table_key)
    columns: dict[str, list[Any]] = {}
    for assignment in op.assignments:
        name = _ENDS.get(assignment.property, assignment.property) if op.kind == "edge" else assignment.property
        columns[name] = [_stored(entity, name, assignment.value, given, run.copied)]
    if entity.key:
        columns["id"] = [_key_of(entity, {name: column[0] for name, column in columns.items()})]
    else:
        columns["id"] = [fresh_id()]
    rows = rows_of(entity, columns, 1)
    if isinstance(entity, NodeType):
        rows, skipped = fill_vectors(entity, rows, dict.fromkeys(columns, True), embedder)
        run.unembedded.update(skipped)
        run.affected_nodes += 1
    else:
        run.affected_edges += 1
    run.pending.write(table_key, rows, fresh=not entity.key)


def _key_of(entity: EntityType, values: Mapping[str, Any]) -> str:
    try:
        return entity.id_of(values)
    except ValueError as error:
        raise BadValue(f"the key of {entity.name}: {error}") from error


def _stored(
    entity: EntityType, name: str, expression: ir.Expr, given: Expressions, copied: Mapping[str, bytes]
) -> Any:
    """An assigned value as its column stores it: integers widen to floats, floats become integers without loss."""
    value = value_of(expression, given)
    prop = entity.properties.get(name)
    if prop is None or value is None:
        return value
    if prop.type.is_blob:
        if isinstance(value, str) and not value.startswith(BLOB_PREFIX):
            return copied[value]
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


def _update(op: ir.UpdateOp, given: Expressions, run: Executed, embedder: EmbeddingClient | None) -> None:
    base = run.pending.base
    table_key = f"{op.kind}:{op.type_name}"
    entity = base.entity(table_key)
    rows = run.pending.matching(table_key, where_clause(op, entity, base.schema(table_key), given))
    if not rows.num_rows:
        return
    patches = [(a.property, _patch(entity, a, rows, given, run.copied)) for a in op.assignments]
    for name, patch in patches:
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, rows.schema.field(name), patch)
    if isinstance(entity, NodeType):
        rows = _embedded(entity, rows, {name for name, _ in patches}, run, embedder)
        run.affected_nodes += rows.num_rows
    else:
        run.affected_edges += rows.num_rows
    run.pending.write(table_key, rows, fresh=False)


def _patch(
    entity: EntityType, assignment: ir.Assign, rows: pa.Table, given: Expressions, copied: Mapping[str, bytes]
) -> pa.ChunkedArray:
    """The new values of a property: one for all rows, or one computed from each."""
    name = assignment.property
    if any(isinstance(part, ir.Prop) for part in ir.parts(assignment.value)):
        return pa.chunked_array([column_of(entity, name, assignment.value, rows, given)])
    value = _stored(entity, name, assignment.value, given, copied)
    return rows_of(entity, {name: [value] * rows.num_rows}, rows.num_rows)[name]


def _embedded(
    node: NodeType, rows: pa.Table, assigned: Set[str], run: Executed, embedder: EmbeddingClient | None
) -> pa.Table:
    """The rows with new vectors where the source of a vector was assigned and the vector was not."""
    stale = {name for name, embed in node.embeds.items() if embed.source in assigned}
    if not stale:
        return rows
    rows, skipped = fill_vectors(node, rows, _kept_except(node, stale - assigned), embedder)
    run.unembedded.update(skipped)
    return rows


def _kept_except(node: NodeType, stale: Set[str]) -> dict[str, bool]:
    """For each vector property, whether its values are kept: all but those whose source has changed."""
    return {name: name not in stale for name in node.embeds}


def _delete(op: ir.DeleteOp, given: Expressions, run: Executed) -> None:
    base = run.pending.base
    table_key = f"{op.kind}:{op.type_name}"
    where = where_clause(op, base.entity(table_key), base.schema(table_key), given)
    ids = run.pending.ids_of(table_key, where)
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
