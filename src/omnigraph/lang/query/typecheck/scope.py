"""What is known while one query is checked: its parameters, its variables, and where to report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import partial

from omnigraph.lang.diagnostics import Diagnostics, Remedy, suggest
from omnigraph.lang.query.syntax.expressions import PropertyRef, Variable
from omnigraph.lang.query.syntax.queries import ParameterSyntax
from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType, NodeType
from omnigraph.lang.source import Span
from omnigraph.lang.values import SCALAR_NAMES, ValueType
from omnigraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Bound:
    """A variable: the type it ranges over, and whether an `optional` may leave it null.

    ``type`` is None after a mistake that was reported, so that one mistake is reported once.
    """

    type: EntityType | None
    nullable: bool = False


@dataclass(slots=True)
class Context:
    """One query under examination."""

    catalog: Catalog
    diagnostics: Diagnostics
    warnings: Diagnostics
    parameters: dict[str, ValueType | None] = field(default_factory=dict)

    def report(self, code: str, message: str, span: Span, remedy: Remedy = None) -> None:
        """Note a type error."""
        self.diagnostics.report(code, "type error", message, span, remedy)

    def warn(self, code: str, message: str, span: Span, remedy: Remedy = None) -> None:
        """Note something that is legal and probably not meant."""
        self.warnings.report(code, "warning", message, span, remedy)

    def declare_parameters(self, parameters: tuple[ParameterSyntax, ...]) -> None:
        """Check and remember the query's parameters."""
        for parameter in parameters:
            name, declared = parameter.name.text, parameter.type
            if name == "__now" or name == "_":
                self.report("Q102", f"the parameter name `${name}` is reserved", parameter.name.span)
                continue
            if name in self.parameters:
                self.report("Q102", f"parameter `${name}` is declared twice", parameter.name.span)
                continue
            if declared is None:
                self.report(
                    "Q101",
                    f"unknown parameter type `{parameter.type_name}`",
                    parameter.type_span,
                    partial(suggest, parameter.type_name, (*SCALAR_NAMES, "Vector")),
                )
            elif declared.is_list and declared.is_blob:
                self.report("Q101", "a parameter cannot be a list of Blobs", parameter.type_span)
                declared = None
            self.parameters[name] = declared


class Scope:
    """The variables visible in one block: its own, and those of the blocks around it."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.own: dict[str, Bound] = {}

    def find(self, name: str) -> Bound | None:
        """The variable of that name, from the inside out."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.own:
                return scope.own[name]
            scope = scope.outer
        return None

    def names(self) -> Iterator[str]:
        """All visible names that a query can write."""
        scope: Scope | None = self
        while scope is not None:
            yield from (name for name in scope.own if "#" not in name)
            scope = scope.outer


def property_type(reference: PropertyRef, scope: Scope, context: Context) -> ValueType | None:
    """The type of `$x.p`, or None after reporting T6."""
    variable, name = reference.variable, reference.property.text
    bound = scope.find(variable.name)
    if bound is None:
        unbound_property(variable, scope, context)
        return None
    if bound.type is None:
        return None
    found = bound.type.properties.get(name)
    if found is None:
        kind = "node" if isinstance(bound.type, NodeType) else "edge"
        remedy: Remedy = partial(suggest, name, bound.type.properties)
        if name in ("id", "src", "dst", "from", "to"):
            remedy = "ids are not properties; return the variable itself for a node's id"
        elif isinstance(bound.type, EdgeType) and bound.type.members:
            remedy = "it stands for edges of several types; use what all of them have"
        context.report("T6", f"{kind} {bound.type.name} has no property `{name}`", reference.property.span, remedy)
        return None
    return found.type.or_null() if bound.nullable else found.type


def unbound_property(variable: Variable, scope: Scope, context: Context) -> None:
    """Report T6: a property of a variable that is not bound."""
    if variable.name in context.parameters:
        remedy: Remedy = f"`${variable.name}` is a parameter, and parameters have no properties"
    else:
        remedy = partial(suggest, variable.name, scope.names(), "$", "bind it first: `$x: Type`")
    context.report("T6", f"variable `${variable.name}` is not bound here", variable.span, remedy)
