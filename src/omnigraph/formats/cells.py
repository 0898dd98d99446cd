"""Cells of a column that came with a type of its own, made into cells of a property; each bad one is named.

The same values are taken as in JSON, and the same are refused: an integer is no text, and 1.0 is no integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadValue
from omnigraph.formats.rows import blob_bytes
from omnigraph.lang.values import FLOATS, INTEGERS, Scalar, ValueType, parse_date, parse_datetime

_DAYS: Final = (-719_162, 2_932_896)
"""The first day of year 1 and the last one of year 9999."""
_DAY: Final = 86_400_000
_MOMENTS: Final = (_DAYS[0] * _DAY, (_DAYS[1] + 1) * _DAY - 1)
_PARTS_OF_MS: Final = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_YEARS: Final = "it lies outside the years 1 to 9999"


class Rejected:
    """The rows of a batch that cannot be read, each with its first reason."""

    def __init__(self, rows: int) -> None:
        self.mask = np.zeros(rows, bool)
        self.reasons: dict[int, str] = {}

    def add(self, positions: Sequence[int], reason: str) -> None:
        for position in positions:
            if not self.mask[position]:
                self.mask[position] = True
                self.reasons[position] = reason

    def add_where(self, mask: pa.Array, reason: str) -> None:
        self.add(pc.indices_nonzero(mask).to_pylist(), reason)


@dataclass(frozen=True, slots=True)
class Cell:
    """What is said of a cell that does not fit its column: the column, and the type it came with."""

    where: str
    given: pa.DataType

    @property
    def reason(self) -> str:
        return self.because(f"a value of type {self.given} does not fit")

    def because(self, why: object) -> str:
        return f"{self.where}: {why}"


def converted(
    name: str, wanted: ValueType, stored: pa.DataType, values: pa.Array, cell: Cell, rejected: Rejected
) -> pa.Array:
    """The column of a property; the same values are taken, and refused, as in JSON."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if wanted.is_blob:
        return _blobs(name, values, rejected)
    if values.null_count == len(values):
        return pa.nulls(len(values), stored)
    if wanted.is_plain:
        return _scalars(values, wanted.scalar, stored, cell, rejected)
    if not _is_list(values.type):
        return _none(values, stored, cell, rejected)
    return _lists(values, wanted, stored, cell, rejected)


def _none(values: pa.Array, stored: pa.DataType, cell: Cell, rejected: Rejected) -> pa.Array:
    """A column of values none of which fits."""
    rejected.add_where(values.is_valid(), cell.reason)
    return pa.nulls(len(values), stored)


def _scalars(values: pa.Array, scalar: Scalar, stored: pa.DataType, cell: Cell, rejected: Rejected) -> pa.Array:
    source = values.type
    whole = pa.types.is_integer(source) or pa.types.is_decimal(source)
    if scalar in INTEGERS and whole:
        return _cast(values, stored, cell, rejected)
    if scalar in FLOATS and (whole or pa.types.is_floating(source)):
        numbers = values.cast(stored, safe=False)
        infinite = pc.fill_null(pc.invert(pc.is_finite(numbers)), False)
        rejected.add_where(infinite, cell.because(f"a number is not finite, or exceeds {scalar} range"))
        return numbers
    if scalar is Scalar.DATE:
        return _dates(values, cell, rejected)
    if scalar is Scalar.DATETIME:
        return _datetimes(values, stored, cell, rejected)
    fits = is_text(source) if scalar is Scalar.STRING else scalar is Scalar.BOOL and pa.types.is_boolean(source)
    return values.cast(stored) if fits else _none(values, stored, cell, rejected)


def _cast(values: pa.Array, stored: pa.DataType, cell: Cell, rejected: Rejected) -> pa.Array:
    """Whole numbers of another width; those that do not fit are rejected one by one."""
    try:
        return values.cast(stored)
    except pa.ArrowInvalid:
        pass
    kept = np.ones(len(values), bool)
    for position in range(len(values)):
        try:
            values.slice(position, 1).cast(stored)
        except pa.ArrowInvalid:
            kept[position] = False
    rejected.add(np.flatnonzero(~kept).tolist(), cell.reason)
    return pc.if_else(pa.array(kept), values, pa.scalar(None, values.type)).cast(stored)


