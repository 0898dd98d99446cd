"""Type checking of insert, update and delete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice

from omnigraph.lang.diagnostics import Remedy, suggest
from omnigraph.lang.query.syntax import (
    Assignment,
    Condition,
    Delete,
    Expression,
    Insert,
    MutationBody,
    Statement,
    Update,
    Variable,
)
from omnigraph.lang.query.typecheck.fits import check_fits, check_stored
from omnigraph.lang.query.typecheck.scope import Context, Scope
from omnigraph.lang.schema.catalog import EdgeType, EntityType, NodeType, Property
from omnigraph.lang.source import Name
from omnigraph.lang.values import STRING, Scalar

_SHOWN_MISSING = 20
_ENDPOINTS = {name: Property(name, STRING, 0, None, ()) for name in ("from", "to")}


def check_mutation(query: str, body: MutationBody, context: Context) -> None:
    """Check every statement, and that deletes are not mixed with other writes."""
    writes = [s for s in body.statements if not isinstance(s, Delete)]
    deletes = [s for s in body.statements if isinstance(s, Delete)]
    if writes and deletes:
        context.report(
            "Q108",
            f"query `{query}` mixes inserts or updates with deletes",
            deletes[0].span,
            "split it into two queries; run both on a branch if readers must not see the state between them",
        )
    for statement in body.statements:
        _check_statement(statement, context)


def target_of(statement: Statement, context: Context) -> EntityType | None:
    """The type a statement writes: a node type of that name, or else an edge type."""
    name = statement.type_name.text
    return context.catalog.nodes.get(name) or context.catalog.edges.get(name)


def _check_statement(statement: Statement, context: Context) -> None:
    target = target_of(statement, context)
    if target is None:
        known = chain(context.catalog.nodes, context.catalog.edges)
        context.report(
            "T10",
            f"unknown type `{statement.type_name}`",
            statement.type_name.span,
            partial(suggest, statement.type_name.text, known),
        )
        return
    match statement:
        case Insert(_, assignments):
            _check_assignments(target, assignments, statement.type_name, context)
            _check_complete(target, assignments, statement.type_name, context)
        case Update(_, assignments, where):
            if isinstance(target, EdgeType):
                context.report(
                    "T16",
                    f"edge {target.name} cannot be updated",
                    statement.type_name.span,
                    "delete it and insert it again",
                )
                return
            _check_assignments(target, assignments, statement.type_name, context)
            _check_keys(target, assignments, context)
            _check_where(target, where, context)
        case Delete(_, where):
            _check_where(target, where, context)


def _column(target: EntityType, name: str) -> Property | None:
    """What a statement may name: a property, or an end of an edge."""
    ends = _ENDPOINTS if isinstance(target, EdgeType) else {}
    return target.properties.get(name) or ends.get(name)


def _check_assignments(
    target: EntityType, assignments: Iterable[Assignment], type_name: Name, context: Context
) -> None:
    seen: set[str] = set()
    for assignment in assignments:
        name = assignment.property.text
        if name in seen:
            context.report("T13", f"`{name}` is assigned twice", assignment.property.span)
            continue
        seen.add(name)
        prop = _column(target, name)
        if prop is None:
            _unknown_property(target, assignment.property, context)
        elif _is_parameter_or_literal(assignment.value, context):
            _check_value(target, prop, assignment.value, context)
    if not seen:
        context.report("T10", f"nothing is assigned to {target.name}", type_name.span, "assign a property")


def _check_value(target: EntityType, prop: Property, value: Expression, context: Context) -> None:
    if prop.type.is_blob and isinstance(value, Variable):
        given = context.parameters[value.name]
        if given is not None and given.is_plain and given.scalar in (Scalar.STRING, Scalar.BLOB):
            return
    if check_fits(target.name, prop, value, Scope(), context):
        check_stored(target.name, prop, value, context)


def _is_parameter_or_literal(value: Expression, context: Context) -> bool:
    if isinstance(value, Variable) and value.name not in context.parameters:
        context.report(
            "T14",
            f"`${value.name}` is not a parameter of this query",
            value.span,
            partial(suggest, value.name, context.parameters, "$", "declare it: `query name($x: String)`"),
        )
        return False
    return True


def _check_complete(
    target: EntityType, assignments: Iterable[Assignment], type_name: Name, context: Context
) -> None:
    """Everything required is assigned; a vector may be left to be computed from its source."""
    given = {assignment.property.text for assignment in assignments}
    missing = list(islice(_missing(target, given), _SHOWN_MISSING + 1))
    if missing:
        more = ", …" if len(missing) > _SHOWN_MISSING else ""
        shown = ", ".join(missing[:_SHOWN_MISSING])
        context.report("T12", f"insert {target.name} misses {shown}{more}", type_name.span)


def _missing(target: EntityType, given: set[str]) -> Iterator[str]:
    for prop in target.required:
        if prop.name in given:
            continue
        if prop.embed is None:
            yield f"`{prop.name}`"
        elif prop.embed.source not in given:
            yield f"`{prop.name}` or its source `{prop.embed.source}`"
    if isinstance(target, EdgeType):
        yield from (f"`{end}`" for end in _ENDPOINTS if end not in given)


def _check_keys(target: NodeType, assignments: Iterable[Assignment], context: Context) -> None:
    for assignment in assignments:
        if assignment.property.text in target.key:
            context.report(
                "Q109",
                f"cannot update @key property {target.name}.{assignment.property}",
                assignment.property.span,
                "the key is the node's identity; delete the node and insert another",
            )


def _check_where(target: EntityType, where: Iterable[Condition], context: Context) -> None:
    for condition in where:
        prop = _column(target, condition.property.text)
        if prop is None:
            _unknown_property(target, condition.property, context)
        elif prop.type.is_blob:
            context.report("T11", f"a Blob cannot be compared: {target.name}.{prop.name}", condition.property.span)
        elif prop.type.is_vector:
            context.report(
                "T7", f"a vector cannot be compared: {target.name}.{prop.name}", condition.property.span
            )
        elif _is_parameter_or_literal(condition.value, context):
            fits = check_fits(target.name, prop, condition.value, Scope(), context)
            if fits and prop.type.is_list:
                context.warn(
                    "L302", "a comparison with a whole list never matches", condition.span, "compare single values"
                )


def _unknown_property(target: EntityType, name: Name, context: Context) -> None:
    kind = "edge" if isinstance(target, EdgeType) else "node"
    known = chain(target.properties, _ENDPOINTS if kind == "edge" else ())
    remedy: Remedy = partial(suggest, name.text, known)
    if name.text == "id":
        remedy = "ids are not properties; use the key"
    context.report("T11", f"{kind} {target.name} has no property `{name}`", name.span, remedy)
