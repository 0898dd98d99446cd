"""Columns with a type of their own, from Parquet or a DataFrame, converted to the columns of properties.

The same values are accepted as in JSON, and the same are refused: an integer is no text, and 1.0 is no integer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadValue
from omnigraph.formats.rows import blob_cell
from omnigraph.lang.values import (
    DATE_BOUNDS,
    DATETIME_BOUNDS,
    FLOATS,
    INTEGERS,
    Scalar,
    ValueType,
    in_range,
    parse_date,
    parse_datetime,
)

_LONGEST_SHOWN: Final = 60
_DAY: Final = 86_400_000
_PARTS_OF_MS: Final = {"ms": 1, "us": 1_000, "ns": 1_000_000}
NOT_UTF8: Final = "Invalid UTF8"
"""What Arrow says of texts that are not UTF-8; everything else is damage."""
_YEARS: Final = "it lies outside the years 1 to 9999"

Reasons = dict[int, str]
"""Why some values of a column are refused, by position."""


class RowErrors:
    """The unreadable rows of a batch, each with its first reason."""

    def __init__(self, rows: int) -> None:
        self.mask = np.zeros(rows, bool)
        self.reasons: Reasons = {}

    def add(self, positions: Sequence[int], reason: str) -> None:
        for position in positions:
            if not self.mask[position]:
                self.mask[position] = True
                self.reasons[position] = reason

    def add_where(self, mask: pa.Array, reason: str) -> None:
        self.add(pc.indices_nonzero(mask).to_pylist(), reason)


@dataclass(frozen=True, slots=True)
class Conversion:
    """The conversion of a column: ``target`` is the property and its type, ``source`` the type of the values."""

    target: str
    source: pa.DataType

    @property
    def mismatch(self) -> str:
        return self.reason(f"a value of type {self.source} does not fit")

    def reason(self, why: object) -> str:
        return f"{self.target}: {why}"


def convert_column(
    name: str, wanted: ValueType, stored: pa.DataType, values: pa.Array, conversion: Conversion, errors: RowErrors
) -> pa.Array:
    """The column of a property. Values that do not fit become null, and are added to the errors."""
    values = sound_texts(decoded(values), conversion.target, errors)
    if wanted.is_blob:
        blobs, reasons = blob_column(name, values)
        for position, reason in reasons.items():
            errors.add([position], reason)
        return blobs
    if values.null_count == len(values):
        return pa.nulls(len(values), stored)
    if wanted.is_plain:
        return _scalars(values, wanted.scalar, stored, conversion, errors)
    if not _is_list(values.type):
        return _nulls(values, stored, conversion, errors)
    return _lists(values, wanted, stored, conversion, errors)


def decoded(values: pa.Array) -> pa.Array:
    """The values themselves of an array that is written in some shorter way, or as an extension of text."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        texts = values.dictionary.cast(pa.string()) if is_text(kind) else values.dictionary
        return pa.DictionaryArray.from_arrays(values.indices, texts).dictionary_decode()
    if pa.types.is_run_end_encoded(kind):
        return decoded(pc.run_end_decode(values))
    if isinstance(kind, pa.UuidType):
        return pa.array([None if each is None else str(each) for each in values.to_pylist()], pa.string())
    is_extended_text = isinstance(kind, pa.BaseExtensionType) and is_text(kind.storage_type)
    return values.storage if is_extended_text else values


def sound_texts(values: pa.Array, target: str, errors: RowErrors) -> pa.Array:
    """Texts with null for those that are not UTF-8.

    Arrow takes any bytes for a text if a file says so, and a table with such a text could not be read any more.
    """
    if not is_text(values.type):
        return values
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        if NOT_UTF8 not in str(error):
            raise
        return _only_sound(values, target, errors)
    return values


def _only_sound(values: pa.Array, target: str, errors: RowErrors) -> pa.Array:
    found: list[str | None] = []
    for position, value in enumerate(values.cast(pa.large_binary()).to_pylist()):
        try:
            found.append(None if value is None else value.decode())
        except UnicodeDecodeError as error:
            errors.add([position], f"{target}: a text is not UTF-8: byte 0x{value[error.start]:02x}")
            found.append(None)
    return pa.array(found, values.type)


def _nulls(values: pa.Array, stored: pa.DataType, conversion: Conversion, errors: RowErrors) -> pa.Array:
    """A column of nulls, for values of a type that does not fit."""
    errors.add_where(values.is_valid(), conversion.mismatch)
    return pa.nulls(len(values), stored)


