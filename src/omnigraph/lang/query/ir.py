"""The intermediate representation of a query: what an engine runs, free of spelling.

A read is a pipeline of operations over a bag of rows, one column per variable, and then a projection. Variables
whose name holds a ``#`` are hidden: no query text can name them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import cached_property
from typing import Literal as OneOf

from omnigraph.lang.values import BOOL, I64, StructType, ValueType
from omnigraph.records import dataclass

Scalar = str | int | float | bool | dt.date | dt.datetime
NOW = "__now"
"""The parameter that `now()` becomes; it is bound once per execution."""
ROW = "#row"
"""The variable of the row that a mutation updates or deletes."""


class Direction(StrEnum):
    """Which way an edge is followed from the source variable."""

    OUT = "out"
    IN = "in"
    BOTH = "both"


class Op(StrEnum):
    """The operators of a filter. The null tests have no right side."""

    EQ = "="
    NE = "!="
    GT = ">"
    LT = "<"
    GE = ">="
    LE = "<="
    CONTAINS = "has member"
    STRING_CONTAINS = "contains"
    STARTS_WITH = "starts_with"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"


@dataclass(frozen=True, slots=True)
class Prop:
    """A property of a variable, or of the `ROW`; `id` is the entity's own id."""

    variable: str
    property: str


@dataclass(frozen=True, slots=True)
class Var:
    """A node variable: its id as a value."""

    name: str


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter, or `__now`."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal value of a type."""

    value: Scalar | tuple[Scalar, ...]
    type: ValueType


@dataclass(frozen=True, slots=True)
class Alias:
    """An output column."""

    name: str


@dataclass(frozen=True, slots=True)
class Agg:
    """An aggregate over the rows of a group."""

    function: OneOf["count", "sum", "avg", "min", "max", "collect", "median", "stddev", "percentile"]
    argument: Expr
    distinct: bool = False
    type: ValueType = I64
    fraction: float | None = None
    """The share of the values that `percentile` puts below its result."""


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A full-text predicate on one property; ``edits`` is set for fuzzy matching."""

    function: OneOf["search", "fuzzy", "match_text"]
    variable: str
    property: str
    query: Expr
    edits: Expr | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """How well one property of an entity fits a query, by a function of `SCORES`."""

    variable: str
    property: str
    query: Expr
    function: str

    def arms(self) -> tuple[Score, ...]:
        """The scores that rank entities."""
        return (self,)

    def label(self) -> str:
        """The function as plans show it."""
        return self.function

    def operands(self) -> tuple[Expr, ...]:
        """What stands in the parentheses of the call."""
        return Prop(self.variable, self.property), self.query


@dataclass(frozen=True, slots=True)
class Nearest(Score):
    """The distance of a vector to a query. A String query is embedded first, by the model of the property."""

    dimension: int
    metric: OneOf["cosine", "l2"]
    model: str | None = None

    def label(self) -> str:
        return f"{self.function}[{self.metric}]"


@dataclass(frozen=True, slots=True)
class Rrf:
    """Two rankings of one variable, fused by the reciprocals of an entity's ranks."""

    first: Score
    second: Score
    k: Expr
    function: str = "rrf"

    @property
    def variable(self) -> str:
        return self.first.variable

    def arms(self) -> tuple[Score, ...]:
        """The scores that rank entities."""
        return self.first, self.second

    def label(self) -> str:
        """The function as plans show it."""
        return self.function

    def operands(self) -> tuple[Expr, ...]:
        """What stands in the parentheses of the call."""
        return self.first, self.second, self.k


Ranking = Score | Rrf
"""Ranks the entities of one variable by the scores of its arms; `SCORES` says which scores are the best."""


@dataclass(frozen=True, slots=True)
class Call:
    """A value computed from others: a row of the function table, or one of `and`, `or`, `not`, and `case`, whose
    operands are condition, value, condition, value, …, and perhaps the value where no condition holds."""

    function: str
    operands: tuple[Expr, ...]
    type: ValueType


@dataclass(frozen=True, slots=True)
class Filter:
    """A comparison: unknown where a side is null. As an operation it keeps the rows for which it is true."""

    left: Expr
    op: Op
    right: Expr | None = None


