"""The syntax tree of a .gq file: what was written, in the order it was written.

Spans are not part of a tree's identity: two trees are equal when they say the same thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

from omnigraph.lang.source import NOWHERE, Name, Span
from omnigraph.lang.values import SCALAR_NAMES, Scalar, ValueType

ANONYMOUS = "_"
"""The variable that binds nothing."""


NO_NULL = "there is no null value; test with `is null`, or pass a nullable parameter"
"""The remedy for `null` written as a value."""


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def anonymous(self) -> bool:
        return self.name == ANONYMOUS


@dataclass(frozen=True, slots=True)
class StringLiteral:
    """`"text"`. ``written`` keeps the author's escapes."""

    value: str
    written: str | None = field(default=None, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class IntegerLiteral:
    """`42` or `-42`."""

    value: int
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class FloatLiteral:
    """`4.2` or `-4.2`."""

    value: float
    written: str | None = field(default=None, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class BoolLiteral:
    """`true` or `false`."""

    value: bool
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class DateLiteral:
    """`date("2024-01-01")`."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class DateTimeLiteral:
    """`datetime("2024-01-01T12:00:00Z")`."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, b]`."""

    items: tuple[Literal, ...]
    span: Span = field(default=NOWHERE, compare=False)


Literal = StringLiteral | IntegerLiteral | FloatLiteral | BoolLiteral | DateLiteral | DateTimeLiteral | ListLiteral
LITERALS = (
    StringLiteral,
    IntegerLiteral,
    FloatLiteral,
    BoolLiteral,
    DateLiteral,
    DateTimeLiteral,
    ListLiteral,
)


@dataclass(frozen=True, slots=True)
class Now:
    """`now()`: one instant for the whole execution."""

    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class PropertyRef:
    """`$x.p`."""

    variable: Variable
    property: Name
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class AliasRef:
    """A bare name: the alias of a projection."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


AggregateFunction = OneOf["count", "sum", "avg", "min", "max", "collect", "median", "stddev", "percentile"]
AGGREGATES: tuple[AggregateFunction, ...] = (
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "collect",
    "median",
    "stddev",
    "percentile",
)
DISTINCT: tuple[AggregateFunction, ...] = ("count", "collect")
"""The aggregates that take `distinct`."""


@dataclass(frozen=True, slots=True)
class Everything:
    """The `*` of `count(*)`."""

    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`count(*)`, `count(distinct $x.p)`, `sum($x.p)`, `percentile($x.p, 0.9)`, …"""

    function: AggregateFunction
    argument: Expression
    distinct: bool = False
    fraction: Expression | None = None
    span: Span = field(default=NOWHERE, compare=False)


TextFunction = OneOf["search", "fuzzy", "match_text"]
TEXT_PREDICATES: tuple[TextFunction, ...] = ("search", "fuzzy", "match_text")


@dataclass(frozen=True, slots=True)
class TextCall:
    """`search(property, query)`, `match_text(…)`, or `fuzzy(property, query, edits)`."""

    function: TextFunction
    subject: Expression
    query: Expression
    edits: Expression | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ScoreCall:
    """`nearest($x.vector, query)`, `bm25(property, query)`, `rrf(ranking, ranking, k)`: a function of `SCORES`."""

    function: str
    operands: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def variable(self) -> str | None:
        """The variable that the call ranks; None if it begins with something else than a property."""
        match self.operands[0]:
            case PropertyRef(variable) | ScoreCall(_, (PropertyRef(variable), *_)):
                return variable.name
        return None


ComparisonOperator = OneOf["=", "!=", ">", "<", ">=", "<=", "contains", "starts_with", "in"]
SYMBOLS: tuple[ComparisonOperator, ...] = ("=", "!=", ">", "<", ">=", "<=")
WORD_OPERATORS: tuple[ComparisonOperator, ...] = ("contains", "starts_with", "in")


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`."""

    left: Expression
    operator: ComparisonOperator
    right: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class NullTest:
    """`$x.p is null`, `$x.p is not null`."""

    operand: Expression
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False)


Connective = OneOf["and", "or"]


@dataclass(frozen=True, slots=True)
class Connected:
    """`a and b and …`, `a or b or …`: at least two conditions, decided from the left to the right."""

    connective: Connective
    operands: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """`not condition`, and `a not in b`."""

    operand: Expression
    span: Span = field(default=NOWHERE, compare=False)


ArithmeticOperator = OneOf["+", "-", "*", "/", "%"]
SUMS: tuple[ArithmeticOperator, ...] = ("+", "-")
PRODUCTS: tuple[ArithmeticOperator, ...] = ("*", "/", "%")


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left + right`: numbers, texts put together, or a moment and a duration."""

    operator: ArithmeticOperator
    left: Expression
    right: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Minus:
    """`-$x.p`; the minus of a literal belongs to the literal."""

    operand: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Duration:
    """`3 days`: what a moment can be moved by."""

    amount: int
    unit: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Branch:
    """`when condition then value`."""

    condition: Expression
    value: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Case:
    """`case when … then … else … end`: the value of the first branch whose condition holds."""

    branches: tuple[Branch, ...]
    otherwise: Expression | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """`lower($x.p)`: a function of the table `FUNCTIONS`."""

    function: str
    operands: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False)


Expression = (
    Literal
    | Now
    | Everything
    | Variable
    | PropertyRef
    | AliasRef
    | Aggregate
    | TextCall
    | ScoreCall
    | Comparison
    | NullTest
    | Connected
    | Not
    | Arithmetic
    | Minus
    | Duration
    | Case
    | FunctionCall
)
Computed = Comparison | NullTest | Connected | Not | Arithmetic | Minus | Duration | Case | FunctionCall
"""The expressions that are made of other expressions."""
COMPUTED = (Comparison, NullTest, Connected, Not, Arithmetic, Minus, Duration, Case, FunctionCall)


def operands_of(expression: Expression) -> tuple[Expression, ...]:
    """The expressions that an expression is directly made of."""
    match expression:
        case Comparison(left, _, right) | Arithmetic(_, left, right):
            return left, right
        case NullTest(operand) | Not(operand) | Minus(operand):
            return (operand,)
        case Connected(_, operands) | FunctionCall(_, operands) | ScoreCall(_, operands):
            return operands
        case Case(branches, otherwise):
            every = tuple(part for branch in branches for part in (branch.condition, branch.value))
            return every if otherwise is None else (*every, otherwise)
        case Aggregate(_, argument):
            return (argument,)
        case TextCall(_, subject, query, edits):
            return (subject, query) if edits is None else (subject, query, edits)
        case _:
            return ()


def parts_of(expression: Expression) -> Iterator[Expression]:
    """An expression, and all expressions in it."""
    yield expression
    for operand in operands_of(expression):
        yield from parts_of(operand)


def with_operands(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """An expression whose direct operands are changed."""
    match expression:
        case Comparison(left, _, right) | Arithmetic(_, left, right):
            return replace(expression, left=change(left), right=change(right))
        case NullTest(operand) | Not(operand) | Minus(operand):
            return replace(expression, operand=change(operand))
        case Connected(_, operands) | FunctionCall(_, operands):
            return replace(expression, operands=tuple(map(change, operands)))
        case Case(branches, otherwise):
            changed = tuple(replace(b, condition=change(b.condition), value=change(b.value)) for b in branches)
            return replace(
                expression, branches=changed, otherwise=None if otherwise is None else change(otherwise)
            )
        case Aggregate(_, argument):
            return replace(expression, argument=change(argument))
        case TextCall(_, subject):
            return replace(expression, subject=change(subject))
        case _:
            return expression


def of_properties(expression: Expression, variable: Variable) -> Expression:
    """An expression whose bare names are properties of a variable."""
    if isinstance(expression, AliasRef):
        return PropertyRef(variable, Name(expression.name, expression.span), expression.span)
    return with_operands(expression, lambda part: of_properties(part, variable))


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
    """`$a edge $b`, `$a $e:edge $b`, `$a <edge> $b`, `$a edge{1,3} $b`."""

    source: Variable
    edge: Name
    target: Variable
    edge_variable: Variable | None = None
    undirected: bool = False
    hops: Hops | None = None
    span: Span = field(default=NOWHERE, compare=False)


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
    """`match { … } return { … } having { … } order { … } limit n offset m`."""

    match: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    distinct: bool = False
    order: tuple[Ordering, ...] = ()
    limit: IntegerLiteral | Variable | None = None
    offset: IntegerLiteral | Variable | None = None
    having: tuple[Requirement, ...] = ()


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
