"""Sums, differences and products of integers that cannot leave 64 bits, as the bounds of their columns show.

No result is checked, then: blocks of rows that fit caches pass through a whole expression, in several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.read.values.columns import Array, Bools, Column, Ints
from omnigraph.read.values.comparing import Series
from omnigraph.read.values.parallel import in_parallel, parts_of
from omnigraph.records import dataclass

_BLOCK: Final = 1 << 15
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {"+": np.add, "-": np.subtract, "*": np.multiply}
OPERATORS: Final = frozenset(_FUNCTIONS)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator between two terms."""

    operator: str
    left: Term
    right: Term


Term = Operation | Series | int
"""A value by row or the same for all: computed, of a column of integers, or a constant."""


def bounds(term: Term) -> tuple[int, int] | None:
    """The least and the most that a term and all its parts can be; None if it is unknown or not in 64 bits."""
    if isinstance(term, int):
        found: tuple[int, int] | None = (term, term)
    elif isinstance(term, Series):
        found = term.bounds
    else:
        found = _bounds_of(term)
    return found if found is not None and found[0] >= _LEAST and found[1] <= _MOST else None


def _bounds_of(operation: Operation) -> tuple[int, int] | None:
    left, right = bounds(operation.left), bounds(operation.right)
    if left is None or right is None:
        return None
    if operation.operator == "+":
        return left[0] + right[0], left[1] + right[1]
    if operation.operator == "-":
        return left[0] - right[1], left[1] - right[0]
    products = [one * other for one in left for other in right]
    return min(products), max(products)


def computed(operation: Operation) -> Column:
    """The values of a bounded operation for all rows; null where a part of it is."""
    series = list(_series(operation))
    count, settings = len(series[0]), series[0].column.settings
    values = np.empty(count, dtype=np.int64)
    valid = _valid(series)

    def work(low: int, high: int) -> None:
        for start in range(low, high, _BLOCK):
            stop = min(start + _BLOCK, high)
            _fill(operation, start, stop, values[start:stop])
            if valid is not None:
                values[start:stop] *= valid[start:stop]

    cuts = np.linspace(0, count, 1 + parts_of(count, settings.parallel_from)).astype(np.int64)
    in_parallel(work, pairwise(cuts.tolist()))
    present = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    column = Column(pa.Array.from_buffers(pa.int64(), count, [present, pa.py_buffer(values)]), settings)
    column.values, column.valid = values, valid
    return column


def _fill(operation: Operation, low: int, high: int, out: Ints) -> Ints:
    """Some rows of an operation, written into an array."""
    left = _part(operation.left, low, high, out)
    right = _part(operation.right, low, high, None)
    _FUNCTIONS[operation.operator](left, right, out=out)
    return out


def _part(term: Term, low: int, high: int, out: Ints | None) -> Array | int:
    if isinstance(term, int):
        return term
    if isinstance(term, Operation):
        return _fill(term, low, high, np.empty(high - low, dtype=np.int64) if out is None else out)
    some = slice(low, high) if term.positions is None else term.positions[low:high]
    return term.column.values[some].astype(np.int64, copy=False)


def _series(term: Term) -> Iterator[Series]:
    if isinstance(term, Series):
        yield term
    elif isinstance(term, Operation):
        yield from _series(term.left)
        yield from _series(term.right)


def _valid(series: list[Series]) -> Bools | None:
    """Where all series have a value; None if everywhere."""
    valid: Bools | None = None
    for one in {(id(one.column), id(one.positions)): one for one in series}.values():
        here = one.valid
        if here is not None:
            valid = here if valid is None else valid & here
    return None if valid is None or valid.all() else valid
