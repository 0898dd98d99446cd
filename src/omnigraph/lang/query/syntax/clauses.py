"""What stands in a `match` block: bindings, traversals, conditions, and blocks of clauses."""

from __future__ import annotations

from dataclasses import field

from omnigraph.lang.query.syntax.expressions import Comparison, Expression, NullTest, TextCall, Variable
from omnigraph.lang.source import NOWHERE, Name, Span
from omnigraph.records import dataclass


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`p: value` inside a binding."""

    property: Name
    value: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Binding:
    """`$x: Type { p: value, q > 3, … }`; in a condition inside the braces a bare name is a property."""

    variable: Variable
    type_name: Name
    matches: tuple[PropertyMatch | Requirement, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Hops:
    """`{min,max}`; no maximum is written only by mistake."""

    minimum: int
    maximum: int | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$a edge $b`, `$a $e:edge $b`, `$a <edge> $b`, `$a edge{1,3} $b`, `$a edge|other $b`."""

    source: Variable
    edge: Name
    target: Variable
    edge_variable: Variable | None = None
    undirected: bool = False
    hops: Hops | None = None
    others: tuple[Name, ...] = ()
    """The further edges that a hop may follow instead of the first one."""
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def edges(self) -> tuple[Name, ...]:
        return self.edge, *self.others


@dataclass(frozen=True, slots=True)
class TextPredicate:
    """A text search standing alone as a condition."""

    call: TextCall
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Requirement:
    """Any other condition standing alone as a clause, such as `$x.a = 1 or $x.b = 2`."""

    condition: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """`not { … }`: no match of the inner clauses exists."""

    clauses: tuple[Clause, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Existence:
    """`exists { … }`: a match of the inner clauses exists."""

    clauses: tuple[Clause, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class OptionalBlock:
    """`optional { … }`: the inner clauses where they match, nulls where they do not."""

    clauses: tuple[Clause, ...]
    span: Span = field(default=NOWHERE, compare=False)


Clause = (
    Binding
    | Traversal
    | Comparison
    | NullTest
    | TextPredicate
    | Requirement
    | Negation
    | Existence
    | OptionalBlock
)
