"""Expressions beside DuckDB's, over the same values: nulls, extremes, moments before 1970, letters of all kinds.

`DIFFERENCES` lists what is meant to differ, and is left out here.
"""

from __future__ import annotations

import datetime as dt
import importlib
import math
import uuid
from decimal import Decimal
from random import Random
from typing import Any, Final

import pyarrow as pa
import pytest
from tests.read.functions.rows import KNOWN, PARTLY
from tests.sampling import examples

import omnigraph
from omnigraph.errors import ComputationFailed, SumOverflow
from omnigraph.lang.query.compile import compile_read
from omnigraph.lang.query.functions.signature import UNITS, Kind
from omnigraph.lang.query.functions.table import ROWS
from omnigraph.lang.schema.catalog import load_catalog
from omnigraph.lang.values import BOOL, DATE, DATETIME, F64, I64, STRING, Scalar, ValueType
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame
from omnigraph.read.run.output import arrow_type
from omnigraph.write.mutations.computing import StoredRows

CATALOG: Final = load_catalog("""
node Value { i: I64?  j: I32?  x: F64?  y: F64?  s: String?  t: String?  d: Date?  e: Date?  m: DateTime?  b: Bool?
  l: [String]? }
""")
_UTC: Final = dt.UTC
duckdb: Final = importlib.import_module("duckdb")
_COLUMNS: Final[dict[str, tuple[str, list[Any]]]] = {
    "i": ("integer", [None, 0, 1, -1, 7, 2**31, -(2**63), 2**63 - 1, 12]),
    "j": ("integer", [3, None, 0, -2, 5, 1, 2**31 - 1, -(2**31), 4]),
    "x": ("number", [1.5, -2.5, None, 0.0, -0.0, 1e300, 1e-300, 3.0, 0.5]),
    "y": ("number", [None, 2.0, 0.25, -1.0, 4.0, 100.0, 2.5, -3.5, 0.0]),
    "s": ("text", ["Zürich", "", None, "a,b", "日本語", "İß ΑΣ", "E\u0301 😀", "abcabc", "Émile"]),
    "t": ("text", ["a", "", "b", None, "本", "ς", "😀", "bc", "é"]),
    "d": (
        "date",
        [
            dt.date(1969, 12, 31),
            None,
            dt.date(1970, 1, 1),
            dt.date(2024, 2, 29),
            dt.date(1, 1, 8),
            dt.date(9999, 12, 31),
            dt.date(1900, 3, 1),
            dt.date(2000, 1, 1),
            dt.date(1582, 10, 10),
        ],
    ),
    "e": (
        "date",
        [
            dt.date(2024, 1, 1),
            dt.date(1968, 2, 29),
            None,
            dt.date(2023, 12, 31),
            dt.date(2024, 12, 30),
            dt.date(1970, 1, 5),
            dt.date(1969, 12, 28),
            dt.date(2001, 9, 9),
            dt.date(1999, 6, 30),
        ],
    ),
    "m": (
        "datetime",
        [
            dt.datetime(1969, 12, 31, 23, 59, 59, 999000, _UTC),
            None,
            dt.datetime(1970, 1, 1, tzinfo=_UTC),
            dt.datetime(2024, 2, 29, 13, 45, 1, 1000, _UTC),
            dt.datetime(1800, 6, 1, 6, 0, 0, 0, _UTC),
            dt.datetime(2024, 12, 31, 0, 0, 0, 0, _UTC),
            dt.datetime(1, 1, 8, tzinfo=_UTC),
            dt.datetime(2000, 2, 28, 1, 2, 3, 0, _UTC),
            dt.datetime(9999, 12, 31, 23, 59, 59, 0, _UTC),
        ],
    ),
    "b": ("bool", [True, False, None, True, None, False, True, True, False]),
    "l": ("list", [["a"], [], None, ["b", "c"], ["x", None], ["z"], ["q", "r"], [], ["y"]]),
}
_KINDS: Final = {
    Kind.TEXT: ("text",),
    Kind.INTEGER: ("integer",),
    Kind.NUMBER: ("integer", "number"),
    Kind.MOMENT: ("date", "datetime"),
    Kind.LIST: ("list",),
    Kind.NUMERAL: ("integer",),
}
_SAMPLES: Final = {
    Kind.TEXT: (STRING,),
    Kind.PATTERN: (STRING,),
    Kind.UNIT: (STRING,),
    Kind.INTEGER: (I64,),
    Kind.NUMERAL: (I64,),
    Kind.NUMBER: (I64, F64),
    Kind.MOMENT: (DATE, DATETIME),
    Kind.LIST: (ValueType(Scalar.STRING, is_list=True),),
}
_NAMED: Final = {STRING: "text", I64: "integer", F64: "number", DATE: "date", DATETIME: "datetime", BOOL: "bool"}


