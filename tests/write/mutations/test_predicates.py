"""One predicate, three judges: Lance on committed rows, our comparisons on pending ones, and plain Python.

The columns have names that are words of SQL or need quoting, and values at the edges of their types.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.sampling import examples
from tests.write.support import base_of, change, indexed, new_graph, put

from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import load_catalog
from omnigraph.lang.values import STRING
from omnigraph.write.base import Base
from omnigraph.write.mutations.computing import expressions_of
from omnigraph.write.mutations.predicates import Where, matching, where_clause

SCHEMA = """
node Thing {
  key: String @key
  select: I32?  order: I64?  group: U32?  where: U64?  table: F32?  camelCase: F64?
  date: Date?  timestamp: DateTime?  between: Bool?  _x: String?  end: enum(a, b-c, Z)?  list: [I32]?
}
"""
CATALOG = load_catalog(SCHEMA)
THING = CATALOG.nodes["Thing"]
KEY = "node:Thing"


def _instant(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def _as_f32(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))


VALUES: dict[str, list[Any]] = {
    "select": [-(2**31), -3, -1, 0, 1, 2, 2**31 - 1],
    "order": [-(2**63), -(2**53) - 1, -1, 0, 7, 2**53, 2**53 + 1, 2**63 - 1],
    "group": [0, 1, 2**31, 2**32 - 1],
    "where": [0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1],
    "table": [_as_f32(x) for x in (-3.4028234e38, -0.5, -0.0, 0.0, 1e-45, 0.1, 0.5, 16777216.0, 3.4028234e38)],
    "camelCase": [-1.7976931348623157e308, -0.1, -0.0, 0.0, 5e-324, 0.1, 0.5, 9007199254740993.0, 1e22, 1e300],
    "date": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date.max],
    "timestamp": [
        _instant("0001-01-01"),
        _instant("1969-12-31T23:59:59.999"),
        _instant("1970-01-01"),
        _instant("2024-02-29T10:00:00.001"),
        _instant("9999-12-31T23:59:59.999"),
    ],
    "between": [False, True],
    "_x": [
        "",
        "a",
        "A",
        "Z",
        "it's",
        "''",
        "`tick`",
        '"double"',
        "back\\slash",
        "%",
        "_",
        "-- no comment",
        "new\nline",
        "nul\0l",
        "$1 ?",
        "é",
        "e\u0301",
        "\uffff",
        "\U0001f600",
    ],
    "end": ["a", "b-c", "Z"],
    "list": [[], [1], [1, 2]],
}
LONGEST = max(map(len, VALUES.values()))
ROWS: list[dict[str, Any]] = [
    {"id": f"r{i:02}", "key": f"r{i:02}", **{name: values[i % len(values)] for name, values in VALUES.items()}}
    for i in range(LONGEST)
] + [{"id": "null", "key": "null"}]
OPS: dict[ir.Op, Callable[[Any, Any], bool]] = {
    ir.Op.EQ: operator.eq,
    ir.Op.NE: operator.ne,
    ir.Op.LT: operator.lt,
    ir.Op.LE: operator.le,
    ir.Op.GT: operator.gt,
    ir.Op.GE: operator.ge,
}


@pytest.fixture(scope="module")
def plain() -> Base:
    graph = new_graph(SCHEMA)
    put(graph, change(CATALOG, KEY, ROWS))
    return base_of(graph)


@pytest.fixture(scope="module")
def with_indexes(plain: Base) -> Base:
    return indexed(plain, {KEY: [name for name in VALUES if name != "list"]})


@pytest.fixture(scope="module")
def pending() -> pa.Table:
    return change(CATALOG, KEY, ROWS).upserts


_INTEGERS = st.integers(-(2**63), 2**63 - 1)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, ir.Op, Value]:
    """A column, an operator and a value to compare with: one of the column's own, one near it, or any other."""
    name = draw(st.sampled_from([name for name in VALUES if name != "list"]))
    own = st.sampled_from(VALUES[name])
    value: st.SearchStrategy[Any] = own
    kind = THING.properties[name].type
    if kind.is_integer:
        near = st.builds(operator.add, own, st.sampled_from([-1, 1, -0.5, 0.5, 0.0]))
        value = own | near | _INTEGERS | _FLOATS
    elif kind.is_numeric:
        value = own | _INTEGERS | _FLOATS | st.sampled_from([1e39, -1e39, 16777217, 2**53 + 1, 3.4028235e38])
    elif name == "_x":
        value = own | st.text(max_size=4)
    elif name == "date":
        value = own | st.dates()
    elif name == "timestamp":
        moments = st.datetimes(timezones=st.just(dt.UTC))
        value = own | moments.map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000))
    return name, draw(st.sampled_from(list(OPS))), draw(value | st.just(None) if draw(st.booleans()) else value)


