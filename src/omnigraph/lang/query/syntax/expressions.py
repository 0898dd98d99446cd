"""What a value or a condition is written as: literals, properties, calls, comparisons and arithmetic."""

from __future__ import annotations

from dataclasses import field
from typing import Literal as OneOf

from omnigraph.lang.source import NOWHERE, Name, Span
from omnigraph.records import dataclass

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
class Whole:
    """`$x.*`: a whole node or edge."""

    variable: Variable
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
    | Whole
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