def functions_by_result() -> dict[str, list[str]]:
    """The functions that DuckDB has too, by the kind of their results: all rows of the table that have SQL."""
    found: dict[str, dict[str, None]] = {}
    for name, known in KNOWN.items():
        row = ROWS[name]
        wanted = [one.kind for one in row.parameters if not one.optional]
        if known.sql is None or any(kind not in _SAMPLES for kind in wanted):
            continue
        for variant in range(2):
            types = [_SAMPLES[kind][min(variant, len(_SAMPLES[kind]) - 1)] for kind in wanted]
            result = row.result(types).required()
            kind = "list" if result.is_list else _NAMED[result]
            found.setdefault(kind, {})[name] = None
    return {kind: list(names) for kind, names in found.items()}


_RESULTS: Final = functions_by_result()
_CONSTANTS: Final = {
    "integer": ("0", "3", "-7"),
    "number": ("0.5", "2.0", "-1.25"),
    "text": ('"a"', '"Z"', '""'),
    "date": ('date("2000-01-01")',),
    "datetime": ('datetime("1969-07-20T20:17:40Z")',),
    "bool": ("true", "false"),
}


class _Expressions:
    """Random expressions of a type, in our language and in SQL."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def of(self, kind: str, depth: int) -> tuple[str, str]:
        if depth == 0 or self.random.random() < 0.25:
            return self._leaf(kind)
        chance = self.random.random()
        if kind == "bool" and chance < 0.75:
            return self._condition(depth)
        if kind != "list" and chance < 0.2:
            return self._chosen(kind, depth)
        return self._call(kind, depth)

    def _leaf(self, kind: str) -> tuple[str, str]:
        if kind in _CONSTANTS and self.random.random() < 0.3:
            return _constant(self.random.choice(_CONSTANTS[kind]))
        name = self.random.choice([name for name, (found, _) in _COLUMNS.items() if found == kind])
        return f"$v.{name}", name

    def _chosen(self, kind: str, depth: int) -> tuple[str, str]:
        (a, b), (c, d) = self.of(kind, depth - 1), self.of(kind, depth - 1)
        form = self.random.randrange(3)
        if form == 0:
            return f"coalesce({a}, {c})", f"coalesce({b}, {d})"
        if form == 1:
            return f"nullif({a}, {c})", f"nullif({b}, {d})"
        when, sql = self.of("bool", depth - 1)
        return f"case when {when} then {a} else {c} end", f"case when {sql} then {b} else {d} end"

    def _condition(self, depth: int) -> tuple[str, str]:
        form = self.random.randrange(6)
        if form == 0:
            (a, b), (c, d) = self.of("bool", depth - 1), self.of("bool", depth - 1)
            word = self.random.choice(("and", "or"))
            return f"(({a}) {word} ({c}))", f"(({b}) {word} ({d}))"
        if form == 1:
            a, b = self.of("bool", depth - 1)
            return f"not ({a})", f"not ({b})"
        kind = self.random.choice(("integer", "number", "text", "date", "datetime"))
        (a, b), (c, d) = self.of(kind, depth - 1), self.of(kind, depth - 1)
        if form == 2:
            word = self.random.choice(("is null", "is not null"))
            return f"({a}) {word}", f"({b}) {word}"
        if form == 3:
            items = [_constant(one) for one in self.random.choices(_CONSTANTS[kind], k=self.random.randint(1, 3))]
            word = self.random.choice(("in", "not in"))
            ours, theirs = (", ".join(side) for side in zip(*items, strict=True))
            return f"({a}) {word} [{ours}]", f"({b}) {word} ({theirs})"
        if form == 4:
            (a, b), (c, d) = self.of("text", depth - 1), self.of("text", depth - 1)
            word = self.random.choice(("contains", "starts_with"))
            return self.random.choice(
                (
                    (f"({a}) {word} ({c})", f"{word}(({b}), ({d}))"),
                    (f"({a}) not {word} ({c})", f"not {word}(({b}), ({d}))"),
                )
            )
        op = self.random.choice(("=", "!=", "<", "<=", ">", ">="))
        return f"({a}) {op} ({c})", f"({b}) {op} ({d})"

    def _call(self, kind: str, depth: int) -> tuple[str, str]:
        name = self.random.choice(_RESULTS[kind])
        row, sql = ROWS[name], KNOWN[name].sql
        assert sql is not None
        operands = [self._operand(name, one.kind, kind, depth - 1) for one in row.parameters if not one.optional]
        if name == "round" and self.random.random() < 0.5:
            digits = str(self.random.choice((-2, -1, 1, 2)))
            return f"round({operands[0][0]}, {digits})", f"round({operands[0][1]}, {digits})"
        ours = [one for one, _ in operands]
        theirs = sql.format(*(f"({one})" for _, one in operands))
        if name in ("+", "-", "*"):
            return f"(({ours[0]}) {name} ({ours[1]}))", theirs
        return (f"-({ours[0]})" if name == "minus" else f"{name}({', '.join(ours)})"), theirs

    def _operand(self, name: str, wanted: Kind, kind: str, depth: int) -> tuple[str, str]:
        if wanted is Kind.UNIT:
            units = UNITS[:5] if name != "date_diff" and kind == "date" else UNITS
            unit = self.random.choice([one for one in units if (name, one) != ("date_diff", "week")])
            return f'"{unit}"', f"'{unit}'"
        if wanted is Kind.PATTERN:
            pattern = self.random.choice(("a", "b", ","))
            return f'"{pattern}"', f"'{pattern}'"
        if name == "date_diff":
            return self.of("date", depth)
        if wanted is Kind.NUMBER and kind in ("integer", "number"):
            return self.of(kind, depth)
        if wanted is Kind.MOMENT and kind in ("date", "datetime"):
            return self.of(kind, depth)
        return self.of(self.random.choice(_KINDS[wanted]), depth)


def _constant(text: str) -> tuple[str, str]:
    if text.startswith("date("):
        return text, "date '2000-01-01'"
    if text.startswith("datetime("):
        return text, "timestamp '1969-07-20 20:17:40'"
    if text.startswith('"'):
        return text, "'" + text.strip('"') + "'"
    return (text, f"cast({text} as double)") if "." in text else (text, f"cast({text} as bigint)")


def _table() -> pa.Table:
    node = CATALOG.nodes["Value"]
    return pa.table(
        {name: pa.array(values, arrow_type(node.properties[name].type)) for name, (_, values) in _COLUMNS.items()}
    )


def test_expressions_are_what_duckdb_computes() -> None:
    table = _table()
    rows = StoredRows(CATALOG.nodes["Value"], table)
    naive = table.set_column(table.schema.get_field_index("m"), "m", table["m"].cast(pa.timestamp("ms")))
    database = duckdb.connect()
    database.register("given", naive)
    random, compared = Random(20_261_116), 0
    for _ in range(examples(150, of=2_000)):
        kind = random.choice(list(_RESULTS))
        ours, sql = _Expressions(random).of(kind, 3)
        compiled = compile_read(f"query q() {{ match {{ $v: Value }} return {{ {ours} as v }} }}", CATALOG)
        [column] = compiled.ir.columns
        frame = Frame.of("v", rows, rows.everything)
        try:
            found = Expressions("q", {}, lambda: None).arrow(column.expression, frame, arrow_type(column.type))
        except ComputationFailed:
            continue
        try:
            expected = database.execute(f"select {sql} from given").fetchall()
        except duckdb.Error:
            continue
        compared += 1
        for mine, (theirs,) in zip(found.to_pylist(), expected, strict=True):
            assert _same(mine, theirs), f"{ours}\n{sql}\n{mine!r} and {theirs!r}"
    assert compared > examples(75, of=1_000)


@pytest.mark.parametrize("name", PARTLY)
def test_what_is_listed_beside_a_comparison_differs(name: str) -> None:
    """Where DuckDB means nearly the same, an example shows the rest: the list says nothing that is not so."""
    graph = omnigraph.init(f"memory://{uuid.uuid4().hex}/g", "node One { x: F64 }")
    graph.load([{"type": "One", "data": {"x": 1.0}}, {"type": "One", "data": {"x": 1.0}}], mode="append")
    ours, sql = PARTLY[name]
    try:
        found = graph.query(f"query q() {{ match {{ $v: One }} return {{ {ours} as v }} limit 1 }}").rows[0]["v"]
    except (ComputationFailed, SumOverflow) as error:
        found = type(error)
    assert found != duckdb.connect().execute(f"select {sql} from (values (1.0), (1.0)) t(x)").fetchall()[0][0]


_AGGREGATED: Final = {
    "count($v.{0})": "count({0})",
    "count(distinct $v.{0})": "count(distinct {0})",
    "sum($v.{0})": "sum({0})",
    "avg($v.{0})": "avg({0})",
    "min($v.{0})": "min({0})",
    "max($v.{0})": "max({0})",
    "median($v.{0})": "median(cast({0} as double))",
    "percentile($v.{0}, 0.9)": "quantile_cont(cast({0} as double), 0.9)",
    "stddev($v.{0})": "stddev_samp({0})",
    "collect(distinct $v.{0})": "list_sort(coalesce(list(distinct {0}) filter ({0} is not null), []))",
    "sum($v.{0}) + count(*) * 2": "sum({0}) + count(*) * 2",
}
"""Aggregates of numbers in our language and in SQL; those of `DIFFERENCES` where both mean the same."""


@pytest.mark.parametrize("where", ["", "$v.x > 0.0", "$v.i > 8000000000000000000"])
def test_aggregates_are_what_duckdb_computes(where: str) -> None:
    """In groups of which some have no values at all, and over rows of which there may be none."""
    table = _table().select(["i", "j", "y", "b", "x"])
    graph = omnigraph.init(
        f"memory://{uuid.uuid4().hex}/g", "node Value { i: I64?  j: I32?  y: F64?  b: Bool?  x: F64? }"
    )
    graph.load([{"type": "Value", "data": row} for row in table.to_pylist()], mode="append")
    database = duckdb.connect()
    database.register("given", table)
    condition = f"where {where.replace('$v.', '')}" if where else ""
    for column in ("j", "y"):
        ours = ", ".join(f"{text.format(column)} as a{i}" for i, text in enumerate(_AGGREGATED))
        theirs = ", ".join(text.format(column) for text in _AGGREGATED.values())
        for key, group in (("$v.b as b, ", "b, "), ("", "")):
            text = f"query q() {{ match {{ $v: Value  {where} }} return {{ {key}{ours} }} }}"
            found = [tuple(row.values()) for row in graph.query(text).rows]
            sql = f"select {group}{theirs} from given {condition} {'group by b' if group else ''}"
            expected = database.execute(sql).fetchall()
            assert len(found) == len(expected)
            for mine, other in zip(sorted(found, key=repr), sorted(map(_exact, expected), key=repr), strict=True):
                assert all(map(_same, mine, other)), f"{text}\n{sql}\n{mine}\n{other}"


def _exact(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row of DuckDB's, whose sums of integers have a type of their own."""
    return tuple(int(value) if isinstance(value, Decimal) else value for value in row)


def _same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, dt.datetime) and isinstance(theirs, dt.datetime):
        return mine.replace(tzinfo=None) == theirs.replace(tzinfo=None)
    if isinstance(mine, dt.date) and isinstance(theirs, dt.datetime):
        return theirs.time() == dt.time() and mine == theirs.date()
    if isinstance(mine, int) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=1e-15)
    if isinstance(mine, float) and isinstance(theirs, float | int):
        if math.isnan(mine) or math.isnan(theirs):
            return math.isnan(mine) and math.isnan(theirs)
        return math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-12)
    return bool(mine == theirs)
