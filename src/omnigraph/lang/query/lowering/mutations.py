"""From a checked mutation to its intermediate representation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from omnigraph.lang.query import ir
from omnigraph.lang.query.lowering.expressions import lower_expression
from omnigraph.lang.query.lowering.reads import COMPARISONS
from omnigraph.lang.query.syntax import Assignment, Condition, Delete, Insert, MutationBody, QuerySyntax, Update
from omnigraph.lang.query.typecheck.scope import Scope
from omnigraph.lang.schema.catalog import Catalog, Property
from omnigraph.lang.values import FLOATS, INTEGERS, STRING, Scalar, ValueType

_NOTHING = Scope()


def lower_mutation(
    query: QuerySyntax, body: MutationBody, catalog: Catalog, params: Mapping[str, ValueType]
) -> ir.MutationIR:
    """The operations of a mutation that has passed the type checker."""
    ops: list[ir.MutationOp] = []
    for statement in body.statements:
        name = statement.type_name.text
        is_node = name in catalog.nodes
        properties = (catalog.nodes[name] if is_node else catalog.edges[name]).properties
        match statement:
            case Insert(_, assignments):
                assigned = _assignments(assignments, properties, params)
                ops.append(ir.InsertOp("node" if is_node else "edge", name, assigned))
            case Update(_, assignments, where):
                assigned = _assignments(assignments, properties, params)
                ops.append(ir.UpdateOp(name, assigned, _predicates(where, params)))
            case Delete(_, where):
                ops.append(ir.DeleteOp("node" if is_node else "edge", name, _predicates(where, params)))
    return ir.MutationIR(query.name.text, params, tuple(ops))


def _assignments(
    assignments: Iterable[Assignment], properties: Mapping[str, Property], params: Mapping[str, ValueType]
) -> tuple[ir.Assign, ...]:
    """Assigned values, with literals already of the property's type."""
    assigned = []
    for assignment in assignments:
        name = assignment.property.text
        value = lower_expression(assignment.value, _NOTHING, params)
        wanted = properties[name].type if name in properties else STRING
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


def _predicates(where: Iterable[Condition], params: Mapping[str, ValueType]) -> tuple[ir.Predicate, ...]:
    return tuple(
        ir.Predicate(c.property.text, COMPARISONS[c.operator], lower_expression(c.value, _NOTHING, params))
        for c in where
    )
