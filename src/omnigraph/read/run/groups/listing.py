"""Aggregates that need all values of a group at once: lists, medians, percentiles and deviations."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query import ir
from omnigraph.read.values.arrays import to_arrow
from omnigraph.read.values.columns import Array, Floats, Ints, numbers
from omnigraph.records import dataclass

LISTED: Final = ("collect", "median", "stddev", "percentile")
"""The aggregates that are computed here."""


@dataclass(slots=True)
class Listed:
    """The values of some groups: a group number for each, and the value."""

    agg: ir.Agg
    groups: Ints
    values: pa.Array

    @classmethod
    def joined(cls, parts: list[Listed], starts: Array) -> Listed:
        """Parts one behind the other, whose groups begin at these numbers."""
        groups = np.concatenate([part.groups + start for part, start in zip(parts, starts, strict=True)])
        return cls(parts[0].agg, groups, pa.concat_arrays([part.values for part in parts]))

    def renumbered(self, inverse: Ints) -> Listed:
        """The same values with other numbers for their groups."""
        return Listed(self.agg, inverse[self.groups], self.values)

    def finish(self, count: int) -> pa.Array:
        """The aggregate for each of so many groups."""
        if self.agg.function == "collect":
            return self._lists(count)
        values = numbers(self.values).astype(np.float64)
        sizes = np.bincount(self.groups, minlength=count)
        if self.agg.function == "stddev":
            return _deviations(self.groups, values, sizes)
        share = 0.5 if self.agg.fraction is None else self.agg.fraction
        return _quantiles(self.groups, values, sizes, share)

    def _lists(self, count: int) -> pa.Array:
        """The values of each group in ascending order."""
        table = pa.table({"group": self.groups, "value": self.values})
        table = table.take(pc.sort_indices(table, [("group", "ascending"), ("value", "ascending")]))
        groups = np.asarray(table["group"].to_numpy())
        values = table["value"].combine_chunks()
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if self.agg.distinct and len(values) > 1:
            same = pc.equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False) & (groups[1:] == groups[:-1])
            kept = np.flatnonzero(np.append(True, ~same))
            groups, values = groups[kept], values.take(to_arrow(kept))
        ends = np.cumsum(np.bincount(groups, minlength=count))
        return pa.ListArray.from_arrays(to_arrow(np.append(0, ends).astype(np.int32)), values)


def _deviations(groups: Ints, values: Floats, sizes: Ints) -> pa.Array:
    """The standard deviation of samples; null for fewer than two values.

    Distances from the mean are measured in the largest one of the group, so that their squares do not overflow.
    What is left of them on average, because the mean is rounded, is taken off.
    """
    count = len(sizes)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        means = np.bincount(groups, weights=values, minlength=count) / sizes
        away = values - means[groups]
        largest = np.zeros(count)
        np.maximum.at(largest, groups, np.abs(away))
        scales = np.where(largest > 0, largest, 1.0)
        away /= scales[groups]
        squares = np.bincount(groups, weights=away**2, minlength=count)
        left = np.bincount(groups, weights=away, minlength=count)
        variance = np.maximum(squares - left**2 / sizes, 0.0) / (sizes - 1)
        return to_arrow(np.sqrt(variance) * scales, sizes < 2)


def _quantiles(groups: Ints, values: Floats, sizes: Ints, share: float) -> pa.Array:
    """The value below which a share of each group lies, between its neighbours in proportion."""
    order = np.lexsort((values, groups))
    ranked = values[order]
    if not len(ranked):
        return pa.nulls(len(sizes), pa.float64())
    starts = np.cumsum(sizes) - sizes
    place = share * np.maximum(sizes - 1, 0)
    low = np.floor(place).astype(np.int64)
    high = np.ceil(place).astype(np.int64)
    last = len(ranked) - 1
    below, above = ranked[np.minimum(starts + low, last)], ranked[np.minimum(starts + high, last)]
    part = place - low
    with np.errstate(over="ignore", invalid="ignore"):
        between = above - below
        found = np.where(np.isfinite(between), below + between * part, below * (1 - part) + above * part)
    return to_arrow(found, sizes == 0)
