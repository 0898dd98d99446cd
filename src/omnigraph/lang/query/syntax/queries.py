"""Whole queries and files: what a read returns, what a mutation changes, parameters and annotations."""

from __future__ import annotations

from dataclasses import field
from typing import Literal as OneOf

from omnigraph.lang.query.syntax.clauses import Clause, Requirement
from omnigraph.lang.query.syntax.expressions import (
    ComparisonOperator,
    Expression,
    IntegerLiteral,
    StringLiteral,
    Variable,
)
from omnigraph.lang.source import NOWHERE, Name, Span
from omnigraph.lang.values import SCALAR_NAMES, Scalar, ValueType
from omnigraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Projection:
    """`expression as alias`."""

    expression: Expression
    alias: Name | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Ordering:
    """`expression asc|desc`; no direction is the natural one."""

    expression: Expression
    direction: OneOf["asc", "desc"] | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ReadBody:
    """`match { … } return { … } having { … } order { … } limit n offset m`.

    The reads that are ``united`` with it, by `union`, have a match, a return and a having of their own; order and
    limit are of all rows together.
    """

    match: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    distinct: bool = False
    order: tuple[Ordering, ...] = ()
    limit: IntegerLiteral | Variable | None = None
    offset: IntegerLiteral | Variable | None = None
    having: tuple[Requirement, ...] = ()
    united: tuple[ReadBody, ...] = ()
    repeats: bool = False
    """Does `union all` keep rows that are equal?"""


@dataclass(frozen=True, slots=True)
class Assignment:
    """`p: value` inside insert or update."""

    property: Name
    value: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Condition:
    """`p op value` behind `where`: a property against something that is the same for all rows."""

    property: Name
    operator: ComparisonOperator
    value: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Insert:
    """`insert Type { … }`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    """`update Type set { … } where …`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    where: tuple[Condition | Requirement, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """`delete Type where …`."""

    type_name: Name
    where: tuple[Condition | Requirement, ...]
    span: Span = field(default=NOWHERE, compare=False)


Statement = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class MutationBody:
    """One or more statements that become one commit."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class ParameterSyntax:
    """`$name: Type`; the type's name may be one that does not exist."""

    name: Name
    type_name: str
    is_list: bool = False
    dimension: int | None = None
    nullable: bool = False
    type_span: Span = field(default=NOWHERE, compare=False)

    @property
    def type(self) -> ValueType | None:
        """The declared type, or None where there is no such type."""
        if self.dimension is not None:
            return ValueType(Scalar.F32, nullable=self.nullable, dimension=self.dimension)
        scalar = SCALAR_NAMES.get(self.type_name)
        return None if scalar is None else ValueType(scalar, self.is_list, self.nullable)


@dataclass(frozen=True, slots=True)
class QueryAnnotation:
    """`@description("…")` or `@instruction("…")`."""

    name: Name
    value: StringLiteral
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class QuerySyntax:
    """`query name($p: Type) @annotations { … }`."""

    name: Name
    parameters: tuple[ParameterSyntax, ...]
    annotations: tuple[QueryAnnotation, ...]
    body: ReadBody | MutationBody
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def is_mutation(self) -> bool:
        return isinstance(self.body, MutationBody)

    def annotation(self, name: str) -> str | None:
        """The text of an annotation."""
        return next((a.value.value for a in self.annotations if a.name.text == name), None)


@dataclass(frozen=True, slots=True)
class QueryFileSyntax:
    """All queries of a file."""

    queries: tuple[QuerySyntax, ...]