def _dates(values: pa.Array, cell: Cell, rejected: Rejected) -> pa.Array:
    """Days: dates, midnights, numbers of days since 1970, or texts."""
    if is_text(values.type):
        return _parsed(values, parse_date, pa.date32(), cell, rejected)
    if pa.types.is_timestamp(values.type) or pa.types.is_date64(values.type):
        moments = _milliseconds(values)
        rejected.add_where(
            pa.array((moments % _DAY != 0) & _valid(values)), cell.because("a time of day is no part of a date")
        )
        return _bounded(moments // _DAY, values, _DAYS, pa.date32(), cell, rejected)
    if pa.types.is_date32(values.type) or pa.types.is_integer(values.type):
        days = _integers(values)
        return _bounded(days, values, _DAYS, pa.date32(), cell, rejected)
    return _none(values, pa.date32(), cell, rejected)


def _datetimes(values: pa.Array, stored: pa.DataType, cell: Cell, rejected: Rejected) -> pa.Array:
    """Instants, to the millisecond: timestamps (in UTC if they name no zone), dates, milliseconds, or texts."""
    if is_text(values.type):
        return _parsed(values, parse_datetime, stored, cell, rejected)
    if pa.types.is_timestamp(values.type) or pa.types.is_date64(values.type):
        return _bounded(_milliseconds(values), values, _MOMENTS, stored, cell, rejected)
    if pa.types.is_date32(values.type):
        return _bounded(_integers(values) * _DAY, values, _MOMENTS, stored, cell, rejected)
    if pa.types.is_integer(values.type):
        return _bounded(_integers(values), values, _MOMENTS, stored, cell, rejected)
    return _none(values, stored, cell, rejected)


def _integers(values: pa.Array) -> Any:
    """Numbers, or the numbers behind dates and times; what no year has is as far away as 64 bits allow."""
    if pa.types.is_uint64(values.type):
        values = pc.min_element_wise(values, pa.scalar(2**62, pa.uint64()), skip_nulls=False)
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    return pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)


def _milliseconds(values: pa.Array) -> Any:
    """The milliseconds of moments since 1970; finer parts are cut off, downwards."""
    if pa.types.is_date64(values.type):
        return _integers(values)
    numbers = _integers(values)
    if values.type.unit == "s":
        return np.clip(numbers, -(2**53), 2**53) * 1_000
    return numbers // _PARTS_OF_MS[values.type.unit]


def _valid(values: pa.Array) -> Any:
    return values.is_valid().to_numpy(zero_copy_only=False)


def _bounded(
    numbers: Any,
    values: pa.Array,
    bounds: tuple[int, int],
    stored: pa.DataType,
    cell: Cell,
    rejected: Rejected,
) -> pa.Array:
    """Numbers of days or milliseconds as dates or instants, as far as there are such."""
    low, high = bounds
    valid = _valid(values)
    inside = (numbers >= low) & (numbers <= high)
    rejected.add(np.flatnonzero(valid & ~inside).tolist(), cell.because(_YEARS))
    width = pa.int32() if pa.types.is_date32(stored) else pa.int64()
    return pa.array(np.where(inside, numbers, 0), width, mask=~(valid & inside)).cast(stored)


def _parsed(values: pa.Array, parse: Any, stored: pa.DataType, cell: Cell, rejected: Rejected) -> pa.Array:
    """Texts read one by one, as they are in JSON."""
    found: list[Any] = []
    for position, text in enumerate(values.to_pylist()):
        try:
            found.append(None if text is None else parse(text))
        except ValueError as error:
            rejected.add([position], cell.because(error))
            found.append(None)
    return pa.array(found, stored)


def _lists(values: pa.Array, wanted: ValueType, stored: pa.DataType, cell: Cell, rejected: Rejected) -> pa.Array:
    """Lists and vectors: their items are converted as cells are, and a bad one spoils its row."""
    lists = values.cast(pa.list_(values.type.value_type))
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    owners = np.repeat(np.arange(len(lists)), lengths)
    items = lists.flatten()
    bad = Rejected(len(items))
    bad.add_where(items.is_null(), cell.because("an item is null"))
    inner = stored.value_type
    read = converted("", ValueType(wanted.scalar), inner, items, cell, bad)
    for position, reason in bad.reasons.items():
        rejected.add([int(owners[position])], reason)
    if wanted.dimension is None:
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), read, mask=lists.is_null())
    dimension = wanted.dimension
    valid = _valid(lists)
    for position in np.flatnonzero(valid & (lengths != dimension)).tolist():
        rejected.add([position], cell.because(f"needs {dimension} numbers, not {lengths[position]}"))
    fits = valid & (lengths == dimension)
    flat = np.zeros((len(lists), dimension), np.float32)
    flat[fits] = read.to_numpy(zero_copy_only=False)[np.repeat(fits, lengths)].reshape(-1, dimension)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), dimension, mask=pa.array(~fits))


def _blobs(name: str, values: pa.Array, rejected: Rejected) -> pa.Array:
    found: list[bytes | None] = []
    for position, value in enumerate(values.to_pylist()):
        try:
            found.append(blob_bytes(name, value))
        except BadValue as error:
            rejected.add([position], error.reason)
            found.append(None)
    return lance.blob_array(found)


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner) or inner == pa.string_view())
