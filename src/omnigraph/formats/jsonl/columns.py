"""Columns that Arrow read from JSON, converted to columns of a table; doubtful rows are marked, not guessed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.formats.cells import blob_column, parse_texts, vector_column
from omnigraph.formats.encoding import json_escaped
from omnigraph.lang.canonical import canonical_text
from omnigraph.lang.schema.catalog import EntityType, Property
from omnigraph.lang.values import (
    DATE_BOUNDS,
    DATETIME_BOUNDS,
    F32_MAX,
    FLOATS,
    Scalar,
    ValueType,
    parse_date,
    parse_datetime,
)

_JSON: Final = {
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float64(),
    Scalar.F64: pa.float64(),
}
_FLOAT_LIMITS: Final = {Scalar.F32: F32_MAX, Scalar.F64: sys.float_info.max}
_NEGATIVE_ZERO: Final = np.iinfo(np.int64).min
"""The bits of -0.0."""
_FIRST_MICROSECOND: Final = DATETIME_BOUNDS[0] * 1_000
_INSTANT: Final = pa.timestamp("ms", tz="UTC")
_PLAIN_LENGTHS: Final = pa.array([20, *range(22, 28)], pa.int32())
"""How long `YYYY-MM-DDTHH:MM:SSZ` is, with a fraction of up to six digits."""

_Number = TypeVar("_Number", np.float32, np.float64, np.int64)
Positions = npt.NDArray[np.int64]
_NOWHERE: Final[Positions] = np.array([], np.int64)


@dataclass(frozen=True, slots=True)
class Doubts:
    """Rows that the strict reader has to read: in any case (``rows``), or only if they spell `-0` (``zeros``)."""

    rows: npt.NDArray[np.bool_]
    zeros: npt.NDArray[np.bool_]

    @classmethod
    def none(cls, count: int) -> Doubts:
        return cls(np.zeros(count, np.bool_), np.zeros(count, np.bool_))

    def mark(self, mask: pa.Array) -> None:
        """Doubt the rows of a mask."""
        self.rows[as_mask(mask)] = True


@dataclass(frozen=True, slots=True)
class _Values:
    """Converted values, and the positions of those that are in doubt."""

    array: pa.Array
    doubtful: Positions = field(default_factory=lambda: _NOWHERE)
    zeros: Positions = field(default_factory=lambda: _NOWHERE)


def as_mask(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Truth values for numpy; null is false."""
    filled = pc.fill_null(values, False) if values.null_count else values
    mask: npt.NDArray[np.bool_] = filled.to_numpy(zero_copy_only=False)
    return mask


def json_type(value_type: ValueType) -> pa.DataType:
    """The type in which Arrow reads a property. Dates, instants and blobs are read as texts first."""
    item = _JSON.get(value_type.scalar, pa.string())
    return item if value_type.is_plain else pa.list_(item)


def column_of(prop: Property, read: pa.Array, stored: pa.DataType, doubts: Doubts) -> pa.Array:
    """The column of a property from the column that Arrow read."""
    wanted = prop.type
    if not wanted.nullable and prop.embed is None and read.null_count:
        doubts.mark(read.is_null())
    if read.null_count == len(read):
        return pa.nulls(len(read), stored)
    if wanted.is_blob:
        blobs, refused = blob_column(prop.name, read)
        doubts.rows[list(refused)] = True
        return blobs
    if wanted.is_plain:
        values = _values(read, wanted.scalar)
        doubts.rows[values.doubtful] = True
        doubts.zeros[values.zeros] = True
        return values.array
    offsets = read.offsets.to_numpy()
    items = _values(read.values, wanted.scalar)
    doubts.rows[_owners(offsets, items.doubtful)] = True
    doubts.zeros[_owners(offsets, items.zeros)] = True
    if read.values.null_count:
        doubts.rows[_owners(offsets, np.flatnonzero(as_mask(read.values.is_null())))] = True
    if wanted.dimension is not None:
        return _vectors(read, items.array, wanted.dimension, doubts)
    if items.array is read.values:
        return read
    return pa.ListArray.from_arrays(read.offsets, items.array, mask=read.is_null())


def _owners(offsets: npt.NDArray[np.int32], items: Positions) -> Positions:
    """The rows of the lists that some items belong to."""
    return np.searchsorted(offsets, items, side="right") - 1


def _values(read: pa.Array, scalar: Scalar) -> _Values:
    if scalar in FLOATS:
        return _floats(read, scalar)
    if scalar is Scalar.DATE:
        return _dates(read)
    if scalar is Scalar.DATETIME:
        return _datetimes(read)
    return _Values(read)