def clause(base: Base, *conditions: tuple[str, ir.Op, Value]) -> Where:
    """The conditions as a statement has them: values are parameters."""
    predicates = [ir.Predicate(name, op, ir.Param(f"p{i}")) for i, (name, op, _) in enumerate(conditions)]
    values = expressions_of("q", {f"p{i}": value for i, (_, _, value) in enumerate(conditions)})
    statement = ir.DeleteOp("node", "Row", tuple(predicates))
    return where_clause(statement, base.entity(KEY), base.schema(KEY), values)


def naive(conditions: tuple[tuple[str, ir.Op, Value], ...]) -> list[str]:
    """The ids of the rows that match, by the rules of SQL for nulls and of mathematics for numbers."""
    return sorted(
        row["id"] for row in ROWS if all(_holds(row.get(name), op, value) for name, op, value in conditions)
    )


def _holds(stored: Any, op: ir.Op, value: Any) -> bool:
    if stored is None or value is None:
        return False
    if isinstance(stored, str):
        return OPS[op](stored.encode(), value.encode())
    return OPS[op](stored, value)


def _rounded(condition: tuple[str, ir.Op, Value]) -> tuple[str, ir.Op, Value]:
    """What is compared with a short float is rounded to one."""
    name, op, value = condition
    return (name, op, _as_f32(value)) if name == "table" and isinstance(value, int | float) else condition


@settings(max_examples=examples(50, of=400), deadline=None)
@given(several=st.lists(conditions(), min_size=1, max_size=3).map(tuple))
@example(several=(("table", ir.Op.EQ, 0.1),))
@example(several=(("table", ir.Op.LT, 1e39),))
@example(several=(("camelCase", ir.Op.NE, 0),))
@example(several=(("where", ir.Op.GE, 2**63),))
@example(several=(("select", ir.Op.LT, 3e9),))
def test_all_three_agree(
    several: tuple[tuple[str, ir.Op, Value], ...], plain: Base, with_indexes: Base, pending: pa.Table
) -> None:
    where = clause(plain, *several)
    expected = naive(tuple(map(_rounded, several)))
    for base in (plain, with_indexes):
        assert sorted(base.scan(KEY, ["id"], where.sql)["id"].to_pylist()) == expected
    assert matching(pending, where)["id"].to_pylist() == [row["id"] for row in ROWS if row["id"] in expected]


@pytest.mark.parametrize("op", list(OPS))
@pytest.mark.parametrize("name", [name for name in VALUES if name != "list"])
def test_every_column_with_every_operator(name: str, op: ir.Op, plain: Base, pending: pa.Table) -> None:
    for value in VALUES[name]:
        where = clause(plain, (name, op, value))
        expected = naive((_rounded((name, op, value)),))
        assert sorted(plain.scan(KEY, ["id"], where.sql)["id"].to_pylist()) == expected
        assert sorted(matching(pending, where)["id"].to_pylist()) == expected


def test_lists_and_nulls_match_nothing(plain: Base, pending: pa.Table) -> None:
    for condition in (("list", ir.Op.EQ, (1,)), ("list", ir.Op.NE, (1,)), ("select", ir.Op.NE, None)):
        where = clause(plain, condition)
        assert where.comparisons is None
        assert plain.scan(KEY, ["id"], where.sql).num_rows == 0
        assert matching(pending, where).num_rows == 0


def test_pending_rows_in_several_chunks_keep_their_order(plain: Base, pending: pa.Table) -> None:
    parts = pa.concat_tables([pending.slice(10), pending.slice(0, 10)])
    where = clause(plain, ("between", ir.Op.EQ, True))
    expected = [row["id"] for row in (*ROWS[10:], *ROWS[:10]) if row.get("between")]
    assert matching(parts, where)["id"].to_pylist() == expected


def test_the_ends_of_an_edge_are_its_columns_src_and_dst() -> None:
    schema = pa.schema([("id", pa.string()), ("src", pa.string()), ("dst", pa.string())])
    constants = tuple(ir.Predicate(end, ir.Op.EQ, ir.Constant(end, STRING)) for end in ("from", "to"))
    edge = load_catalog("node A { }  edge E: A -> A").edges["E"]
    where = where_clause(ir.DeleteOp("edge", "E", constants), edge, schema, expressions_of("q", {}))
    assert where.sql == "`src` = 'from' and `dst` = 'to'"
