"""Canonical texts: how a typed value is spelled inside a node id or a uniqueness tuple."""

from __future__ import annotations

import datetime as dt
import json
import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from omnigraph.lang.values import Scalar, ValueType

_EPOCH_DATE: Final = dt.date(1970, 1, 1)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def canonical_text(value: object, value_type: ValueType) -> str:
    """The one spelling of a stored value: dates as epoch days, instants as epoch milliseconds."""
    scalar = value_type.scalar
    if value is None:
        raise ValueError("a key cannot contain null")
    if scalar is Scalar.STRING and isinstance(value, str):
        return value
    if scalar is Scalar.BOOL and isinstance(value, bool):
        return "true" if value else "false"
    if scalar is Scalar.DATE and isinstance(value, dt.date):
        return str((value - _EPOCH_DATE).days)
    if scalar is Scalar.DATETIME and isinstance(value, dt.datetime):
        return str((value - _EPOCH) // dt.timedelta(milliseconds=1))
    if scalar is Scalar.F32 and isinstance(value, int | float):
        return _positional(_shortest_f32(float(value)))
    if scalar is Scalar.F64 and isinstance(value, int | float):
        return _positional(repr(_finite(float(value))))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{type(value).__name__} is not a value of type {value_type}")


def canonical_id(texts: Sequence[str]) -> str:
    """The node id of a key tuple, its members in the order of their stable property ids."""
    if len(texts) == 1:
        return texts[0]
    return json.dumps(list(texts), ensure_ascii=False, separators=(",", ":"))


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("a key cannot contain NaN or infinity")
    return value


def _shortest_f32(value: float) -> str:
    """The shortest decimal that reads back as the same 32-bit float."""
    try:
        stored = struct.unpack("<f", struct.pack("<f", _finite(value)))[0]
    except OverflowError:
        raise ValueError(f"{value} is too large for F32") from None
    for digits in range(1, 10):
        text = f"{stored:.{digits}g}"
        if struct.unpack("<f", struct.pack("<f", float(text)))[0] == stored:
            return text
    return repr(stored)


def _positional(text: str) -> str:
    """A decimal without exponent, trailing zeros or a negative zero."""
    shown = format(Decimal(text), "f")
    if "." in shown:
        shown = shown.rstrip("0").rstrip(".")
    return "0" if shown in ("-0", "") else shown
