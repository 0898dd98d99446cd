"""The static descriptor of a query: what it reads, what it writes, what it returns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.values import StructType, ValueType, describe_kind
from omnigraph.records import dataclass

TableSet = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Operation:
    """What a query does, known without running it. Tables are `(kind, type name)` pairs."""

    result: tuple[tuple[str, ValueType | StructType], ...]
    reads: TableSet
    writes: TableSet

    def as_json(self) -> dict[str, Any]:
        return {
            "result": [{"name": name, **describe_kind(value_type)} for name, value_type in self.result],
            "reads": _tables_json(self.reads),
            "writes": _tables_json(self.writes),
        }


def describe_read(query: ir.ReadIR, catalog: Catalog) -> Operation:
    """The descriptor of a read; a traversal reads its edge and both node types."""
    parts = query.reads if isinstance(query, ir.UnionIR) else (query,)
    reads = frozenset(table for part in parts for table in _read_by(part.pipeline, catalog))
    columns = tuple((one[0].name, ir.result_type(one)) for one in ir.result_columns(query.columns))
    return Operation(columns, reads, frozenset())


def _read_by(operations: Iterable[ir.Operation], catalog: Catalog) -> Iterable[tuple[str, str]]:
    for operation in operations:
        match operation:
            case ir.NodeScan():
                yield "node", operation.type_name
            case ir.Expand():
                edge = catalog.followed(operation.edge_type)
                yield from (("edge", one.name) for one in edge.each)
                yield "node", edge.source
                yield "node", edge.target
            case ir.Optionally() | ir.AntiJoin():
                yield from _read_by(operation.inner, catalog)
            case ir.Filter():
                pass


def describe_mutation(mutation: ir.MutationIR, catalog: Catalog) -> Operation:
    """The descriptor of a mutation: targets are read and written, and a node takes its edges with it."""
    reads: set[tuple[str, str]] = set()
    writes: set[tuple[str, str]] = set()
    seen: set[tuple[type[ir.MutationOp], tuple[str, str]]] = set()
    for op in mutation.ops:
        kind = op.kind
        target = (kind, op.type_name)
        if (type(op), target) in seen:
            continue
        seen.add((type(op), target))
        reads.add(target)
        writes.add(target)
        if kind == "edge" and isinstance(op, ir.InsertOp):
            edge = catalog.edges[op.type_name]
            reads |= {("node", edge.source), ("node", edge.target)}
        if kind == "node" and isinstance(op, ir.DeleteOp):
            incident = {("edge", edge.name) for edge in catalog.incident[op.type_name]}
            reads |= incident
            writes |= incident
    return Operation((), frozenset(reads), frozenset(writes))


def _tables_json(tables: TableSet) -> list[dict[str, str]]:
    return [{"kind": kind, "type_name": name} for kind, name in sorted(tables)]
