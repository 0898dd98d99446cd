"""Explained plans: one line per operation, close to how a query would write it."""

from __future__ import annotations

import pytest
from tests.lang.query.support import compiled, plan

from omnigraph.lang.query.explain import explain_ir


@pytest.mark.parametrize(
    ("match", "lines"),
    [
        ('$p: Pilot { call: "a", hours: 3 }', ['Scan $p: Pilot where $p.call = "a" and $p.hours = 3']),
        ("$p trusts $q", ["Scan $p: Pilot", "Expand $p -Trusts-> $q: Pilot"]),
        ("$q: Pilot  $p trusts $q", ["Scan $q: Pilot", "Expand $q <-Trusts- $p: Pilot"]),
        ("$p <trusts>{1,3} $q", ["Scan $p: Pilot", "Expand $p <-Trusts{1,3}-> $q: Pilot"]),
        ("$p $t:trusts $q", ["Scan $p: Pilot", "Expand $p -$t:Trusts-> $q: Pilot"]),
        ("$p: Pilot  $p.hours is not null", ["Scan $p: Pilot", "Filter $p.hours is not null"]),
        (
            "$p: Pilot  not { $p trusts $q }",
            ["Scan $p: Pilot", "AntiJoin on $p", "  Expand $p -Trusts-> $q: Pilot"],
        ),
        (
            "$p: Pilot  optional { $p trusts $q  not { $q.hours > 1 } }",
            [
                "Scan $p: Pilot",
                "Optional introducing $q",
                "  Expand $p -Trusts-> $q: Pilot",
                "  AntiJoin on $q",
                "    Filter $q.hours > 1",
            ],
        ),
        (
            "$p: Pilot  optional { $p.hours > 3 }",
            ["Scan $p: Pilot", "Optional introducing nothing", "  Filter $p.hours > 3"],
        ),
    ],
)
def test_operations(match: str, lines: list[str]) -> None:
    assert plan(match) == [*lines, "Return 1 as literal"]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('"a\\"b\\n"', '"a\\"b\\n"'),
        ('"é"', '"é"'),
        ("-5", "-5"),
        ("2.50", "2.5"),
        ("true", "true"),
        ('date("2024-01-01")', 'date("2024-01-01")'),
        ('datetime("2024-01-01T01:00:00+01:00")', 'datetime("2024-01-01T00:00:00.000Z")'),
        ("[1, 2.5]", "[1.0, 2.5]"),
        ("[]", "[]"),
        ("now()", "now()"),
        ("$x", "param $x"),
    ],
)
def test_values(written: str, shown: str) -> None:
    assert plan("$p: Pilot", f"{written} as v", params="$x: I32")[-1] == f"Return {shown} as v"


def test_columns_show_their_name_unless_they_are_called_like_it() -> None:
    assert plan("$p: Pilot", "$p.call, $p.call as c, $p, $p as id")[-1] == (
        "Return $p.call, $p.call as c, $p, $p as id"
    )


def test_what_becomes_of_the_rows() -> None:
    assert plan("$p: Pilot", "$p.call", "order { $p.hours desc, $p.call } limit 10 offset 5")[1:] == [
        "Return $p.call",
        "Order $p.hours desc, $p.call",
        "Limit 10 offset 5",
    ]
    assert plan("$p: Pilot", "count(distinct $p) as n")[-1] == "Aggregate count(distinct $p) as n"


def test_searches_show_their_defaults_and_metrics() -> None:
    ranked = 'rrf(nearest($p.meaning, "x"), nearest($p.shape, [1, 2]))'
    lines = plan('$p: Plane  fuzzy($p.model, "x")', "$p", f"order {{ {ranked} }} limit 3")
    assert lines[1] == 'Filter fuzzy($p.model, "x", 2) = true'
    assert lines[-2] == 'Order rrf(nearest[cosine]($p.meaning, "x"), nearest[l2]($p.shape, [1, 2]), 60) desc'


def test_mutations() -> None:
    text = """query q($c: String) {
      insert Pilot { call: $c, hours: 3.0, rating: 4, seen: now() }
      update Pilot set { hours: 4 } where call = $c and hours >= 3
      insert Trusts { from: $c, to: "b" }
    }"""
    assert explain_ir(compiled(text).ir).splitlines() == [
        "Insert node Pilot { call: param $c, hours: 3, rating: 4.0, seen: now() }",
        "Update node Pilot { hours: 4 } where call = param $c and hours >= 3",
        'Insert edge Trusts { from: param $c, to: "b" }',
    ]
    assert explain_ir(compiled('query q() { delete Trusts where from = "a" }').ir) == (
        'Delete edge Trusts where from = "a"'
    )
