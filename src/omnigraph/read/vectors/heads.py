"""Few numbers that tell most of a vector: its parts along the directions in which vectors differ most.

Products of heads estimate products of vectors. The numbers that are left out, the tail, differ little, and how far
an estimate may be off is known for each query.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.read.values.columns import Floats
from omnigraph.read.vectors.clusters import products
from omnigraph.records import dataclass

Matrix = npt.NDArray[np.float32]

_TOLD: Final = 0.95
"""Heads tell so much of how vectors differ, …"""
_MULTIPLE: Final = 8
"""… in a multiple of so many numbers, …"""
_WORTH: Final = 0.75
"""… unless that takes more than this share of all numbers: then the head is the vector."""
_BLOCK: Final = 1 << 14


@dataclass(frozen=True, eq=False)
class Heads:
    """How vectors become heads: moved by their ``middle``, then told by their products with some ``directions``,
    one a row, of which the first ``width`` make the head. ``spread`` is the mean square of each of the others."""

    middle: Matrix
    directions: Matrix | None
    width: int
    spread: Floats

    @classmethod
    def plain(cls, middle: Matrix) -> Heads:
        """Heads that are whole vectors."""
        return cls(middle, None, len(middle), np.zeros(0))

    @classmethod
    def of(cls, sample: Floats, middle: Matrix) -> Heads:
        """Heads for vectors like those of a sample, which is moved already."""
        squares, directions = np.linalg.eigh(sample.T @ sample / max(1, len(sample)))
        squares, directions = squares[::-1].clip(0), directions[:, ::-1]
        told = np.cumsum(squares)
        width = int(np.searchsorted(told, _TOLD * told[-1])) + 1
        width += -width % _MULTIPLE
        if width > _WORTH * len(middle):
            return cls.plain(middle)
        return cls(middle, np.ascontiguousarray(directions.T, dtype=np.float32), width, squares[width:])

    @cached_property
    def _front(self) -> Matrix | None:
        return None if self.directions is None else np.ascontiguousarray(self.directions[: self.width].T)

    @property
    def nbytes(self) -> int:
        return 0 if self.directions is None else 2 * int(self.directions.nbytes)

    def blocks(self, vectors: Matrix) -> Iterator[tuple[slice, Matrix, Matrix]]:
        """Vectors some at a time: where they are, moved by the middle, and their heads."""
        for low in range(0, len(vectors), _BLOCK):
            moved: Matrix = np.subtract(vectors[low : low + _BLOCK], self.middle)
            heads: Matrix = moved if self._front is None else np.matmul(moved, self._front)
            yield slice(low, low + len(moved)), moved, heads

    def query(self, vector: Matrix) -> tuple[Matrix, float]:
        """The head of a query, and the usual error of the product of a head with it."""
        moved: Matrix = np.subtract(vector, self.middle)
        if self.directions is None:
            return moved, 0.0
        turned = products(self.directions, moved)
        tail = turned[self.width :].astype(np.float64)
        return turned[: self.width], float(np.sqrt(self.spread @ (tail * tail)))