def _scalars(
    values: pa.Array, scalar: Scalar, stored: pa.DataType, conversion: Conversion, errors: RowErrors
) -> pa.Array:
    source = values.type
    whole = pa.types.is_integer(source) or pa.types.is_decimal(source)
    if scalar in INTEGERS and whole:
        return _integer_column(values, scalar, stored, conversion, errors)
    if scalar in FLOATS and (whole or pa.types.is_floating(source)):
        numbers = values.cast(stored, safe=False)
        infinite = pc.fill_null(pc.invert(pc.is_finite(numbers)), False)
        errors.add_where(infinite, conversion.reason(f"a number is not finite, or exceeds {scalar} range"))
        return numbers
    if scalar is Scalar.DATE:
        return _dates(values, conversion, errors)
    if scalar is Scalar.DATETIME:
        return _datetimes(values, stored, conversion, errors)
    fits = is_text(source) if scalar is Scalar.STRING else scalar is Scalar.BOOL and pa.types.is_boolean(source)
    return values.cast(stored) if fits else _nulls(values, stored, conversion, errors)


def _integer_column(
    values: pa.Array, scalar: Scalar, stored: pa.DataType, conversion: Conversion, errors: RowErrors
) -> pa.Array:
    """Whole numbers of another width. If some do not fit, each is looked at."""
    try:
        return values.cast(stored)
    except pa.ArrowInvalid:
        pass
    kept: list[int | None] = []
    for position, value in enumerate(values.to_pylist()):
        fits = value is None or (value == int(value) and in_range(int(value), scalar))
        kept.append(int(value) if fits and value is not None else None)
        if not fits:
            why = f"exceeds {scalar} range" if value == int(value) else "is not an integer"
            errors.add([position], conversion.reason(f"{value} {why}"))
    return pa.array(kept, stored)


def _dates(values: pa.Array, conversion: Conversion, errors: RowErrors) -> pa.Array:
    """Days: dates, midnights, numbers of days since 1970, or texts."""
    if is_text(values.type):
        return _parsed(values, parse_date, pa.date32(), conversion, errors)
    if pa.types.is_timestamp(values.type) or pa.types.is_date64(values.type):
        moments = _milliseconds(values)
        errors.add_where(
            pa.array((moments % _DAY != 0) & _valid(values)),
            conversion.reason("a time of day is no part of a date"),
        )
        return _bounded(moments // _DAY, values, DATE_BOUNDS, pa.date32(), conversion, errors)
    if pa.types.is_date32(values.type) or pa.types.is_integer(values.type):
        days = _integers(values)
        return _bounded(days, values, DATE_BOUNDS, pa.date32(), conversion, errors)
    return _nulls(values, pa.date32(), conversion, errors)


def _datetimes(values: pa.Array, stored: pa.DataType, conversion: Conversion, errors: RowErrors) -> pa.Array:
    """Instants, to the millisecond: timestamps (in UTC if they name no zone), dates, milliseconds, or texts."""
    if is_text(values.type):
        return _parsed(values, parse_datetime, stored, conversion, errors)
    if pa.types.is_timestamp(values.type) or pa.types.is_date64(values.type):
        return _bounded(_milliseconds(values), values, DATETIME_BOUNDS, stored, conversion, errors)
    if pa.types.is_date32(values.type):
        return _bounded(_integers(values) * _DAY, values, DATETIME_BOUNDS, stored, conversion, errors)
    if pa.types.is_integer(values.type):
        return _bounded(_integers(values), values, DATETIME_BOUNDS, stored, conversion, errors)
    return _nulls(values, stored, conversion, errors)


def _integers(values: pa.Array) -> Any:
    """The 64-bit numbers of integers, dates and times; unsigned ones beyond them are far outside of all years."""
    if pa.types.is_uint64(values.type):
        values = pc.min_element_wise(values, pa.scalar(2**62, pa.uint64()), skip_nulls=False)
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    return pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)


def _milliseconds(values: pa.Array) -> Any:
    """The milliseconds of moments since 1970, rounded down."""
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
    conversion: Conversion,
    errors: RowErrors,
) -> pa.Array:
    """Numbers of days or milliseconds as dates or instants of the years 1 to 9999."""
    low, high = bounds
    valid = _valid(values)
    inside = (numbers >= low) & (numbers <= high)
    errors.add(np.flatnonzero(valid & ~inside).tolist(), conversion.reason(_YEARS))
    width = pa.int32() if pa.types.is_date32(stored) else pa.int64()
    return pa.array(np.where(inside, numbers, 0), width, mask=~(valid & inside)).cast(stored)


