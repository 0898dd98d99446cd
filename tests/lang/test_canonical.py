"""Canonical texts: the one spelling of a value inside a node id."""

from __future__ import annotations

import datetime as dt
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.canonical import canonical_id, canonical_text
from omnigraph.lang.values import BOOL, DATE, DATETIME, F64, I64, STRING, Scalar, ValueType

F32 = ValueType(Scalar.F32)
U64 = ValueType(Scalar.U64)
LARGEST_F32 = 3.4028234663852886e38


@pytest.mark.parametrize(
    ("value", "value_type", "text"),
    [
        ("", STRING, ""),
        (" Zoë\n", STRING, " Zoë\n"),
        (True, BOOL, "true"),
        (False, BOOL, "false"),
        (0, I64, "0"),
        (-(2**63), I64, "-9223372036854775808"),
        (2**64 - 1, U64, "18446744073709551615"),
        (dt.date(1970, 1, 1), DATE, "0"),
        (dt.date(1969, 12, 31), DATE, "-1"),
        (dt.date(2024, 1, 1), DATE, "19723"),
        (dt.datetime(1970, 1, 1, tzinfo=dt.UTC), DATETIME, "0"),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 999000, dt.UTC), DATETIME, "-1"),
        (dt.datetime(2024, 1, 1, 0, 0, 0, 1500, dt.UTC), DATETIME, "1704067200001"),
        (dt.datetime(2024, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))), DATETIME, "1704067200000"),
    ],
)
def test_texts_of_exact_values(value: object, value_type: ValueType, text: str) -> None:
    assert canonical_text(value, value_type) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-2.5, "-2.5"),
        (0.1, "0.1"),
        (100.0, "100"),
        (1e22, "10000000000000000000000"),
        (1e-7, "0.0000001"),
        (2**53 + 1.0, "9007199254740992"),
        (5, "5"),
    ],
)
def test_a_double_is_its_shortest_decimal_without_exponent(value: float, text: str) -> None:
    assert canonical_text(value, F64) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (16777217.0, "16777216"),
        (1 / 3, "0.33333334"),
        (1e10, "10000000000"),
        (LARGEST_F32, "340282350000000000000000000000000000000"),
        (2.0**-149, "0." + "0" * 44 + "1"),
        # at a power of two the shortest decimal need not be the nearest one of its length
        (2.0**87, "154742510000000000000000000"),
        (2.0**-96, "0.000000000000000000000000000012621775"),
        (-(2.0**90), "-1237940100000000000000000000"),
    ],
)
def test_a_32_bit_float_is_rounded_first_and_then_shortest(value: float, text: str) -> None:
    assert canonical_text(value, F32) == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_32_bit_float_reads_back_from_at_most_nine_digits(value: float) -> None:
    text = canonical_text(value, F32)
    assert struct.unpack("<f", struct.pack("<f", float(text)))[0] == value
    assert len(text.lstrip("-").replace(".", "").strip("0")) <= 9


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_reads_back(value: float) -> None:
    assert float(canonical_text(value, F64)) == value


@pytest.mark.parametrize("value_type", [F32, F64])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_has_no_text(value: float, value_type: ValueType) -> None:
    with pytest.raises(ValueError, match="NaN or infinity"):
        canonical_text(value, value_type)


@pytest.mark.parametrize(
    ("value", "value_type"),
    [
        (None, STRING),
        (5, STRING),
        (5, BOOL),
        (True, I64),
        (True, F64),
        (1.5, I64),
        ("5", I64),
        (b"x", ValueType(Scalar.BLOB)),
        (["a"], ValueType(Scalar.STRING, is_list=True)),
        (1e39, F32),
        (10**400, F64),
        (10**400, F32),
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), DATE),
        (dt.date(2024, 1, 1), DATETIME),
        (dt.datetime(2024, 1, 1), DATETIME),  # no zone, no instant
    ],
)
def test_a_value_of_another_type_has_no_text(value: object, value_type: ValueType) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        canonical_text(value, value_type)


@pytest.mark.parametrize(
    ("texts", "node_id"),
    [
        (["acme"], "acme"),
        ([""], ""),
        (['["7","acme"]'], '["7","acme"]'),
        (["7", "acme"], '["7","acme"]'),
        (["Zoë", 'say "hi"'], '["Zoë","say \\"hi\\""]'),
        (["a", "b", "c"], '["a","b","c"]'),
    ],
)
def test_an_id_is_the_text_of_the_key_or_a_compact_array_of_texts(texts: list[str], node_id: str) -> None:
    assert canonical_id(texts) == node_id
