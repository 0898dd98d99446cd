"""Binding parameters: JSON or Python values in, typed values out, and a reason for each that does not fit."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from omnigraph.errors import ParameterError
from omnigraph.lang.parameters import JAVASCRIPT, NATIVE, NumberRules, Value, bind_parameters
from omnigraph.lang.values import Scalar, ValueType, vector

I64_MAX = 2**63 - 1
JS_MAX = 2**53 - 1


def bind(wanted: ValueType, value: object, numbers: NumberRules = NATIVE) -> Value:
    """One parameter of that type, bound to that value."""
    return bind_parameters("q", {"x": wanted}, {"x": value}, numbers)["x"]


def refusal(wanted: ValueType, value: object, numbers: NumberRules = NATIVE) -> str:
    """Why that value does not fit."""
    with pytest.raises(ParameterError) as raised:
        bind(wanted, value, numbers)
    return raised.value.problems["x"]


def of(scalar: Scalar, *, many: bool = False, nullable: bool = False) -> ValueType:
    return ValueType(scalar, is_list=many, nullable=nullable)


class TestValuesThatFit:
    @pytest.mark.parametrize(
        ("wanted", "given", "bound"),
        [
            (of(Scalar.STRING), "", ""),
            (of(Scalar.BOOL), False, False),
            (of(Scalar.I32), -(2**31), -(2**31)),
            (of(Scalar.I32), "+7", 7),
            (of(Scalar.I64), str(-(2**63)), -(2**63)),
            (of(Scalar.U32), "4294967295", 2**32 - 1),
            (of(Scalar.U64), I64_MAX, I64_MAX),
            (of(Scalar.F32), 1, 1.0),
            (of(Scalar.F64), 1e300, 1e300),
            (of(Scalar.DATE), "2024-02-29", dt.date(2024, 2, 29)),
            (of(Scalar.DATETIME), "2024-02-29", dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
            (of(Scalar.BLOB), "base64:AAEC", "base64:AAEC"),
            (of(Scalar.I32, many=True), [1, "2"], (1, 2)),
            (of(Scalar.STRING, many=True), [], ()),
            (of(Scalar.DATE, many=True), ["2024-02-29"], (dt.date(2024, 2, 29),)),
            (vector(2), [1, 2.5], (1.0, 2.5)),
        ],
    )
    def test_json(self, wanted: ValueType, given: object, bound: object) -> None:
        value = bind(wanted, given)
        assert (value, type(value)) == (bound, type(bound))

    @pytest.mark.parametrize(
        ("wanted", "given", "bound"),
        [
            (of(Scalar.DATE), dt.date(2024, 2, 29), dt.date(2024, 2, 29)),
            (of(Scalar.BLOB), b"\x00", b"\x00"),
            (of(Scalar.STRING, many=True), ("a", "b"), ("a", "b")),
            (of(Scalar.DATETIME), dt.datetime(2024, 1, 1, 1, 0, 0, 1999), dt.datetime(2024, 1, 1, 1, 0, 0, 1000)),
        ],
    )
    def test_python_values_that_stand_for_the_same(
        self, wanted: ValueType, given: object, bound: dt.datetime | object
    ) -> None:
        expected = bound.replace(tzinfo=dt.UTC) if isinstance(bound, dt.datetime) else bound
        assert bind(wanted, given) == expected

    def test_instants_are_kept_in_utc_to_the_millisecond(self) -> None:
        bound = bind(of(Scalar.DATETIME), "2024-02-29T00:30:00.123999+01:00")
        assert bound == dt.datetime(2024, 2, 28, 23, 30, 0, 123000, tzinfo=dt.UTC)

    @pytest.mark.parametrize("scalar", list(Scalar))
    def test_a_nullable_parameter_takes_null_and_may_be_left_out(self, scalar: Scalar) -> None:
        declared = {"x": of(scalar, nullable=True)}
        assert bind_parameters("q", declared, {"x": None}) == {"x": None}
        assert bind_parameters("q", declared, {}) == {"x": None}
        assert bind_parameters("q", declared, None) == {"x": None}


class TestValuesThatDoNotFit:
    @pytest.mark.parametrize(
        ("wanted", "given", "reason"),
        [
            (of(Scalar.STRING), 3, "is the number 3, not String"),
            (of(Scalar.STRING), None, "is null, but String cannot be null"),
            (of(Scalar.STRING), ["a"], "is an array, not String"),
            (of(Scalar.BOOL), 1, "is the number 1, not Bool"),
            (of(Scalar.I32), 2**31, "exceeds I32: 2147483648"),
            (of(Scalar.I32), 3.0, "is the number 3.0, not I32"),
            (of(Scalar.I32), True, "is true, not I32"),
            (of(Scalar.I32), "1_000", 'is the string "1_000", not I32'),
            (of(Scalar.I32), "٣", 'is the string "٣", not I32'),
            (of(Scalar.I64), 2**63, "exceeds I64: 9223372036854775808"),
            (of(Scalar.U32), -1, "exceeds U32: -1"),
            (of(Scalar.U64), 2**63, "exceeds U64: 9223372036854775808"),
            (of(Scalar.F32), 1e39, "exceeds F32: 1e+39"),
            (of(Scalar.F64), float("nan"), "is not a finite F64"),
            (of(Scalar.F64), 10**400, "is not a finite F64"),
            (of(Scalar.F64), "1.5", 'is the string "1.5", not F64'),
            (of(Scalar.DATE), "2024-02-30", "is no Date: day is out of range for month"),
            (of(Scalar.DATE), 19723, "is the number 19723, not Date"),
            (of(Scalar.DATE), dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "is a datetime, not Date"),
            (of(Scalar.BLOB), 3, "is the number 3, not Blob"),
            (of(Scalar.I32, many=True), 3, "is the number 3, not an array for [I32]"),
            (of(Scalar.I32, many=True), [1, None], "has null as item 2, and list items cannot be null"),
            (of(Scalar.I32, many=True), [[1]], "item 1 is an array, not I32"),
            (vector(2), [1], "has 1 numbers, and Vector(2) needs 2"),
            (vector(2), [1, "2"], 'component 2 is the string "2", not F32'),
            (vector(2), "text", 'is the string "text", not an array for Vector(2)'),
        ],
    )
    def test_json(self, wanted: ValueType, given: object, reason: str) -> None:
        assert refusal(wanted, given) == reason

    def test_datetimes_say_how_they_are_written(self) -> None:
        assert refusal(of(Scalar.DATETIME), "noon").startswith("is no DateTime: a datetime is written YYYY-MM-DD")

    def test_every_problem_of_a_call_is_reported_at_once(self) -> None:
        declared = {"a": of(Scalar.I32), "b": of(Scalar.STRING), "c": of(Scalar.BOOL)}
        with pytest.raises(ParameterError) as raised:
            bind_parameters("adults", declared, {"a": "x", "c": True})
        assert raised.value.problems == {
            "a": 'is the string "x", not I32',
            "b": "is required and has type String; give it a value",
        }
        assert str(raised.value).startswith("cannot run query 'adults': parameter 'a' is the string")

    @pytest.mark.parametrize(("given", "what"), [([1], "an array"), ("x", 'the string "x"'), (3, "the number 3")])
    def test_parameters_come_as_an_object(self, given: Any, what: str) -> None:
        with pytest.raises(ParameterError) as raised:
            bind_parameters("q", {}, given)
        assert raised.value.problems == {"params": f"must be an object, not {what}"}

    def test_a_parameter_that_is_not_declared_names_the_nearest(self) -> None:
        declared = {"name": of(Scalar.STRING), "age": of(Scalar.I32)}
        with pytest.raises(ParameterError) as raised:
            bind_parameters("q", declared, {"name": "Ada", "age": 1, "nmae": "Bob", "zzzz": {}})
        assert raised.value.problems == {
            "nmae": "is not declared by the query; did you mean `name`?",
            "zzzz": "is not declared by the query; known: `age`, `name`",
        }

    @pytest.mark.parametrize("value", [1, None, [1], {"b": 1}])
    def test_a_query_without_parameters_takes_none(self, value: object) -> None:
        with pytest.raises(ParameterError) as raised:
            bind_parameters("q", {}, {"a": value})
        assert raised.value.problems == {"a": "is not declared by the query; it has no parameters"}

    def test_names_that_are_no_texts_are_refused(self) -> None:
        with pytest.raises(ParameterError, match="parameter '1' is not declared"):
            bind_parameters("q", {"x": of(Scalar.I32)}, {"x": 1, 1: 2})  # type: ignore[dict-item]


class TestJavaScript:
    """Senders whose numbers are doubles: whole floats are integers, and large integers come as texts."""

    @pytest.mark.parametrize("given", [3, 3.0, "3"])
    def test_whole_floats_are_integers(self, given: object) -> None:
        assert bind(of(Scalar.I64), given, JAVASCRIPT) == 3
        assert bind(of(Scalar.I64, many=True), [given], JAVASCRIPT) == (3,)

    def test_fractions_are_not(self) -> None:
        assert refusal(of(Scalar.I64), 3.5, JAVASCRIPT) == "is the number 3.5, not I64"
        assert refusal(of(Scalar.I64), float("inf"), JAVASCRIPT) == "is the number inf, not I64"

    @pytest.mark.parametrize("given", [JS_MAX + 1, -JS_MAX - 1, float(2**60)])
    def test_integers_that_doubles_cannot_tell_apart_are_refused(self, given: object) -> None:
        reason = f"is an integer beyond ±{JS_MAX}; pass it as a string"
        assert refusal(of(Scalar.I64), given, JAVASCRIPT) == reason

    @pytest.mark.parametrize("given", [JS_MAX, -JS_MAX, str(JS_MAX + 1), str(-(2**63))])
    def test_others_and_texts_are_accepted(self, given: int | str) -> None:
        assert bind(of(Scalar.I64), given, JAVASCRIPT) == int(given)

    def test_native_senders_have_64_bits(self) -> None:
        assert bind(of(Scalar.I64), I64_MAX, NATIVE) == I64_MAX

    def test_floats_take_any_number(self) -> None:
        assert bind(of(Scalar.F64), 2**60, JAVASCRIPT) == float(2**60)
