"""What becomes of the matched rows in the reference interpreter: columns, groups, order and page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tests.read.functions.rows import Uncomputable
from tests.read.reference_expressions import computed
from tests.read.reference_rows import Interpreter, Row, counts
from tests.read.reference_values import Operand, Refused, aggregate, frozen, sorted_by

from omnigraph.errors import SumOverflow
from omnigraph.lang.query import ir
from omnigraph.lang.values import FLOATS, INTEGER_BOUNDS, ValueType

Key = tuple[Sequence[Any], bool]
"""A sort key: a value for each row, and whether the largest comes first."""


@dataclass(frozen=True)
class Answer:
    """The columns, and all rows that `offset` and `limit` choose from.

    ``ordered`` rows are in the one order the language allows; others may come in any. Where lists or vectors
    would have to break ties there is no such order, for they have none. ``rounded`` is an order by averages or
    sums of floats, whose last digits depend on who adds them up.
    """

    columns: list[str]
    all_rows: list[tuple[Any, ...]]
    ordered: bool
    rounded: bool
    offset: int
    limit: int | None

    @cached_property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows that are left of it, in one possible order."""
        end = None if self.limit is None else self.offset + self.limit
        return self.all_rows[self.offset : end]

    @property
    def dictionaries(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def answer(query: ir.QueryIR, interpreter: Interpreter, rows: list[Row]) -> Answer:
    """The rows of the result."""
    offset, limit = _count(query.offset, interpreter) or 0, _count(query.limit, interpreter)
    results = _Results(query, interpreter)
    if query.aggregates:
        made = results.groups(rows)
    elif query.distinct:
        made = results.distinct(rows)
    else:
        made = results.plain(rows)
    return Answer([column.name for column in query.columns], made, results.ordered, results.rounded, offset, limit)


def united(union: ir.UnionIR, parts: Sequence[Answer], interpreter: Interpreter) -> Answer:
    """The rows of all reads of a union; each once, unless it keeps those that are equal."""
    kinds = [column.type for column in union.columns]
    rows = [
        tuple(_united(v, k) for v, k in zip(row, kinds, strict=True)) for part in parts for row in part.all_rows
    ]
    if not union.repeats:
        rows = list({tuple(map(frozen, row)): row for row in rows}.values())
    names = [column.name for column in union.columns]
    keys: list[Key] = []
    for order in union.order:
        assert isinstance(order.expression, ir.Alias)
        at = len(names) - 1 - names[::-1].index(order.expression.name)
        keys.append(([row[at] for row in rows], order.descending))
    if keys:
        keys += [([row[i] for row in rows], False) for i, kind in enumerate(kinds) if kind.is_plain]
    offset, limit = _count(union.offset, interpreter) or 0, _count(union.limit, interpreter)
    ordered = bool(keys) and all(kind.is_plain for kind in kinds)
    rounded = any(
        _is_rounded(read.columns[i].expression) for read in union.reads for i in range(len(names)) if keys
    )
    return Answer(names, _sorted(rows, keys) if keys else rows, ordered, rounded, offset, limit)


def _united(value: Any, kind: ValueType) -> Any:
    """A value with the type of its column."""
    if not kind.is_plain or not isinstance(value, int) or isinstance(value, bool):
        return value
    if kind.scalar in FLOATS:
        return float(value)
    low, high = INTEGER_BOUNDS[kind.scalar]
    if not low <= value <= high:
        raise Uncomputable
    return value


def nested(columns: Sequence[ir.Column], flat: Answer) -> Answer:
    """The answer with whole nodes and edges as dictionaries; one without an id is missing."""
    if all(column.field is None for column in columns):
        return flat
    names, rows = [], [list[Any]() for _ in flat.all_rows]
    for at, column in enumerate(columns):
        if column.field in (None, "id"):
            names.append(column.name)
        for made, row in zip(rows, flat.all_rows, strict=True):
            if column.field is None:
                made.append(row[at])
            elif column.field == "id":
                made.append(None if row[at] is None else {"id": row[at]})
            elif made[-1] is not None:
                made[-1][column.field] = row[at]
    return replace(flat, columns=names, all_rows=[tuple(row) for row in rows])


def _count(expression: ir.Constant | ir.Param | None, interpreter: Interpreter) -> int | None:
    if expression is None:
        return None
    count = interpreter.operand(expression, {}).value
    if count is None or count < 0:
        raise Refused("limit and offset take numbers from 0 on")
    return int(count)


class _Results:
    def __init__(self, query: ir.QueryIR, interpreter: Interpreter) -> None:
        self.query = query
        self.interpreter = interpreter
        self.ordered = bool(query.order)
        self.rounded = False

    def plain(self, rows: list[Row]) -> list[tuple[Any, ...]]:
        """One result for each row; ties by the ids of all variables, of which `$_` is none."""
        shown = self._projected(rows)
        if not self.ordered:
            return shown
        kept, keys = self._ranked(rows)
        names = sorted({name for row in rows for name in row if "#" not in name})
        keys += [([_id(row, name) for row in rows], False) for name in names]
        return _sorted([shown[i] for i in kept], [([values[i] for i in kept], down) for values, down in keys])

    def distinct(self, rows: list[Row]) -> list[tuple[Any, ...]]:
        """Each result once; ties by the columns."""
        every = self._projected(rows)
        kept, _ = self._ranked(rows)
        shown = {tuple(map(frozen, every[i])): every[i] for i in kept}
        return self._by_columns(list(shown.values()), range(len(self.query.columns)))

    def groups(self, rows: list[Row]) -> list[tuple[Any, ...]]:
        """One result for each group that `having` keeps; ties by the keys of the groups."""
        columns = self.query.columns
        is_key = [not ir.is_aggregate(column.expression) for column in columns]
        members: dict[tuple[Any, ...], list[Row]] = {} if any(is_key) else {(): list(rows)}
        if any(is_key):
            for row in rows:
                key = [self._value(c.expression, row) for c, keyed in zip(columns, is_key, strict=True) if keyed]
                members.setdefault(tuple(map(frozen, key)), []).append(row)
        kept = [
            group
            for group in members.values()
            if all(self._of_group(condition, group).value is True for condition in self.query.having)
        ]
        shown = [tuple(self._of_group(column.expression, group).value for column in columns) for group in kept]
        if not self.ordered:
            return shown
        keys: list[Key] = []
        for order in self.query.order:
            expression = self._resolved(order.expression)
            keys.append(([self._of_group(expression, group).value for group in kept], order.descending))
            self.rounded |= _is_rounded(expression)
        ties = [i for i, keyed in enumerate(is_key) if keyed]
        keys += [([row[i] for row in shown], False) for i in ties]
        self.ordered = all(columns[i].type.is_plain for i in ties)
        return _sorted(shown, keys)

    def _of_group(self, expression: ir.Expr, group: Sequence[Row]) -> Operand:
        """What an expression is for a group: aggregates of its rows, and keys, which all rows share."""
        match expression:
            case ir.Agg():
                return Operand(self._aggregated(expression, group))
            case ir.Call() | ir.Filter():
                return computed(expression, lambda part: self._of_group(part, group))
            case _:
                return self.interpreter.operand(expression, group[0] if group else {})

    def _aggregated(self, agg: ir.Agg, group: Sequence[Row]) -> Any:
        values = [self._value(agg.argument, row) for row in group]
        found = aggregate(agg.function, values, agg.distinct, agg.fraction)
        is_float_sum = agg.function in ("sum", "avg") and any(isinstance(value, float) for value in values)
        if is_float_sum and not math.isfinite(sum(value for value in values if value is not None)):
            raise SumOverflow(self.query.name, agg.function)
        if agg.function == "sum" and found is not None and agg.type.is_integer:
            low, high = INTEGER_BOUNDS[agg.type.scalar]
            if not low <= found <= high:
                raise SumOverflow(self.query.name, agg.function)
        return found

    def _by_columns(self, shown: list[tuple[Any, ...]], ties: Sequence[int]) -> list[tuple[Any, ...]]:
        if not self.ordered:
            return shown
        keys: list[Key] = []
        for order in self.query.order:
            position = self._position(order.expression)
            keys.append(([row[position] for row in shown], order.descending))
        keys += [([row[i] for row in shown], False) for i in ties]
        self.ordered = all(self.query.columns[i].type.is_plain for i in ties)
        return _sorted(shown, keys)

    def _position(self, expression: ir.Expr) -> int:
        """The column that a sort key of a grouped or distinct query names."""
        columns = self.query.columns
        equal = [i for i, column in enumerate(columns) if column.expression == expression]
        if equal:
            return equal[-1]
        match expression:
            case ir.Alias(name):
                wanted = name
            case ir.Prop(variable, name):
                wanted = f"{variable}.{name}"
            case _:
                raise AssertionError(expression)
        return [i for i, column in enumerate(columns) if column.name == wanted][-1]

    def _ranked(self, rows: list[Row]) -> tuple[list[int], list[Key]]:
        """Which rows every ranking among the sort keys ranks, and the sort keys of all rows.

        Behind the keys come the places in the arms of `rrf`: what is equal by it stands as in the first arm, and
        behind that as in the second.
        """
        keys: list[Key] = []
        ties: list[Key] = []
        stays = [True] * len(rows)
        for order in self.query.order:
            expression = self._resolved(order.expression)
            values = self._column(expression, rows)
            keys.append((values, order.descending))
            if isinstance(expression, ir.Ranking):
                stays = [stay and counts(expression, value) for stay, value in zip(stays, values, strict=True)]
            if isinstance(expression, ir.Rrf):
                ties += [self._places(expression, arm, rows) for arm in (expression.first, expression.second)]
        return [i for i, stay in enumerate(stays) if stay], keys + ties

    def _places(self, ranking: ir.Rrf, arm: ir.Score, rows: Sequence[Row]) -> Key:
        places = self.interpreter.places(arm, rows)
        ids = [_id(row, ranking.first.variable) for row in rows]
        return [len(rows) if one is None else places.get(one, len(rows)) for one in ids], False

    def _resolved(self, expression: ir.Expr) -> ir.Expr:
        """What an alias stands for; the last of several."""
        if not isinstance(expression, ir.Alias):
            return expression
        return [column.expression for column in self.query.columns if column.name == expression.name][-1]

    def _projected(self, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
        columns = [self._column(column.expression, rows) for column in self.query.columns]
        return list(zip(*columns, strict=True))

    def _column(self, expression: ir.Expr, rows: Sequence[Row]) -> Sequence[Any]:
        if isinstance(expression, ir.Ranking):
            return self.interpreter.scores(expression, rows)
        return [self._value(expression, row) for row in rows]

    def _value(self, expression: ir.Expr, row: Row) -> Any:
        return self.interpreter.operand(expression, row).value


def _is_rounded(expression: ir.Expr) -> bool:
    """Do the last digits depend on who adds the values up?"""
    return any(
        isinstance(part, ir.Agg) and part.function in ("sum", "avg", "stddev") and not part.type.is_integer
        for part in ir.parts(expression)
    )


def _id(row: Row, name: str) -> str | None:
    entity = row.get(name)
    return None if entity is None else entity.id


def _sorted(shown: list[tuple[Any, ...]], keys: list[Key]) -> list[tuple[Any, ...]]:
    return sorted_by(shown, [values for values, _ in keys], [down for _, down in keys])
