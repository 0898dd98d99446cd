"""From a checked mutation to its intermediate representation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from omnigraph.lang.query import ir
from omnigraph.lang.query.lowering.computed import COMPARISONS, conditions_of
from omnigraph.lang.query.lowering.expressions import lower_expression
from omnigraph.lang.query.syntax.clauses import Requirement
from omnigraph.lang.query.syntax.parts import of_properties
from omnigraph.lang.query.syntax.queries import (
    Assignment,
    Condition,
    Delete,
    Insert,
    MutationBody,
    QuerySyntax,
    Update,
)
from omnigraph.lang.query.typecheck.mutations import THE_ROW, row_scope
from omnigraph.lang.query.typecheck.scope import Scope
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.lang.values import FLOATS, INTEGERS, STRING, Scalar, ValueType

_NOTHING = Scope()


def lower_mutation(
    query: QuerySyntax, body: MutationBody, catalog: Catalog, params: Mapping[str, ValueType]
) -> ir.MutationIR:
    """The operations of a mutation that has passed the type checker."""
    ops: list[ir.MutationOp] = []
    for statement in body.statements:
        name = statement.type_name.text
        kind: Literal["node", "edge"] = "node" if name in catalog.nodes else "edge"
        target: EntityType = catalog.nodes[name] if kind == "node" else catalog.edges[name]
        match statement:
            case Insert(_, assignments):
                ops.append(ir.InsertOp(kind, name, _assignments(assignments, target, params)))
            case Update(_, assignments, where):
                assigned = _assignments(assignments, target, params)
                conditions = _conditions(where, target, params)
                ops.append(ir.UpdateOp(name, assigned, _predicates(where, params), conditions, kind))
            case Delete(_, where):
                conditions = _conditions(where, target, params)
                ops.append(ir.DeleteOp(kind, name, _predicates(where, params), conditions))
    return ir.MutationIR(query.name.text, params, tuple(ops))


def _assignments(
    assignments: Iterable[Assignment], target: EntityType, params: Mapping[str, ValueType]
) -> tuple[ir.Assign, ...]:
    """Assigned values, with literals already of the property's type."""
    assigned = []
    for assignment in assignments:
        name = assignment.property.text
        value = lower_expression(of_properties(assignment.value, THE_ROW), row_scope(target), params)
        wanted = target.properties[name].type if name in target.properties else STRING
        assigned.append(ir.Assign(name, _stored(value, wanted) if isinstance(value, ir.Constant) else value))
    return tuple(assigned)


def _stored(constant: ir.Constant, wanted: ValueType) -> ir.Constant:
    """The constant as the column stores it: integers widen to floats, whole floats become integers."""
    if isinstance(constant.value, tuple):
        return ir.Constant(tuple(_convert(v, wanted.scalar) for v in constant.value), wanted)
    return ir.Constant(_convert(constant.value, wanted.scalar), wanted)


def _convert(value: ir.Scalar, scalar: Scalar) -> ir.Scalar:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if scalar in FLOATS:
        return float(value)
    return int(value) if scalar in INTEGERS else value


def _predicates(
    where: Iterable[Condition | Requirement], params: Mapping[str, ValueType]
) -> tuple[ir.Predicate, ...]:
    return tuple(
        ir.Predicate(c.property.text, COMPARISONS[c.operator], lower_expression(c.value, _NOTHING, params))
        for c in where
        if isinstance(c, Condition)
    )


def _conditions(
    where: Iterable[Condition | Requirement], target: EntityType, params: Mapping[str, ValueType]
) -> tuple[ir.Filter, ...]:
    """The conditions that are no comparisons of a property with a value."""
    scope = row_scope(target)
    return tuple(
        condition
        for one in where
        if isinstance(one, Requirement)
        for condition in conditions_of(lower_expression(of_properties(one.condition, THE_ROW), scope, params))
    )
