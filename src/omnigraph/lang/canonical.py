"""Canonical texts: how a typed value is spelled inside a node id or a uniqueness tuple."""

from __future__ import annotations

import datetime as dt
import json
import math
import struct
from collections.abc import Sequence
from decimal import Decimal

from omnigraph.lang.values import EPOCH, EPOCH_DATE, INTEGERS, Scalar, ValueType


def canonical_text(value: object, value_type: ValueType) -> str:
    """The one spelling of a stored value: dates as epoch days, instants as epoch milliseconds."""
    scalar = value_type.scalar
    if value is None:
        raise ValueError("a key cannot contain null")
    if scalar is Scalar.STRING and isinstance(value, str):
        return value
    if scalar is Scalar.BOOL and isinstance(value, bool):
        return "true" if value else "false"
    if scalar is Scalar.DATE and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return str((value - EPOCH_DATE).days)
    if scalar is Scalar.DATETIME and isinstance(value, dt.datetime) and value.tzinfo is not None:
        return str((value - EPOCH) // dt.timedelta(milliseconds=1))
    if isinstance(value, int | float) and not isinstance(value, bool):
        if scalar is Scalar.F32:
            return _positional(_shortest_f32(_finite(value)))
        if scalar is Scalar.F64:
            return _positional(repr(_finite(value)))
        if scalar in INTEGERS and isinstance(value, int):
            return str(value)
    raise ValueError(f"{type(value).__name__} is not a value of type {value_type}")


def canonical_id(texts: Sequence[str]) -> str:
    """The node id of a key tuple, its members in the order of their stable property ids."""
    if len(texts) == 1:
        return texts[0]
    return json.dumps(list(texts), ensure_ascii=False, separators=(",", ":"))


def _finite(value: float) -> float:
    try:
        stored = float(value)
    except OverflowError:
        raise ValueError("the number is too large for a float") from None
    if not math.isfinite(stored):
        raise ValueError("a key cannot contain NaN or infinity")
    return stored


def _shortest_f32(value: float) -> str:
    """The shortest decimal that reads back as the same 32-bit float."""
    stored = _as_f32(value)
    if stored is None:
        raise ValueError(f"{value} is too large for F32")
    for digits in range(1, 10):
        nearest = Decimal(f"{stored:.{digits - 1}e}")
        # At a power of two the float below is closer than the one above, so a decimal that is not the
        # nearest of its length may still read back.
        step = Decimal((0, (1,), nearest.adjusted() - digits + 1))
        for candidate in (nearest, nearest + step, nearest - step):
            if _as_f32(float(candidate)) == stored:
                return str(candidate)
    return repr(stored)


def _as_f32(value: float) -> float | None:
    """The nearest 32-bit float; None beyond the largest."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return None


def _positional(text: str) -> str:
    """A decimal without exponent, trailing zeros or a negative zero."""
    shown = format(Decimal(text), "f")
    if "." in shown:
        shown = shown.rstrip("0").rstrip(".")
    return "0" if shown in ("-0", "") else shown