Expr = Prop | Var | Param | Constant | Alias | Agg | TextMatch | Ranking | Call | Filter
TRUE = Constant(True, BOOL)


def condition(truth: Expr) -> Filter:
    """The condition that a truth value is true."""
    return truth if isinstance(truth, Filter) else Filter(truth, Op.EQ, TRUE)


def replaced(expression: Expr, by: Callable[[Expr], Expr | None]) -> Expr:
    """An expression with other ones in place of some of its parts; None leaves a part as it is."""
    other = by(expression)
    if other is not None:
        return other
    match expression:
        case Call(function, operands, kind):
            return Call(function, tuple(replaced(one, by) for one in operands), kind)
        case Filter(left, op, right):
            return Filter(replaced(left, by), op, None if right is None else replaced(right, by))
        case Agg(_, argument):
            return replace(expression, argument=replaced(argument, by))
        case _:
            return expression


def is_aggregate(expression: Expr) -> bool:
    """Is an expression computed from groups of rows?"""
    return any(isinstance(part, Agg) for part in parts(expression))


def parts(expression: Expr | None) -> Iterator[Expr]:
    """An expression, and all expressions that it is computed from."""
    if expression is None:
        return
    yield expression
    match expression:
        case Call(_, operands):
            for one in operands:
                yield from parts(one)
        case Filter(left, _, right):
            yield from parts(left)
            yield from parts(right)
        case Agg(_, argument):
            yield from parts(argument)


@dataclass(frozen=True, slots=True)
class NodeScan:
    """Every node of a type that passes the filters, joined to each row so far."""

    variable: str
    type_name: str
    filters: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Expand:
    """Follow an edge. With an edge variable there is one row per edge, without one per distinct target.

    An expand that ``closes`` a variable binds no new node: it keeps the rows in which the target is that node.
    A chain of hops that is followed ``backwards`` leads from the right variable of its clause to the left one,
    and relates the same nodes as a search from the left one.
    """

    source: str
    target: str
    edge_type: str
    direction: Direction
    target_type: str
    min_hops: int = 1
    max_hops: int = 1
    target_filters: tuple[Filter, ...] = ()
    edge_variable: str | None = None
    backwards: bool = False
    closes: str | None = None
    """The bound variable that the edge leads back to; the target then has a hidden name of its own."""
    chains: bool = True
    """Does the edge type lead from a node type to itself? Only then can a second hop follow the first."""

    @property
    def hops(self) -> tuple[int, int]:
        """The least and the largest number of hops that can be followed; nothing is reached if they cross."""
        return self.min_hops, self.max_hops if self.chains else 1

    @property
    def end(self) -> str:
        """The variable at the far end: the one it closes, or the new one."""
        return self.target if self.closes is None else self.closes


