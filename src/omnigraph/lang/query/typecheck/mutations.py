"""Type checking of insert, update and delete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice

from omnigraph.lang.diagnostics import Remedy, suggest
from omnigraph.lang.query.ir import ROW
from omnigraph.lang.query.syntax.clauses import Requirement
from omnigraph.lang.query.syntax.expressions import NO_NULL, AliasRef, Expression, PropertyRef, Variable
from omnigraph.lang.query.syntax.parts import of_properties, parts_of
from omnigraph.lang.query.syntax.queries import (
    Assignment,
    Condition,
    Delete,
    Insert,
    MutationBody,
    Statement,
    Update,
)
from omnigraph.lang.query.typecheck.fits import check_fits, check_stored
from omnigraph.lang.query.typecheck.operands import check_condition
from omnigraph.lang.query.typecheck.scope import Bound, Context, Scope
from omnigraph.lang.schema.catalog import EdgeType, EntityType, NodeType, Property
from omnigraph.lang.source import Name
from omnigraph.lang.values import STRING, Scalar

_SHOWN_MISSING = 20
THE_ROW = Variable(ROW)
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
            _check_assignments(target, assignments, statement.type_name, context)
            _check_identity(target, assignments, context)
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
        elif _is_known(target, assignment.value, context):
            _check_value(target, prop, of_properties(assignment.value, THE_ROW), context)
    if not seen:
        context.report("T10", f"nothing is assigned to {target.name}", type_name.span, "assign a property")


def _check_value(target: EntityType, prop: Property, value: Expression, context: Context) -> None:
    if prop.type.is_blob and isinstance(value, Variable):
        given = context.parameters[value.name]
        if given is not None and given.is_plain and given.scalar in (Scalar.STRING, Scalar.BLOB):
            return
    if check_fits(target.name, prop, value, row_scope(target), context):
        check_stored(target.name, prop, value, context)


def _is_known(target: EntityType, value: Expression, context: Context) -> bool:
    """Are all names in a value parameters, or properties of the row?"""
    before = context.diagnostics.count
    for part in parts_of(value):
        match part:
            case Variable(name) if name not in context.parameters:
                context.report(
                    "T14",
                    f"`${name}` is not a parameter of this query",
                    part.span,
                    partial(suggest, name, context.parameters, "$", "declare it: `query name($x: String)`"),
                )
            case PropertyRef(variable, name):
                context.report(
                    "T14",
                    f"`${variable.name}.{name}` cannot be written in a mutation",
                    part.span,
                    f"properties of the row stand alone: `{name}`",
                )
            case AliasRef(name) if name == "null":
                context.report("T11", "`null` is no value here", part.span, NO_NULL)
            case AliasRef(name) if _column(target, name) is None:
                _unknown_property(target, Name(name, part.span), context)
    return context.diagnostics.count == before


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


def _check_identity(target: EntityType, assignments: Iterable[Assignment], context: Context) -> None:
    """What makes an entity the one it is cannot be updated: its key, and the ends of an edge."""
    for assignment in assignments:
        name = assignment.property
        if name.text in target.key:
            kind = "node" if isinstance(target, NodeType) else "edge"
            context.report(
                "Q109",
                f"cannot update @key property {target.name}.{name}",
                name.span,
                f"the key is the {kind}'s identity; delete the {kind} and insert another",
            )
        elif isinstance(target, EdgeType) and name.text in _ENDPOINTS:
            context.report(
                "T16",
                f"the ends of edge {target.name} cannot be updated",
                name.span,
                "delete the edge and insert another",
            )


def _check_where(target: EntityType, where: Iterable[Condition | Requirement], context: Context) -> None:
    for condition in where:
        if isinstance(condition, Requirement):
            if _is_known(target, condition.condition, context):
                found = of_properties(condition.condition, THE_ROW)
                check_condition(found, row_scope(target), context)
            continue
        prop = _column(target, condition.property.text)
        if prop is None:
            _unknown_property(target, condition.property, context)
        elif prop.type.is_blob:
            context.report("T11", f"a Blob cannot be compared: {target.name}.{prop.name}", condition.property.span)
        elif prop.type.is_vector:
            context.report(
                "T7", f"a vector cannot be compared: {target.name}.{prop.name}", condition.property.span
            )
        elif _is_known(target, condition.value, context):
            fits = check_fits(target.name, prop, condition.value, Scope(), context)
            if fits and prop.type.is_list:
                context.warn(
                    "L302", "a comparison with a whole list never matches", condition.span, "compare single values"
                )


def row_scope(target: EntityType) -> Scope:
    """The scope of a statement: the row it updates or deletes, with the ends of an edge."""
    scope = Scope()
    whole: EntityType = target
    if isinstance(target, EdgeType):
        whole = replace(target, properties={**target.properties, **_ENDPOINTS})
    scope.own[THE_ROW.name] = Bound(whole)
    return scope


def _unknown_property(target: EntityType, name: Name, context: Context) -> None:
    kind = "edge" if isinstance(target, EdgeType) else "node"
    known = chain(target.properties, _ENDPOINTS if kind == "edge" else ())
    remedy: Remedy = partial(suggest, name.text, known)
    if name.text == "id":
        remedy = "ids are not properties; use the key"
    context.report("T11", f"{kind} {target.name} has no property `{name}`", name.span, remedy)
