"""Arrow columns as lists of values: Python's own, or those that JSON has.

Each column is converted as a whole, by its type, because a result may hold millions of values of few types.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_JAVASCRIPT_SAFE: Final = 2**53 - 1
_UTC: Final = pa.timestamp("ms", tz="UTC")
_LISTS: Final = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """The column's values as Python has them; instants know that they are UTC."""
    if _is_list(column.type):
        return _items(column, python_values)
    if pa.types.is_struct(column.type):
        return _structs(column, python_values)
    values: list[Any]
    if pa.types.is_timestamp(column.type):
        values = _wall_clock(column).to_pylist()
        return [None if value is None else value.replace(tzinfo=dt.UTC) for value in values]
    values = column.to_pylist()
    return values


def json_values(column: pa.ChunkedArray) -> list[Any]:
    """The column's values as JSON has them: dates and instants as text, numbers JSON cannot write by name."""
    if _is_list(column.type):
        return _items(column, json_values)
    if pa.types.is_struct(column.type):
        return _structs(column, json_values)
    values: list[Any] = _times_as_text(column).to_pylist()
    if pa.types.is_floating(column.type) and pc.all(pc.is_finite(column)).as_py() is False:
        return [value if value is None or math.isfinite(value) else _named(value) for value in values]
    return values


def json_value(value: Any) -> Any:
    """One Python value as JSON has it; bytes as `base64:…`, as records of a load write them."""
    if isinstance(value, list):
        return [json_value(item) for item in value]
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"base64:{base64.b64encode(value).decode()}"
    if isinstance(value, float) and not math.isfinite(value):
        return _named(value)
    return value


def javascript_safe(value: Any) -> Any:
    """A JSON value whose integers survive JavaScript: those that a double cannot hold become text."""
    if isinstance(value, int):
        return value if -_JAVASCRIPT_SAFE <= value <= _JAVASCRIPT_SAFE else str(value)
    if isinstance(value, Mapping):
        return {name: javascript_safe(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [javascript_safe(item) for item in value]
    return value


def _is_list(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in _LISTS)


def _items(column: pa.ChunkedArray, convert: Callable[[pa.ChunkedArray], list[Any]]) -> list[Any]:
    """Convert the items of all lists as one column, and cut the outcome into lists again."""
    items = iter(convert(pc.list_flatten(column)))
    lengths = pc.list_value_length(column).to_pylist()
    return [None if length is None else list(islice(items, length)) for length in lengths]


def _structs(column: pa.ChunkedArray, convert: Callable[[pa.ChunkedArray], list[Any]]) -> list[Any]:
    """Convert the fields of all structs as columns, and put the values of each struct together again."""
    names = [field.name for field in column.type]
    fields = [convert(pc.struct_field(column, [index])) for index in range(len(names))]
    present = column.is_valid().to_pylist()
    rows = zip(present, zip(*fields, strict=True), strict=True)
    return [dict(zip(names, values, strict=True)) if is_there else None for is_there, values in rows]


def _times_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of dates or instants in ISO 8601; any other column as it is."""
    if pa.types.is_date(column.type):
        return column.cast(pa.string())
    if pa.types.is_timestamp(column.type):
        spaced = _wall_clock(column).cast(pa.string())
        return pc.binary_join_element_wise(pc.replace_substring(spaced, " ", "T"), "Z", "")
    return column


def _named(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _wall_clock(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Instants as the time of day in UTC, in milliseconds and without a zone."""
    return column.cast(_UTC, safe=False).cast(pa.timestamp("ms"))
