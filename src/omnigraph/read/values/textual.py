"""Comparisons of texts: byte order, case-sensitive, every character ordinary.

A column whose values repeat is compared once per distinct value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query.ir import Op
from omnigraph.read.values.columns import Array, Bools, Column

_FUNCTIONS: Final[dict[Op, Callable[..., pa.Array]]] = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}


def text_against_constant(op: Op, column: Column, positions: Array | None, value: str) -> Bools:
    """A text column, at some positions or all, against one text."""
    if op is Op.EQ and positions is None and (places := column.places_of(value)) is not None:
        held = np.zeros(len(column), dtype=np.bool_)
        held[places] = True
        return held
    if column.repeats:
        encoded = column.codes
        holds = np.append(_one(op, encoded.dictionary, value), False)
        codes = encoded.codes if positions is None else _at(encoded.codes, positions)
        return _spread(holds, codes)
    return _one(op, column.arrow if positions is None else column.take(positions), value)


def _spread(holds: Bools, codes: Array) -> Bools:
    """What holds for a code, by row; a comparison with one code is much quicker than looking up each."""
    chosen = np.flatnonzero(holds)
    return np.asarray(codes == codes.dtype.type(chosen[0]) if len(chosen) == 1 else holds[codes])


def _at(codes: Array, positions: Array) -> Array:
    """Codes at positions; null where the position is negative."""
    if len(positions) and int(positions.min()) < 0:
        return np.where(positions < 0, -1, codes[positions])
    return codes[positions]


def _one(op: Op, texts: pa.Array, value: str) -> Bools:
    if op is Op.STRING_CONTAINS:
        held = pc.match_substring(texts, value)
    elif op is Op.STARTS_WITH:
        held = pc.starts_with(texts, value)
    else:
        held = _FUNCTIONS[op](texts, pa.scalar(value, texts.type))
    return bools(held)


def text_between(op: Op, left: Any, right: pa.Array | Column, positions: Array | None, count: int) -> Bools:
    """Two texts per row, or one text against the texts of a column."""
    if isinstance(right, Column):
        texts = right.arrow if positions is None else right.take(positions)
        encoded = pc.dictionary_encode(texts)
        known = [_pairwise(op, str(left), text) for text in encoded.dictionary.to_pylist()]
        holds = np.array([*known, False], dtype=np.bool_)
        codes = np.asarray(pc.fill_null(encoded.indices, len(known)).to_numpy(zero_copy_only=False))
        return np.asarray(holds[codes])
    if op in _FUNCTIONS:
        return bools(_FUNCTIONS[op](left, right))
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    held = (a is not None and b is not None and _pairwise(op, a, b) for a, b in pairs)
    return np.fromiter(held, dtype=np.bool_, count=count)


def _pairwise(op: Op, left: str, right: str | None) -> bool:
    if right is None:
        return False
    return left.startswith(right) if op is Op.STARTS_WITH else right in left


def bools(arrow: pa.Array) -> Bools:
    """Truth values with null as false."""
    if arrow.null_count:
        arrow = pc.fill_null(arrow, False)
    return np.asarray(arrow.to_numpy(zero_copy_only=False), dtype=np.bool_)
