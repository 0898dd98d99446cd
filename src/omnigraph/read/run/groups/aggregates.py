"""Aggregates over groups, computed for parts of the rows and then combined."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa

from omnigraph.lang.query import ir
from omnigraph.read.pattern.pattern import mentioned
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame
from omnigraph.read.run.groups.listing import LISTED, Listed
from omnigraph.read.values.arrays import to_arrow
from omnigraph.read.values.columns import Array, Bools, Column, Ints, distinct_numbers
from omnigraph.read.values.comparing import Series
from omnigraph.read.values.counting import MANY, counts_by, largest, sums_by
from omnigraph.records import dataclass

Kind = Literal["rows", "count", "sum", "avg", "min", "max", "distinct", "listed"]


@dataclass(slots=True)
class Partial:
    """One aggregate for some groups: how many values, and a number per group.

    A count of distinct values is kept as pairs of group and value until the end.
    """

    kind: Kind
    counts: Ints
    numbers: Array | None = None
    column: Column | None = None
    pairs: tuple[Ints, Ints] | None = None
    listed: Listed | None = None

    @property
    def is_beyond_counting(self) -> bool:
        """Does the result depend on a count that exceeds 64 bits?"""
        return self.kind in ("count", "sum", "avg") and largest(self.counts) == MANY

    def negate(self) -> None:
        """Make the counts negative: these rows are subtracted."""
        self.counts = -self.counts

    @classmethod
    def joined(cls, parts: list[Partial]) -> Partial:
        """Parts one behind the other; group numbers go on counting."""
        first = parts[0]
        counts = np.concatenate([part.counts for part in parts])
        numbers = None
        if first.numbers is not None:
            numbers = np.concatenate([part.numbers for part in parts if part.numbers is not None])
        pairs = None
        if first.pairs is not None:
            starts = np.cumsum([0, *(len(part.counts) for part in parts[:-1])])
            some = [
                (part.pairs[0] + start, part.pairs[1])
                for part, start in zip(parts, starts, strict=True)
                if part.pairs is not None
            ]
            pairs = (np.concatenate([group for group, _ in some]), np.concatenate([value for _, value in some]))
        listed = [part.listed for part in parts if part.listed is not None]
        if listed:
            starts = np.cumsum([0, *(len(part.counts) for part in parts[:-1])])
            return cls(first.kind, counts, listed=Listed.joined(listed, starts))
        return cls(first.kind, counts, numbers, first.column, pairs)

    def finish(self) -> pa.Array:
        """The aggregate as a column; OverflowError if a sum has no room in 64 bits."""
        match self.kind:
            case "count":
                return to_arrow(self.counts)
            case "distinct":
                return to_arrow(self._distinct())
            case "listed" if self.listed is not None:
                return self.listed.finish(len(self.counts))
            case "sum" if self.numbers is not None:
                return to_arrow(_narrow(self.numbers), self.counts == 0)
            case "avg" if self.numbers is not None:
                means = self.numbers / np.where(self.counts == 0, 1, self.counts)
                return to_arrow(means.astype(np.float64), self.counts == 0)
            case _:
                return self._extreme()

    def _distinct(self) -> Ints:
        assert self.pairs is not None  # noqa: S101
        return np.bincount(self.pairs[0], minlength=len(self.counts)).astype(np.int64, copy=False)

    def _extreme(self) -> pa.Array:
        """The values at the extreme ranks; a text column is ranked by its sorted dictionary."""
        assert self.column is not None  # noqa: S101
        assert self.numbers is not None  # noqa: S101
        kind = self.column.arrow.type
        none = self.counts == 0
        if self.column.is_text:
            encoded = self.column.codes
            if not len(encoded.dictionary):
                return pa.nulls(len(none), kind)
            codes = np.argsort(encoded.ranks)[np.where(none, 0, self.numbers)]
            return encoded.dictionary.take(to_arrow(codes, none))
        plain = to_arrow(self.numbers, none)
        if pa.types.is_date32(kind):
            return plain.cast(pa.int32()).cast(kind)
        return plain.cast(kind)


def partial(
    agg: ir.Agg | None, frame: Frame, inverse: Ints | None, groups: int, expressions: Expressions
) -> Partial:
    """An aggregate over the rows of a frame; None counts the rows, and so does the count of a variable that the
    frame does not have because every row has a value of it. Without group numbers every row is a group."""
    if agg is None or _counts_rows(agg, frame):
        counts = _each(frame) if inverse is None else counts_by(inverse, frame.weights, groups)
        return Partial("rows" if agg is None else "count", counts)
    if inverse is None:
        inverse = np.arange(frame.count)
    column: Column | None
    positions: Array | None
    if isinstance(agg.argument, ir.Var) and agg.function not in LISTED:
        valid, column, positions = _of_variable(agg.argument, frame)
    else:
        operand = expressions.operand(agg.argument, frame)
        if not isinstance(operand, Series):
            operand = Series(Column(expressions.arrow(agg.argument, frame, _natural(operand))))
        valid, column, positions = operand.valid, operand.column, operand.positions
    weights = frame.weights
    if valid is not None:
        inverse, weights = inverse[valid], None if weights is None else weights[valid]
        positions = np.flatnonzero(valid) if positions is None else positions[valid]
    if agg.function in LISTED:
        assert column is not None  # noqa: S101  what is listed has values
        return _listed(agg, inverse, column, positions, weights, groups)
    counts = counts_by(inverse, weights, groups)
    if agg.function == "count":
        return _distinct_values(inverse, column, positions, counts) if agg.distinct else Partial("count", counts)
    if column is None:
        raise TypeError(f"{agg.function} of a node")
    if agg.function in ("min", "max"):
        return _extremes(agg.function, inverse, column, positions, groups, counts)
    values = _at(column.values, positions)
    kind: Kind = "sum" if agg.function == "sum" else "avg"
    if values.dtype.kind != "f":
        return Partial(kind, counts, sums_by(inverse, values, weights, groups))
    values = values.astype(np.float64)
    if weights is not None:
        values = values * weights
    return Partial(kind, counts, np.bincount(inverse, weights=values, minlength=groups))


def _listed(
    agg: ir.Agg, inverse: Ints, column: Column, positions: Array | None, weights: Ints | None, groups: int
) -> Partial:
    """The values themselves, each as often as its row counts."""
    values = column.arrow if positions is None else column.take(positions)
    if weights is not None:
        index = np.repeat(np.arange(len(inverse)), weights)
        inverse, values = inverse[index], values.take(to_arrow(index))
    return Partial("listed", counts_by(inverse, None, groups), listed=Listed(agg, inverse, values))


def _counts_rows(agg: ir.Agg, frame: Frame) -> bool:
    """Is it the count of a variable that the frame does not have, because every row has a value of it?"""
    if not isinstance(agg.argument, ir.Var | ir.Prop) or agg.function != "count" or agg.distinct:
        return False
    return not set(mentioned(agg.argument)) <= frame.positions.keys()


def _each(frame: Frame) -> Ints:
    return np.ones(frame.count, dtype=np.int64) if frame.weights is None else frame.weights.copy()


def combine(part: Partial, inverse: Ints, groups: int) -> Partial:
    """A part whose groups are merged: ``inverse`` has the new number of each."""
    counts = counts_by(inverse, part.counts, groups)
    numbers: Array | None = None
    pairs = None
    if part.kind in ("sum", "avg") and part.numbers is not None:
        if part.numbers.dtype.kind == "f":
            numbers = np.bincount(inverse, weights=part.numbers, minlength=groups)
        else:
            numbers = sums_by(inverse, part.numbers, None, groups)
    elif part.numbers is not None:
        present = part.counts != 0
        numbers = _extreme_of(part.kind, inverse[present], part.numbers[present], groups)
    if part.listed is not None:
        return Partial(part.kind, counts, listed=part.listed.renumbered(inverse))
    if part.pairs is not None:
        pairs = _unique_pairs(inverse[part.pairs[0]], part.pairs[1])
    return Partial(part.kind, counts, numbers, part.column, pairs)


def _narrow(sums: Array) -> Array:
    """Sums that are Python's integers as 64-bit ones, unsigned if they have to be."""
    if sums.dtype != np.object_:
        return sums
    low, high = min(sums, default=0), max(sums, default=0)
    return sums.astype(np.int64 if low < 0 or high < 2**63 else np.uint64)


