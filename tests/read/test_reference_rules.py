"""The reference interpreter where no scenario can check it: data that no write would accept, and arithmetic."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pytest
from tests.read.reference import run
from tests.read.reference_rows import GraphData
from tests.read.reference_search import bm25, cosine, distance, fused, l2, ranks, terms_of
from tests.read.reference_values import Operand, Refused, aggregate, holds, round_f32, sorted_by

from omnigraph.lang.query.compile import compile_read
from omnigraph.lang.query.ir import Op
from omnigraph.lang.schema.catalog import load_catalog

SCHEMA = """
node Pilot { call: String @key  hours: I32? }
node Base { code: String @key }
edge Trusts: Pilot -> Pilot
edge StationedAt: Pilot -> Base
"""


def ask(text: str, trusts: str, pilots: str = "abcdef") -> list[Any]:
    """The first column of a query on pilots who trust each other: `ab` is an edge from a to b."""
    catalog = load_catalog(SCHEMA)
    nodes: dict[str, dict[str, dict[str, Any]]] = {
        "Pilot": {name: {"call": name, "hours": None} for name in pilots},
        "Base": {"b": {"code": "b"}},
    }
    edges: dict[str, list[tuple[str, str, str, dict[str, Any]]]] = {
        "Trusts": [(f"t{i}", pair[0], pair[1], {}) for i, pair in enumerate(trusts.split())],
        "StationedAt": [("s1", "a", "b", {}), ("s2", "b", "b", {}), ("s3", "a", "gone", {})],
    }
    compiled = compile_read(f"query q() {{ {text} }}", catalog)
    answer = run(compiled.ir, GraphData(catalog, nodes, edges), {}, dt.datetime.now(dt.UTC), _none)
    return [row[0] for row in answer.rows]


def _none(text: str, dimension: int) -> list[float]:
    raise AssertionError(text, dimension)


def reached(hops: str, trusts: str, pilots: str = "abcdef") -> str:
    """Where the traversal from a leads."""
    found = ask(f'match {{ $p: Pilot {{ call: "a" }}  $p {hops} $q }} return {{ $q }}', trusts, pilots)
    return "".join(sorted(found))


@pytest.mark.parametrize(
    ("hops", "trusts", "expected"),
    [
        ("trusts", "ab ab ac ba", "bc"),
        ("trusts{1,5}", "ab bc ca", "bc"),
        ("trusts{2,3}", "ab bc ac cd", "d"),
        ("trusts{1,1}", "aa", "a"),
        ("trusts{2,2}", "aa", ""),
        ("trusts{2,2}", "ab bb", "b"),
        ("trusts{3,3}", "ab bb", ""),
        ("<trusts>{2,2}", "ab cb", "c"),
        ("<trusts>", "ba aa", "ab"),
        ("trusts{9,9}", "ab bc", ""),
        ("stationedAt{1,3}", "", "b"),
        ("stationedAt{2,3}", "", ""),
    ],
)
def test_hops(hops: str, trusts: str, expected: str) -> None:
    assert reached(hops, trusts) == expected


def test_an_edge_without_both_ends_leads_nowhere() -> None:
    assert reached("trusts", "ab ax xb", "ab") == "b"
    assert reached("trusts{1,3}", "ax xb", "ab") == ""
    assert ask("match { $p: Pilot  $p $t:trusts $q } return { $q }", "ax xa", "a") == []


def test_limits_that_are_no_numbers_are_refused() -> None:
    text = "match { $p: Pilot } return { $p } order { $p.call } limit $n"
    assert ask(text.replace("$n", "2"), "") == ["a", "b"]
    catalog = load_catalog(SCHEMA)
    compiled = compile_read(f"query q($n: I64) {{ {text} }}", catalog)
    data = GraphData(catalog, {}, {})
    for count in (-1, None):
        with pytest.raises(Refused):
            run(compiled.ir, data, {"n": count}, dt.datetime.now(dt.UTC), _none)


def test_comparisons_are_exact_and_unknown_for_nulls() -> None:
    large = Operand(2**53 + 1)
    assert holds(large, Op.GT, Operand(float(2**53)))
    assert not holds(large, Op.EQ, Operand(float(2**53 + 1)))
    assert not holds(Operand(None), Op.NE, Operand(1))
    assert not holds(Operand([None, 1]), Op.CONTAINS, Operand(None))
    tenth = round_f32(0.1)
    assert holds(Operand(tenth, narrow=True), Op.EQ, Operand(0.1, constant=True))
    assert not holds(Operand(tenth, narrow=True), Op.EQ, Operand(0.1))
    assert holds(Operand(3.0, narrow=True), Op.LT, Operand(1e300, constant=True))
    assert round_f32(-1e300) == -math.inf


def test_orders_and_aggregates() -> None:
    rows = ["p", "q", "r", "s"]
    assert sorted_by(rows, [[2, None, 1, 2], ["b", "a", "a", "a"]], [True, False]) == ["s", "p", "r", "q"]
    assert aggregate("count", [None, [1], [1]], distinct=True) == 1
    assert aggregate("avg", [1, 2, None], distinct=False) == 1.5
    assert aggregate("sum", [None], distinct=False) is None
    assert repr(aggregate("sum", [2**53 + 1, 2, None], distinct=False)) == "9007199254740995"
    assert repr(aggregate("sum", [1.0, 2.0], distinct=False)) == "3.0"
    assert aggregate("max", ["a", "ä", "Z"], distinct=False) == "ä"


def test_words_and_scores() -> None:
    assert terms_of("The engines of WEAVING") == ("engin", "weav")
    assert distance("weavnig", "weaving") == 1
    assert distance("engimes", "engine") == 2
    assert distance("", "abc") == 3
    assert math.isclose(bm25("red fox", "fox", ["red fox", "red hen", "blue fox", "frog ox"]), math.log(2))
    assert bm25("red fox", "hen", ["red fox"]) == 0
    assert l2([0, 0], [3, 4]) == 5
    assert cosine([3, 4], [1, 0]) == 0.4
    assert cosine([0, 0], [1, 0]) == 1
    assert ranks([("b", 1.0), ("a", 1.0), ("c", 2.0)], best_is_largest=True) == {"c": 0, "a": 1, "b": 2}
    assert fused([0, None], 1) == 0.5
    assert fused([None, None], 1) is None
