"""The syntax tree of a .pg schema: what was written, in the order it was written.

Spans are not part of a tree's identity: two trees are equal when they say the same thing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from omnigraph.lang.source import NOWHERE, Name, Span
from omnigraph.lang.values import Scalar, ValueType


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal value. ``written`` is its source text, so that formatting keeps the author's spelling."""

    value: str | int | float | bool
    written: str | None = field(default=None, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class TypeSyntax:
    """A property type as written; ``members`` keeps the author's order."""

    scalar: Scalar
    is_list: bool = False
    nullable: bool = False
    members: tuple[Name, ...] | None = None
    dimension: int | None = None
    span: Span = field(default=NOWHERE, compare=False)

    def resolve(self) -> ValueType:
        """The type it denotes."""
        return self._resolved

    @cached_property
    def _resolved(self) -> ValueType:
        members = None if self.members is None else tuple(sorted({m.text for m in self.members}))
        return ValueType(self.scalar, self.is_list, self.nullable, members, self.dimension)


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@name`, `@name(value)` or `@name(value, key=literal, …)`."""

    name: Name
    value: Literal | Name | None = None
    options: tuple[tuple[Name, Literal], ...] = ()
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def value_text(self) -> str | None:
        """The positional argument as text, whatever it was written as."""
        if self.value is None:
            return None
        if isinstance(self.value, Name):
            return self.value.text
        return literal_text(self.value)


@dataclass(frozen=True, slots=True)
class RangeArgument:
    """`lo..hi` with at least one side."""

    low: Literal | None
    high: Literal | None
    span: Span = field(default=NOWHERE, compare=False)


ConstraintArgument = Name | Literal | RangeArgument


@dataclass(frozen=True, slots=True)
class ConstraintSyntax:
    """A body constraint such as `@unique(a, b)`."""

    kind: str
    arguments: tuple[ConstraintArgument, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class PropertySyntax:
    """`name: Type @annotations`."""

    name: Name
    type: TypeSyntax
    annotations: tuple[Annotation, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


Member = PropertySyntax | ConstraintSyntax


@dataclass(frozen=True, slots=True)
class InterfaceSyntax:
    """`interface Name { … }`."""

    name: Name
    members: tuple[PropertySyntax, ...]
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def properties(self) -> tuple[PropertySyntax, ...]:
        return self.members


@dataclass(frozen=True, slots=True)
class NodeSyntax:
    """`node Name @annotations implements A, B { … }`."""

    name: Name
    annotations: tuple[Annotation, ...]
    implements: tuple[Name, ...]
    members: tuple[Member, ...]
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def properties(self) -> tuple[PropertySyntax, ...]:
        return tuple(m for m in self.members if isinstance(m, PropertySyntax))

    @property
    def constraints(self) -> tuple[ConstraintSyntax, ...]:
        return tuple(m for m in self.members if isinstance(m, ConstraintSyntax))


@dataclass(frozen=True, slots=True)
class CardinalitySyntax:
    """`@card(min..max)`."""

    minimum: int
    maximum: int | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class EdgeSyntax:
    """`edge Name: From -> To @card(…) @annotations { … }`."""

    name: Name
    source: Name
    target: Name
    cardinality: CardinalitySyntax | None
    annotations: tuple[Annotation, ...]
    members: tuple[Member, ...]
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def properties(self) -> tuple[PropertySyntax, ...]:
        return tuple(m for m in self.members if isinstance(m, PropertySyntax))

    @property
    def constraints(self) -> tuple[ConstraintSyntax, ...]:
        return tuple(m for m in self.members if isinstance(m, ConstraintSyntax))


Declaration = InterfaceSyntax | NodeSyntax | EdgeSyntax


@dataclass(frozen=True, slots=True)
class SchemaSyntax:
    """A whole schema file. ``broken`` holds the names of declarations that did not parse completely."""

    declarations: tuple[Declaration, ...]
    broken: frozenset[str] = frozenset()


def literal_text(literal: Literal) -> str:
    """A literal's value as the catalog stores annotation values."""
    if isinstance(literal.value, bool):
        return "true" if literal.value else "false"
    if isinstance(literal.value, float) and literal.written is not None:
        return literal.written
    return str(literal.value)
