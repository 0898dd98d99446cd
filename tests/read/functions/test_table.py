"""The function table: every row has a test row, and computes what its example says."""

from __future__ import annotations

import pytest
from tests.read.functions.rows import DIFFERENCES, KNOWN, PARTLY, SPECIAL

import omnigraph
from omnigraph.errors import ComputationFailed, DivisionByZero, NumberOverflow
from omnigraph.graph import Graph
from omnigraph.lang.query.functions.table import FUNCTIONS, ROWS
from omnigraph.lang.query.syntax.expressions import AGGREGATES

SCHEMA = """
node Number { name: String @key  whole: I64?  part: F64?  text: String?  day: Date? }
"""


@pytest.fixture(scope="module")
def graph() -> Graph:
    made = omnigraph.init("memory://function-table/g", SCHEMA)
    made.load(
        b'{"type": "Number", "data": {"name": "zero", "whole": 0, "part": 0, "text": "x", "day": "9999-12-31"}}\n'
        b'{"type": "Number", "data": {"name": "most", "whole": 9223372036854775807, "part": -1.5, "text": "7"}}\n'
        b'{"type": "Number", "data": {"name": "none"}}',
        mode="append",
    )
    return omnigraph.open(made.address)


def test_every_function_has_a_test_row() -> None:
    assert KNOWN.keys() | SPECIAL == ROWS.keys()


def test_what_duckdb_does_otherwise_is_listed() -> None:
    functions = {name for name, known in KNOWN.items() if known.sql is None}
    assert functions | PARTLY.keys() - set(AGGREGATES) == DIFFERENCES.keys() - set(AGGREGATES)
    assert not functions & PARTLY.keys()


def test_every_example_is_true(graph: Graph) -> None:
    columns = " ".join(
        f"{row.example[0]} as a{i}, {row.example[1]} as b{i}" for i, row in enumerate(ROWS.values())
    )
    [row] = graph.query(f'query q() {{ match {{ $n: Number {{ name: "zero" }} }} return {{ {columns} }} }}').rows
    for index, function in enumerate(ROWS.values()):
        assert row[f"a{index}"] == row[f"b{index}"], function.name


def test_every_function_names_itself_in_its_example() -> None:
    assert all(name in function.example[0] for name, function in FUNCTIONS.items())


@pytest.mark.parametrize(
    ("expression", "error", "reason"),
    [
        ("1 / $n.whole", DivisionByZero, "divided by zero"),
        ("1 % $n.whole", DivisionByZero, "divided by zero"),
        ("1.5 / $n.part", DivisionByZero, "divided by zero"),
        ("1.5 % $n.part", DivisionByZero, "divided by zero"),
        ("$n.whole + 1", NumberOverflow, "64 bits"),
        ("-$n.whole - 2", NumberOverflow, "64 bits"),
        ("$n.whole * 2", NumberOverflow, "64 bits"),
        ("$n.day + 1 day", NumberOverflow, "years 1 to 9999"),
        ("$n.day + 9999 years", NumberOverflow, "years 1 to 9999"),
        ("sqrt($n.part)", ComputationFailed, "square root"),
        ("ln($n.part)", ComputationFailed, "logarithm"),
        ("to_integer($n.text)", ComputationFailed, "x"),
        ("to_date($n.text)", ComputationFailed, "YYYY-MM-DD"),
        ('split($n.text, "")', ComputationFailed, "separator is empty"),
        ('regex_match($n.text, "(")', ComputationFailed, "("),
    ],
)
def test_a_value_that_does_not_exist_is_an_error_with_a_name(
    graph: Graph, expression: str, error: type[ComputationFailed], reason: str
) -> None:
    with pytest.raises(error) as raised:
        graph.query(f"query q() {{ match {{ $n: Number }} return {{ {expression} as v }} }}")
    assert type(raised.value) is error
    assert raised.value.query == "q"
    assert reason in raised.value.reason


def test_what_a_row_said_before_it_was_changed_is_not_computed() -> None:
    graph = omnigraph.init("memory://changed-rows/g", SCHEMA)
    rows = b"".join(b'{"type": "Number", "data": {"name": "n%d", "whole": %d}}\n' % (n, n) for n in range(40))
    graph.load(rows, mode="append")
    read = (
        "query q() { match { $n: Number  $n.whole is not null and 10 / $n.whole >= 5 } return { count(*) as n } }"
    )
    with pytest.raises(DivisionByZero):
        graph.query(read)
    graph.mutate("query q() { update Number set { whole: 1 } where whole = 0 }")
    assert graph.query(read).rows == [{"n": 3}]
    graph.mutate('query q() { delete Number where whole % 2 = 1 and name != "n7" }')
    assert graph.query(read).rows == [{"n": 1}]


@pytest.mark.parametrize(
    "guarded",
    [
        "case when $n.whole > 0 then 1 / $n.whole end",
        "1 / nullif($n.whole, 0)",
        "coalesce($n.whole * 0, 1 / $n.whole)",
        "$n.whole > 0 and 1 / $n.whole = 0",
        "$n.whole = 0 or 1 / $n.whole = 0",
    ],
)
def test_what_is_not_needed_is_not_computed(graph: Graph, guarded: str) -> None:
    assert len(graph.query(f"query q() {{ match {{ $n: Number }} return {{ {guarded} as v }} }}").rows) == 3