@dataclass(frozen=True, slots=True)
class Optionally:
    """The inner operations where they match; one row with nulls for ``introduces`` where they do not."""

    inner: tuple[Operation, ...]
    introduces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Drop each row for which the inner operations have a match."""

    outer: tuple[str, ...]
    inner: tuple[Operation, ...]


Operation = NodeScan | Expand | Filter | Optionally | AntiJoin


@dataclass(frozen=True, slots=True)
class Column:
    """A column that is computed. It is one of the result, or a ``field`` of a struct that is."""

    name: str
    expression: Expr
    type: ValueType
    field: str | None = None
    """The name inside the struct, whose fields stand side by side, the id first."""


def result_columns(columns: Iterable[Column]) -> list[tuple[Column, ...]]:
    """The columns of a result: each one that is computed, or all fields of a struct."""
    found: list[tuple[Column, ...]] = []
    for column in columns:
        if column.field is None or column.field == "id":
            found.append((column,))
        else:
            found[-1] += (column,)
    return found


def result_type(columns: Sequence[Column]) -> ValueType | StructType:
    """The type of a column of a result."""
    if columns[0].field is None:
        return columns[0].type
    fields = tuple((one.field or "", one.type) for one in columns)
    return StructType(fields, columns[0].type.nullable)


@dataclass(frozen=True, slots=True)
class Order:
    """A sort key."""

    expression: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class QueryIR:
    """A read query: a pipeline of operations, and what becomes of its rows."""

    name: str
    params: Mapping[str, ValueType]
    pipeline: tuple[Operation, ...]
    columns: tuple[Column, ...]
    distinct: bool = False
    order: tuple[Order, ...] = ()
    limit: Constant | Param | None = None
    offset: Constant | Param | None = None
    having: tuple[Filter, ...] = ()
    rankings: tuple[Ranking, ...] = field(init=False, repr=False, compare=False)
    """The rankings that the query returns or is ordered by, each once."""
    aggregates: bool = field(init=False, repr=False, compare=False)
    """Does the query group its rows?"""

    def __post_init__(self) -> None:
        every = (*(column.expression for column in self.columns), *(order.expression for order in self.order))
        rankings = tuple(dict.fromkeys(one for one in every if isinstance(one, Ranking)))
        aggregates = any(is_aggregate(column.expression) for column in self.columns) or bool(self.having)
        object.__setattr__(self, "rankings", rankings)
        object.__setattr__(self, "aggregates", aggregates)


UNITED = "#united"
"""The variable whose properties, by number, are the columns of rows that a union puts together."""


@dataclass(frozen=True)
class UnionIR:
    """Several reads as one: their columns have the same names and types. Order and page are of all rows."""

    name: str
    params: Mapping[str, ValueType]
    reads: tuple[QueryIR, ...]
    columns: tuple[Column, ...]
    repeats: bool = False
    order: tuple[Order, ...] = ()
    limit: Constant | Param | None = None
    offset: Constant | Param | None = None

    @cached_property
    def whole(self) -> QueryIR:
        """The read that is left to do once the rows of all reads lie in one table: equal rows, order and page.

        Rows in an order have all of it: columns break ties.
        """
        columns = tuple(replace(one, expression=Prop(UNITED, str(i))) for i, one in enumerate(self.columns))
        ties = tuple(Order(one.expression) for one in columns if one.type.is_plain)
        order = tuple(replace(one, expression=self._column(one.expression, columns)) for one in self.order)
        return QueryIR(
            self.name,
            self.params,
            (),
            columns,
            not self.repeats,
            (*order, *ties) if order else (),
            self.limit,
            self.offset,
        )

    @staticmethod
    def _column(expression: Expr, columns: Sequence[Column]) -> Expr:
        """The column that a sort key names; of two with one name the last."""
        assert isinstance(expression, Alias)  # noqa: S101  unions are ordered by their columns
        return next(one.expression for one in reversed(columns) if one.name == expression.name)


ReadIR = QueryIR | UnionIR


@dataclass(frozen=True, slots=True)
class Assign:
    """A property and the value it gets."""

    property: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Predicate:
    """A comparison of one column with a value."""

    property: str
    op: Op
    value: Expr


@dataclass(frozen=True, slots=True)
class InsertOp:
    """Add one entity; a node with a key replaces the node with that key."""

    kind: OneOf["node", "edge"]
    type_name: str
    assignments: tuple[Assign, ...]


@dataclass(frozen=True, slots=True)
class UpdateOp:
    """Set properties of the entities for which all predicates and conditions hold; assigned values may be computed
    from the properties of the row."""

    type_name: str
    assignments: tuple[Assign, ...]
    predicates: tuple[Predicate, ...]
    conditions: tuple[Filter, ...] = ()
    kind: OneOf["node", "edge"] = "node"


@dataclass(frozen=True, slots=True)
class DeleteOp:
    """Delete the entities for which all predicates and conditions hold; the edges of a deleted node go with it."""

    kind: OneOf["node", "edge"]
    type_name: str
    predicates: tuple[Predicate, ...]
    conditions: tuple[Filter, ...] = ()


MutationOp = InsertOp | UpdateOp | DeleteOp


@dataclass(frozen=True, slots=True)
class MutationIR:
    """A mutation: its operations run in order and become one commit."""

    name: str
    params: Mapping[str, ValueType]
    ops: tuple[MutationOp, ...]