def _floats(read: pa.Array, scalar: Scalar) -> _Values:
    """Numbers. Those at or beyond a limit are in doubt, and -0.0, which may be spelled as the integer `-0`."""
    numbers = _numbers(read, np.float64)
    inside = np.abs(numbers) < _FLOAT_LIMITS[scalar]
    doubtful = _NOWHERE if inside.all() else np.flatnonzero(~inside)
    zeros = np.flatnonzero(numbers.view(np.int64) == _NEGATIVE_ZERO)
    stored = read.cast(pa.float32(), safe=False) if scalar is Scalar.F32 else read
    return _Values(stored, doubtful, zeros)


def _numbers(values: pa.Array, kind: type[_Number]) -> npt.NDArray[_Number]:
    """The numbers of an array in memory; those of nulls are undefined."""
    if not len(values):
        return np.array([], kind)
    return np.frombuffer(values.buffers()[1], kind, values.offset + len(values))[values.offset :]


def _dates(read: pa.Array) -> _Values:
    try:
        days = read.cast(pa.date32())
    except pa.ArrowInvalid:
        return _parsed(read, parse_date, pa.date32())
    first = pc.min(days.cast(pa.int32())).as_py()
    if first is not None and first < DATE_BOUNDS[0]:
        return _parsed(read, parse_date, pa.date32())
    return _Values(days)


def _datetimes(read: pa.Array) -> _Values:
    """Instants: Arrow reads those in UTC to the second or finer; any other spelling is read one by one."""
    lengths = pc.binary_length(read)
    utc = pc.ends_with(read, "Z")
    zero = pc.ends_with(read, "+00:00")
    lengths = pc.if_else(zero, pc.subtract(lengths, 5), lengths)
    plain = pc.and_(pc.or_(utc, zero), pc.is_in(lengths, value_set=_PLAIN_LENGTHS))
    if pc.all(plain).as_py() is False:
        return _parsed(read, parse_datetime, _INSTANT)
    try:
        fine = read.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    except pa.ArrowInvalid:
        return _parsed(read, parse_datetime, _INSTANT)
    first = pc.min(fine).as_py()
    if first is not None and first < _FIRST_MICROSECOND:
        return _parsed(read, parse_datetime, _INSTANT)
    return _Values(pa.array(_numbers(fine, np.int64) // 1000, mask=~as_mask(fine.is_valid())).cast(_INSTANT))


def _parsed(read: pa.Array, parse: Callable[[str], Any], stored: pa.DataType) -> _Values:
    """Texts parsed one by one; those that the parser refuses are in doubt."""
    values, refused = parse_texts(read, parse, stored)
    return _Values(values, np.array(list(refused), np.int64))


def _vectors(read: pa.Array, items: pa.Array, dimension: int, doubts: Doubts) -> pa.Array:
    """Lists of numbers as vectors; lists of another length are in doubt."""
    lengths = np.diff(read.offsets.to_numpy())
    fits = as_mask(read.is_valid()) & (lengths == dimension)
    if fits.all():
        return pa.FixedSizeListArray.from_arrays(items, dimension)
    doubts.rows[as_mask(read.is_valid()) & ~fits] = True
    return vector_column(_numbers(items, np.float32), lengths, fits, dimension)


def key_ids(entity: EntityType, columns: Mapping[str, pa.Array]) -> pa.Array:
    """The ids of nodes or edges from their keys; null where a key is in doubt."""
    texts = [_key_text(columns[name], entity.key_type(name)) for name in entity.key]
    if len(texts) == 1:
        return texts[0]
    pieces: list[Any] = ['["']
    for text in texts:
        pieces += [json_escaped(text), '","']
    pieces[-1] = '"]'
    return pc.binary_join_element_wise(*pieces, "")


def _key_text(values: pa.Array, value_type: ValueType) -> pa.Array:
    """The canonical texts of values."""
    scalar = value_type.scalar
    if scalar is Scalar.STRING:
        return values
    if scalar in FLOATS:
        return pa.array([_float_text(value, value_type) for value in values.to_pylist()], pa.string())
    if scalar is Scalar.DATE:
        values = values.cast(pa.int32())
    elif scalar is Scalar.DATETIME:
        values = values.cast(pa.int64())
    return values.cast(pa.string())


def _float_text(value: float | None, value_type: ValueType) -> str | None:
    try:
        return canonical_text(value, value_type)
    except ValueError:
        return None
