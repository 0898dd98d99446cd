"""Grouping: rows with equal keys become one, and aggregates are kept for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.errors import CountOverflow, SumOverflow
from omnigraph.lang.query import ir
from omnigraph.lang.query.explain import show
from omnigraph.lang.schema.catalog import Catalog, NodeType
from omnigraph.read.limits import Limits
from omnigraph.read.pattern.pattern import mentioned
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame, joined
from omnigraph.read.run.groups.aggregates import Partial, combine, partial
from omnigraph.read.values.arrays import to_arrow
from omnigraph.read.values.columns import Column, Ints
from omnigraph.read.values.comparing import Series
from omnigraph.records import dataclass
from omnigraph.settings import READ_DEFAULTS, ReadSettings

_WIDEST: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups: a row of each, and the aggregates of each in the order of the query."""

    frame: Frame
    aggregates: list[pa.Array]


@dataclass(slots=True)
class _Part:
    """The groups of some of the rows."""

    frame: Frame
    partials: list[Partial]


class Grouping:
    """Groups the rows of frames. Without keys all rows are one group, also if there are none."""

    def __init__(
        self,
        keys: Sequence[ir.Expr],
        aggregates: Sequence[ir.Agg],
        catalog: Catalog,
        expressions: Expressions,
        limits: Limits,
        settings: ReadSettings = READ_DEFAULTS,
    ) -> None:
        self._settings = settings
        self._keys = [key for key in keys if any(mentioned(key))]
        self._computed: dict[ir.Expr, dict[object, int]] = {}
        self._aggregates = list(aggregates)
        self._catalog = catalog
        self._expressions = expressions
        self._limits = limits
        self._parts: list[_Part] = []
        self._pending = 0
        self._is_one = not keys

    @property
    def variables(self) -> set[str]:
        """The variables of the keys."""
        return {name for key in self._keys for name in mentioned(key)}

    def consume(self, frame: Frame, sign: int = 1) -> None:
        """Add the rows of a frame; with a negative sign, subtract them."""
        if not frame.count:
            return
        if any(_is_distinct(frame, name) for name in self._identified(frame)):
            part = self._each_alone(frame)
        else:
            codes = self._all_codes(frame)
            alone = any(_all_differ(code) for code in codes)
            part = self._each_alone(frame) if alone else self._grouped(frame, codes, None)
        if sign < 0:
            for counted in part.partials:
                counted.negate()
        self._keep(part)

    def _identified(self, frame: Frame) -> set[str]:
        """The variables whose entity itself is a key."""
        return {name for key in self._keys if _identifies(key, frame, self._catalog) for name in mentioned(key)}

    def _all_codes(self, frame: Frame) -> list[Ints]:
        """Numbers that are equal for rows of one group. An entity determines its properties, so they need no
        numbers."""
        known = self._identified(frame)
        rest = [key for key in self._keys if not known.issuperset(mentioned(key))]
        codes = [frame.positions[name].astype(np.int64) for name in sorted(known)]
        return codes + [self._codes(key, frame) for key in rest]

    def _each_alone(self, frame: Frame) -> _Part:
        """The groups of rows of which no two have equal keys."""
        kept = [partial(agg, frame, None, frame.count, self._expressions) for agg in (*self._aggregates, None)]
        return _Part(self._representing(frame), kept)

    def _representing(self, frame: Frame) -> Frame:
        some = frame.only(self.variables)
        return Frame(some.count, some.rows, some.positions)

    def _keep(self, part: _Part) -> None:
        self._check(part)
        self._parts.append(part)
        self._pending += part.frame.count
        if self._pending > self._settings.pending_groups and len(self._parts) > 1:
            self._parts = [self._merged()]
            self._pending = self._parts[0].frame.count
            self._limits.allocate(self._pending, self._pending * 16 * (len(self._keys) + len(self._aggregates)))

    def _check(self, part: _Part) -> None:
        if any(one.is_beyond_counting for one in part.partials):
            raise CountOverflow(self._expressions.query)

    def _codes(self, key: ir.Expr, frame: Frame) -> Ints:
        """A number per row, equal for equal values; -1 for null."""
        if not isinstance(key, ir.Prop):
            return self._numbered(key, frame)
        positions = frame.positions[key.variable]
        column = frame.rows[key.variable].column(key.property)
        if not len(column):
            return np.full(frame.count, -1, dtype=np.int64)
        codes = column.codes.codes[positions].astype(np.int64)
        if len(positions) and int(positions.min()) < 0:
            codes[positions < 0] = -1
        return codes

    def _numbered(self, key: ir.Expr, frame: Frame) -> Ints:
        """Numbers for computed values, which have no dictionary of their own."""
        operand = self._expressions.operand(key, frame)
        known = self._computed.setdefault(key, {})
        if not isinstance(operand, Series):
            # What is computed with a null that is the same for all rows is null for all of them.
            number = -1 if operand is None else known.setdefault(operand, len(known))
            return np.full(frame.count, number, dtype=np.int64)
        encoded = Column(operand.arrow).codes
        values = encoded.dictionary.to_pylist()
        numbers = [known.setdefault(_hashable(value), len(known)) for value in values]
        return np.array([*numbers, -1], dtype=np.int64)[encoded.codes]

    def _grouped(self, frame: Frame, codes: list[Ints], partials: list[Partial] | None) -> _Part:
        first, inverse = distinct_rows(codes, frame.count, self._settings.dense_groups)
        groups = len(first)
        if partials is None:
            kept = [partial(agg, frame, inverse, groups, self._expressions) for agg in (*self._aggregates, None)]
        else:
            kept = [combine(one, inverse, groups) for one in partials]
        return _Part(self._representing(frame).take(first), kept)

    def _merged(self) -> _Part:
        parts = self._parts
        if len(parts) == 1:
            return parts[0]
        frame = joined([part.frame for part in parts])
        partials = [Partial.joined(list(some)) for some in zip(*(part.partials for part in parts), strict=True)]
        merged = self._grouped(frame, self._all_codes(frame), partials)
        self._check(merged)
        return merged

    def finish(self) -> Groups:
        """The groups that have rows."""
        if not self._parts:
            if not self._is_one:
                return Groups(Frame(0), [])
            return Groups(Frame(1), [_of_nothing(agg) for agg in self._aggregates])
        part = self._merged()
        *wanted, rows = part.partials
        arrays = [self._finished(agg, one) for agg, one in zip(self._aggregates, wanted, strict=True)]
        present = np.flatnonzero(rows.counts)
        if len(present) == part.frame.count or self._is_one:
            return Groups(part.frame, arrays)
        return Groups(part.frame.take(present), [array.take(to_arrow(present)) for array in arrays])

    def _finished(self, agg: ir.Agg, one: Partial) -> pa.Array:
        try:
            return one.finish()
        except OverflowError:
            raise SumOverflow(self._expressions.query, show(agg)) from None


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _of_nothing(agg: ir.Agg) -> pa.Array:
    """An aggregate over no rows: zero for a count, null for the rest."""
    if agg.function == "collect":
        return pa.array([[]], pa.list_(pa.null()))
    return pa.array([0], pa.int64()) if agg.function == "count" else pa.nulls(1)


