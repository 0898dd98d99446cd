"""A bag of rows over variables: one array of positions per variable, and how often each row counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

import numpy as np

from omnigraph.read.data.rows import Rows
from omnigraph.read.values.columns import Array, Bools, Ints, Positions
from omnigraph.read.values.counting import MANY, counts_by, product, total
from omnigraph.records import dataclass

NO_ROW = -1
"""The position of a variable that an optional block left without a match."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Intermediate rows of a query, by column. ``weights`` is None where every row counts once."""

    count: int
    rows: Mapping[str, Rows] = field(default_factory=dict)
    positions: Mapping[str, Positions] = field(default_factory=dict)
    weights: Ints | None = None

    @classmethod
    def of(cls, variable: str, rows: Rows, positions: Positions, weights: Ints | None = None) -> Frame:
        """A frame of one variable."""
        return cls(len(positions), {variable: rows}, {variable: positions}, weights)

    def at(self, variable: str) -> Array | None:
        """The positions of a variable; None if they are all positions of its table, in order."""
        positions = self.positions[variable]
        return None if positions is self.rows[variable].whole else positions

    @property
    def nbytes(self) -> int:
        weights = 0 if self.weights is None else self.weights.nbytes
        return sum(array.nbytes for array in self.positions.values()) + weights

    @property
    def total(self) -> int:
        """How many rows there are, each as often as it counts."""
        return self.count if self.weights is None else total(self.weights)

    def take(self, index: Array) -> Frame:
        """Some of the rows, by number, in that order."""
        positions = {name: array.take(index) for name, array in self.positions.items()}
        weights = None if self.weights is None else self.weights.take(index)
        return Frame(len(index), self.rows, positions, weights)

    def keep(self, mask: Bools) -> Frame:
        """The rows for which the mask is true."""
        kept = int(np.count_nonzero(mask))
        return self if kept == self.count else self.take(np.flatnonzero(mask))

    def slice(self, start: int, stop: int) -> Frame:
        """Neighbouring rows, without a copy."""
        positions = {name: array[start:stop] for name, array in self.positions.items()}
        weights = None if self.weights is None else self.weights[start:stop]
        return Frame(min(stop, self.count) - start, self.rows, positions, weights)

    def bind(self, variable: str, rows: Rows, positions: Positions) -> Frame:
        """The same rows with one more variable."""
        return Frame(
            self.count, {**self.rows, variable: rows}, {**self.positions, variable: positions}, self.weights
        )

    def times(self, factor: Array) -> Frame:
        """The rows with their weights multiplied; rows of weight zero are dropped."""
        if factor.dtype == np.bool_:
            return self.keep(factor)
        factor = factor.astype(np.int64, copy=False)
        weights = factor if self.weights is None else product(self.weights, factor)
        return Frame(self.count, self.rows, self.positions, weights).keep(factor > 0)

    def only(self, variables: Iterable[str]) -> Frame:
        """The same rows with some of the variables."""
        kept = set(variables)
        if kept >= self.positions.keys():
            return self
        return Frame(
            self.count,
            {name: rows for name, rows in self.rows.items() if name in kept},
            {name: array for name, array in self.positions.items() if name in kept},
            self.weights,
        )

    def merged(self) -> Frame:
        """Of a frame with one variable or none: equal rows as one."""
        if not self.positions:
            return Frame(1, {}, {}, np.array([min(self.total, MANY)], dtype=np.int64))
        [(variable, positions)] = self.positions.items()
        rows = self.rows[variable]
        counted = counts_by(positions, self.weights, rows.size)
        present = np.flatnonzero(counted).astype(np.int32)
        return Frame.of(variable, rows, present, counted[present])


def joined(frames: list[Frame]) -> Frame:
    """Frames of the same variables, one behind the other."""
    if len(frames) == 1:
        return frames[0]
    first = frames[0]
    positions = {name: np.concatenate([f.positions[name] for f in frames]) for name in first.positions}
    weights = None
    if any(f.weights is not None for f in frames):
        weights = np.concatenate(
            [np.ones(f.count, dtype=np.int64) if f.weights is None else f.weights for f in frames]
        )
    return Frame(sum(f.count for f in frames), first.rows, positions, weights)


Consume = Callable[[Frame], None]
"""Takes the frames that a plan makes."""
