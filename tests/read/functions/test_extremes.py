"""Numbers at the ends of their types: rounding, texts that say numbers, floats that leave their range."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.read.engine import reference_answer
from tests.read.functions.rows import Uncomputable

import omnigraph
from omnigraph.errors import ComputationFailed, NumberOverflow, SumOverflow
from omnigraph.graph import Graph

SCHEMA = "node Number { name: String @key  i: I64?  u: U64?  x: F64?  digits: I64?  text: String? }"
ROWS: list[dict[str, Any]] = [
    {"name": "least", "i": -(2**63), "u": 2**64 - 1, "x": 1.7e308, "digits": -(2**31), "text": "+5"},
    {"name": "most", "i": 2**63 - 1, "u": 0, "x": 1.7e308, "digits": 2**62, "text": " 1e5 "},
    {"name": "plain", "i": -7, "u": 7, "x": 2.675, "digits": 2, "text": "0x10"},
    {"name": "zero", "i": 0, "u": 1, "x": -0.0, "digits": -1, "text": "nan"},
    {"name": "none"},
]


@pytest.fixture(scope="module")
def graph() -> Graph:
    made = omnigraph.init("memory://extreme-numbers/g", SCHEMA)
    made.load([{"type": "Number", "data": row} for row in ROWS], mode="append")
    return omnigraph.open(made.address)


def text_of(expression: str, name: str) -> str:
    return f'query q() {{ match {{ $n: Number {{ name: "{name}" }} }} return {{ {expression} as v }} }}'


@pytest.mark.parametrize(
    ("expression", "name", "value"),
    [
        ("round($n.x, $n.digits)", "least", 0.0),
        ("round($n.x, $n.digits)", "most", 1.7e308),
        ("round($n.x, $n.digits)", "plain", 2.68),
        ("round($n.x, $n.digits)", "zero", -0.0),
        ("round($n.x, $n.digits)", "none", None),
        ("round($n.x, 400)", "plain", 2.675),
        ("round($n.x, -400)", "plain", 0.0),
        ("round(1234.5, -2)", "plain", 1200.0),
        ("round(-1250.0, -2)", "plain", -1300.0),
        ("round(0.49999999999999994)", "plain", 0.0),
        ("round(4503599627370497.5)", "plain", 4503599627370498.0),
        ("round($n.i, -1)", "plain", -10),
        ("round($n.i, -18)", "least", -9_000_000_000_000_000_000),
        ("round($n.i, -19)", "plain", 0),
        ("round($n.i, -400)", "most", 0),
        ("round($n.i, $n.digits)", "most", 2**63 - 1),
        ("round($n.i, $n.digits)", "least", 0),
        ("to_integer($n.text)", "least", 5),
        ("to_float($n.text)", "least", 5.0),
        ("to_float($n.text)", "most", 1e5),
        ('to_float(".5")', "most", 0.5),
        ('to_float("-5.")', "most", -5.0),
        ("floor($n.x)", "zero", -0.0),
        ("ceil($n.x)", "zero", -0.0),
        ("power(0, 0)", "zero", 1.0),
        ("exp(-1000)", "zero", 0.0),
    ],
)
def test_a_value_that_exists_is_right(graph: Graph, expression: str, name: str, value: Any) -> None:
    text = text_of(expression, name)
    [row] = graph.query(text).rows
    assert repr(row["v"]) == repr(value)
    assert repr(reference_answer(graph, text, {}).rows[0][0]) == repr(value)


@pytest.mark.parametrize(
    ("expression", "name", "error", "reason"),
    [
        ("round($n.i, -1)", "most", NumberOverflow, "64 bits"),
        ("round($n.i, -19)", "least", NumberOverflow, "64 bits"),
        ("$n.x + $n.x", "most", NumberOverflow, "beyond the range of floats"),
        ("$n.x * -2.0", "most", NumberOverflow, "beyond the range of floats"),
        ("$n.x / 0.1", "most", NumberOverflow, "beyond the range of floats"),
        ("power($n.x, 2)", "most", NumberOverflow, "beyond the range of floats"),
        ("exp(1000)", "most", NumberOverflow, "beyond the range of floats"),
        ("power(0, -1)", "zero", NumberOverflow, "beyond the range of floats"),
        ("power(-8, 0.5)", "zero", ComputationFailed, "no real number"),
        ("sqrt($n.i)", "plain", ComputationFailed, "square root"),
        ("to_integer($n.text)", "plain", ComputationFailed, '"0x10" is no integer'),
        ("to_integer($n.text)", "zero", ComputationFailed, '"nan" is no integer'),
        ('to_integer("5.0")', "zero", ComputationFailed, '"5.0" is no integer'),
        ('to_integer("1_000")', "zero", ComputationFailed, '"1_000" is no integer'),
        ('to_integer("9223372036854775808")', "zero", NumberOverflow, "64 bits"),
        ("to_float($n.text)", "zero", ComputationFailed, '"nan" is no number'),
        ('to_float("-Infinity")', "zero", ComputationFailed, '"-Infinity" is no number'),
        ('to_float("")', "zero", ComputationFailed, '"" is no number'),
        ('to_float("1e400")', "zero", NumberOverflow, "beyond the range of floats"),
        ("coalesce($n.u, 0)", "least", NumberOverflow, "64 bits"),
        ("floor($n.u)", "least", NumberOverflow, "64 bits"),
    ],
)
def test_one_that_does_not_is_an_error(
    graph: Graph, expression: str, name: str, error: type[ComputationFailed], reason: str
) -> None:
    text = text_of(expression, name)
    with pytest.raises(error) as raised:
        graph.query(text)
    assert type(raised.value) is error
    assert reason in raised.value.reason
    with pytest.raises(Uncomputable):
        reference_answer(graph, text, {})


def test_a_moment_outside_the_calendar_is_not_advised_to_be_a_float(graph: Graph) -> None:
    with pytest.raises(NumberOverflow) as raised:
        graph.query(text_of('date("9999-12-31") + 1 day', "zero"))
    assert "float" not in str(raised.value)
    assert 'date("9999-12-31") + 1 day' in str(raised.value)


@pytest.mark.parametrize(
    ("aggregate", "value"),
    [
        ("avg($n.i)", -2.0),
        ("avg($n.u)", (2**64 + 7) / 4),
        ("median($n.x * -1.0 * case when $n.u = 0 then 1 else -1 end)", 1.3375),
        ("count(distinct $n.i)", 4),
    ],
)
def test_an_aggregate_of_extremes_is_right(graph: Graph, aggregate: str, value: float) -> None:
    text = f"query q() {{ match {{ $n: Number }} return {{ {aggregate} as v }} }}"
    assert graph.query(text).rows == [{"v": value}]
    assert math.isclose(reference_answer(graph, text, {}).rows[0][0], value)


def test_the_middle_of_far_ends_is_found(graph: Graph) -> None:
    ends = 'match { $n: Number { i < 0 or u = 0, name != "plain" } }'
    text = f"query q() {{ {ends} return {{ median(case when $n.u = 0 then $n.x else -$n.x end) as v }} }}"
    assert graph.query(text).rows == [{"v": 0.0}]


@pytest.mark.parametrize("aggregate", ["sum($n.x)", "avg($n.x)"])
def test_a_sum_beyond_the_floats_is_an_error(graph: Graph, aggregate: str) -> None:
    text = f"query q() {{ match {{ $n: Number }} return {{ {aggregate} as v }} }}"
    with pytest.raises(SumOverflow, match=r"n\.x"):
        graph.query(text)
    with pytest.raises(SumOverflow):
        reference_answer(graph, text, {})


@pytest.mark.parametrize("word", ["union", "union all"])
def test_a_union_does_not_wrap_what_has_no_room(graph: Graph, word: str) -> None:
    text = (
        f"query q() {{ match {{ $n: Number }} return {{ $n.u as v }} {word} "
        "match { $n: Number } return { $n.i as v } }"
    )
    with pytest.raises(NumberOverflow) as raised:
        graph.query(text)
    assert raised.value.expression == "v"
    with pytest.raises(Uncomputable):
        reference_answer(graph, text, {})