def _identifies(key: ir.Expr, frame: Frame, catalog: Catalog) -> bool:
    """Do equal values of a key mean the same entity?"""
    if not isinstance(key, ir.Prop):
        return isinstance(key, ir.Var)
    entity = getattr(frame.rows[key.variable], "entity", None)
    if key.property == "id":
        return True
    return isinstance(entity, NodeType) and catalog.nodes[entity.name].key == (key.property,)


def _is_distinct(frame: Frame, name: str) -> bool:
    """Is every entity in at most one row?"""
    code = frame.at(name)
    if code is None:
        return True
    if int(code.min()) < 0 or len(code) > frame.rows[name].count:
        return False
    seen = np.zeros(frame.rows[name].size, dtype=np.bool_)
    seen[code] = True
    return int(np.count_nonzero(seen)) == len(code)


def _all_differ(codes: Ints) -> bool:
    """Are no two numbers equal? False also where finding out would take long."""
    width = int(codes.max(initial=-1)) + 2
    if width > 4 * len(codes) + 1024 or width <= len(codes):
        return False
    seen = np.zeros(width, dtype=np.bool_)
    seen[codes] = True
    return int(np.count_nonzero(seen)) == len(codes)


def distinct_rows(codes: list[Ints], count: int, dense: int = READ_DEFAULTS.dense_groups) -> tuple[Ints, Ints]:
    """Numbers the distinct combinations: the first row of each, and for each row its number. Up to the ``dense``
    number of combinations, and wherever there are about as many rows, they get a place each in an array."""
    if not codes:
        return np.zeros(min(count, 1), dtype=np.int64), np.zeros(count, dtype=np.int64)
    packed, width = codes[0] + 1, int(codes[0].max(initial=-1)) + 2
    for code in codes[1:]:
        span = int(code.max(initial=-1)) + 2
        if width * span >= _WIDEST:
            _, packed = np.unique(packed, return_inverse=True)
            width = int(packed.max(initial=0)) + 1
        packed = packed * span + (code + 1)
        width *= span
    if width <= max(dense, 4 * count) and width <= 1 << 26:
        first = np.full(width, -1, dtype=np.int64)
        first[packed[::-1]] = np.arange(count - 1, -1, -1)
        present = np.flatnonzero(first >= 0)
        number = np.empty(width, dtype=np.int64)
        number[present] = np.arange(len(present))
        return first[present], number[packed]
    _, first, inverse = np.unique(packed, return_index=True, return_inverse=True)
    return first, inverse