def _parsed(
    values: pa.Array, parse: Callable[[str], Any], stored: pa.DataType, conversion: Conversion, errors: RowErrors
) -> pa.Array:
    parsed, reasons = parse_texts(values, parse, stored)
    for position, reason in reasons.items():
        errors.add([position], conversion.reason(reason))
    return parsed


def parse_texts(texts: pa.Array, parse: Callable[[str], Any], stored: pa.DataType) -> tuple[pa.Array, Reasons]:
    """A column of parsed texts, each distinct one by itself, with null for those that the parser refuses."""
    encoded = texts.dictionary_encode()
    found: list[Any] = []
    refused: dict[int, str] = {}
    for code, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            found.append(None if text is None else parse(text))
        except ValueError as error:
            refused[code] = why_not(text, error) if parse in (parse_date, parse_datetime) else str(error)
            found.append(None)
    parsed = pa.array(found, stored).take(encoded.indices)
    if not refused:
        return parsed, {}
    is_refused = pc.is_in(encoded.indices, value_set=pa.array(list(refused), encoded.indices.type))
    positions = pc.indices_nonzero(is_refused).to_pylist()
    return parsed, {at: refused[encoded.indices[at].as_py()] for at in positions}


def why_not(text: str, error: ValueError) -> str:
    """Why a text is no date or instant, with the text."""
    shown = json.dumps(text, ensure_ascii=False)
    return f"{shown if len(shown) <= _LONGEST_SHOWN else shown[: _LONGEST_SHOWN - 1] + '…'} does not fit: {error}"


def _lists(
    values: pa.Array, wanted: ValueType, stored: pa.DataType, conversion: Conversion, errors: RowErrors
) -> pa.Array:
    """Lists and vectors. Their items are converted as cells are, and a bad item is an error of its row."""
    if values.type == stored and wanted.dimension is not None and _are_sound(values):
        return values
    lists = values if _is_view(values.type) else values.cast(pa.list_(values.type.value_type))
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    owners = np.repeat(np.arange(len(lists)), lengths)
    items = lists.flatten()
    item_errors = RowErrors(len(items))
    item_errors.add_where(items.is_null(), conversion.reason("an item is null"))
    read = convert_column("", wanted.item, stored.value_type, items, conversion, item_errors)
    for position, reason in item_errors.reasons.items():
        errors.add([int(owners[position])], reason)
    if wanted.dimension is None:
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), read, mask=lists.is_null())
    valid = _valid(lists)
    for position in np.flatnonzero(valid & (lengths != wanted.dimension)).tolist():
        errors.add([position], conversion.reason(f"needs {wanted.dimension} numbers, not {lengths[position]}"))
    numbers = read.to_numpy(zero_copy_only=False)
    return vector_column(numbers, lengths, valid & (lengths == wanted.dimension), wanted.dimension)


def _are_sound(vectors: pa.Array) -> bool:
    """Are all numbers of vectors there and finite, so that nothing has to be converted?"""
    items = vectors.flatten()
    return not items.null_count and bool(np.isfinite(items.to_numpy(zero_copy_only=False)).all())


def vector_column(
    numbers: npt.NDArray[np.float32],
    lengths: npt.NDArray[np.integer[Any]],
    fits: npt.NDArray[np.bool_],
    dimension: int,
) -> pa.Array:
    """A column of vectors from the numbers of lists one after the other; null where a list does not fit."""
    flat = np.zeros((len(lengths), dimension), np.float32)
    flat[fits] = numbers[np.repeat(fits, lengths)].reshape(-1, dimension)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), dimension, mask=pa.array(~fits))


def blob_column(name: str, values: pa.Array) -> tuple[pa.Array, Reasons]:
    """A column of blobs, with null for values that are none."""
    found: list[bytes | str | None] = []
    reasons: Reasons = {}
    for position, value in enumerate(values.to_pylist()):
        try:
            found.append(blob_cell(name, value))
        except BadValue as error:
            reasons[position] = error.reason
            found.append(None)
    return lance.blob_array(found), reasons


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or _is_view(kind)
    )


def _is_view(kind: pa.DataType) -> bool:
    """Are lists of a type parts of an array in any order? Arrow's cast to plain lists loses some of them."""
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner) or inner == pa.string_view())