def _of_variable(variable: ir.Var, frame: Frame) -> tuple[Bools | None, None, Array]:
    positions = frame.positions[variable.name]
    valid = positions >= 0 if len(positions) and int(positions.min()) < 0 else None
    return valid, None, positions


def _natural(value: Any) -> pa.DataType:
    return pa.scalar(value).type if value is not None else pa.int64()


def _at(values: Array, positions: Array | None) -> Array:
    return values if positions is None else values[positions]


def _codes(column: Column | None, positions: Array | None) -> Ints:
    if column is None:
        assert positions is not None  # noqa: S101  an entity is known by its position
        return positions.astype(np.int64)
    return _at(column.codes.codes, positions).astype(np.int64)


def _distinct_values(inverse: Ints, column: Column | None, positions: Array | None, counts: Ints) -> Partial:
    pairs = _unique_pairs(inverse, _codes(column, positions))
    return Partial("distinct", counts, pairs=pairs)


def _unique_pairs(groups: Ints, values: Ints) -> tuple[Ints, Ints]:
    width = int(values.max(initial=0)) + 1
    packed = distinct_numbers(groups * width + values)
    return packed // width, packed % width


def _extremes(
    function: Literal["min", "max"],
    inverse: Ints,
    column: Column,
    positions: Array | None,
    groups: int,
    counts: Ints,
) -> Partial:
    if column.is_text:
        encoded = column.codes
        numbers: Array = encoded.ranks[_at(encoded.codes, positions)].astype(np.int64)
    else:
        numbers = _at(column.values, positions)
    return Partial(function, counts, _extreme_of(function, inverse, numbers, groups), column)


def _extreme_of(function: str, inverse: Ints, numbers: Array, groups: int) -> Array:
    """The smallest or largest number of each group; anything where a group has none."""
    out = np.zeros(groups, dtype=numbers.dtype)
    out[inverse] = numbers
    (np.minimum if function == "min" else np.maximum).at(out, inverse, numbers)
    return out
