"""Types as users see them, and the values that fit."""

from __future__ import annotations

import datetime as dt

import pytest

from omnigraph.lang.values import (
    BOOL,
    DATE,
    DATETIME,
    F64,
    I64,
    STRING,
    Scalar,
    ValueType,
    compatible,
    describe_kind,
    parse_date,
    parse_datetime,
    vector,
)

ENUM = ValueType(Scalar.STRING, members=("a", "b"))
INTS = ValueType(Scalar.I32, is_list=True)


@pytest.mark.parametrize(
    ("value_type", "shown"),
    [
        (STRING, "String"),
        (DATETIME.or_null(), "DateTime?"),
        (INTS.or_null(), "[I32]?"),
        (vector(4), "Vector(4)"),
        (ENUM, "enum(a, b)"),
        (ENUM.or_null(), "enum(a, b)?"),
    ],
)
def test_types_are_shown_as_they_are_written(value_type: ValueType, shown: str) -> None:
    assert str(value_type) == shown
    assert ValueType.from_json(value_type.as_json()) == value_type


def test_nullability_comes_and_goes() -> None:
    assert STRING.or_null().required() == STRING
    assert STRING.required() is STRING
    assert STRING.or_null().or_null() == STRING.or_null()


def test_a_vector_is_neither_a_list_nor_a_number() -> None:
    assert vector(3).is_vector
    assert not vector(3).is_plain
    assert not vector(3).is_numeric
    assert not INTS.is_integer
    assert INTS.item == ValueType(Scalar.I32)


@pytest.mark.parametrize(
    ("left", "right", "fits"),
    [
        (STRING, STRING.or_null(), True),
        (STRING, ENUM, True),
        (I64, F64, True),
        (I64, STRING, False),
        (DATE, DATETIME, False),
        (BOOL, I64, False),
        (INTS, I64, False),
        (INTS, ValueType(Scalar.F64, is_list=True), True),
        (vector(3), vector(3), True),
        (vector(3), vector(4), False),
        (vector(3), ValueType(Scalar.F32, is_list=True), False),
    ],
)
def test_what_may_be_compared(left: ValueType, right: ValueType, fits: bool) -> None:
    assert compatible(left, right) is fits
    assert compatible(right, left) is fits


def test_kinds_for_tool_catalogs() -> None:
    assert describe_kind(ValueType(Scalar.U32)) == {"kind": "int", "nullable": False}
    assert describe_kind(I64.or_null()) == {"kind": "bigint", "nullable": True}
    assert describe_kind(INTS) == {"kind": "list", "item_kind": "int", "nullable": False}
    assert describe_kind(vector(8)) == {"kind": "vector", "vector_dim": 8, "nullable": False}


def test_dates_have_one_spelling() -> None:
    assert parse_date("2024-02-29") == dt.date(2024, 2, 29)


@pytest.mark.parametrize(
    "text", ["2024-2-29", "20240229", "2023-02-29", "2024-02-29T00:00", "", "２０２４-01-01", "0000-01-01"]
)
def test_what_is_no_date(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_date(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-01-02", (2024, 1, 2)),
        ("2024-01-02T03:04", (2024, 1, 2, 3, 4)),
        ("2024-01-02 03:04:05", (2024, 1, 2, 3, 4, 5)),
        ("2024-01-02t03:04:05z", (2024, 1, 2, 3, 4, 5)),
        ("2024-01-02T03:04:05.5Z", (2024, 1, 2, 3, 4, 5, 500000)),
        ("2024-01-02T03:04:05,123456789Z", (2024, 1, 2, 3, 4, 5, 123000)),
        ("2024-01-02T03:04:05+02:00", (2024, 1, 2, 1, 4, 5)),
        ("2024-01-02T03:04:05-0130", (2024, 1, 2, 4, 34, 5)),
        ("2024-01-02T03:04:05.25+02", (2024, 1, 2, 1, 4, 5, 250000)),
    ],
)
def test_instants_are_utc_to_the_millisecond(text: str, moment: tuple[int, ...]) -> None:
    year, month, day, hour, minute, second, micro = (*moment, 0, 0, 0, 0)[:7]
    assert parse_datetime(text) == dt.datetime(year, month, day, hour, minute, second, micro, dt.UTC)


@pytest.mark.parametrize(
    "text",
    ["", "now", "2024-01-02T", "2024-01-02T25:00", "2024-13-01T00:00", "2024-01-02T03", "0001-01-01T00:00+02:00"],
)
def test_what_is_no_instant(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_datetime(text)
