"""The static descriptor of a query: its columns with their types, and the tables it reads and writes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lang.query.support import compiled, read


def result(match: str, returned: str, behind: str = "", params: str = "") -> list[dict[str, Any]]:
    """The described columns of a read."""
    fields: list[dict[str, Any]] = read(match, returned, behind, params).operation.as_json()["result"]
    return fields


@pytest.mark.parametrize(
    ("returned", "described"),
    [
        ("$p.call", {"name": "p.call", "kind": "string", "nullable": False}),
        ("$p.hours as h", {"name": "h", "kind": "int", "nullable": True}),
        ("$p.born", {"name": "p.born", "kind": "date", "nullable": True}),
        ("$p.tags", {"name": "p.tags", "kind": "list", "item_kind": "string", "nullable": True}),
        ("$p", {"name": "p", "kind": "string", "nullable": False}),
        ("$x", {"name": "x", "kind": "bigint", "nullable": True}),
        ("now()", {"name": "now", "kind": "datetime", "nullable": False}),
        ("7", {"name": "literal", "kind": "bigint", "nullable": False}),
        ("[1, 2.5]", {"name": "literal", "kind": "list", "item_kind": "float", "nullable": False}),
        ("count($p.hours)", {"name": "p.hours", "kind": "bigint", "nullable": False}),
        ("count(distinct $p) as n", {"name": "n", "kind": "bigint", "nullable": False}),
        ("sum($p.hours)", {"name": "p.hours", "kind": "bigint", "nullable": True}),
        ("sum($p.rating) as s", {"name": "s", "kind": "float", "nullable": True}),
        ("avg($p.rating) as a", {"name": "a", "kind": "float", "nullable": True}),
        ("min($p.hours)", {"name": "p.hours", "kind": "int", "nullable": True}),
        ("max($p.born) as m", {"name": "m", "kind": "date", "nullable": True}),
        ("max($p.call) as m", {"name": "m", "kind": "string", "nullable": True}),
        ('bm25($p.call, "x") as s', {"name": "s", "kind": "float", "nullable": True}),
    ],
)
def test_columns(returned: str, described: dict[str, Any]) -> None:
    assert result("$p: Pilot", returned, params="$x: I64?") == [described]


def test_vectors_show_their_length() -> None:
    assert result("$p: Plane", "$p.shape") == [
        {"name": "p.shape", "kind": "vector", "vector_dim": 2, "nullable": True}
    ]


def test_what_an_optional_may_leave_out_may_be_null() -> None:
    fields = result("$p: Pilot  optional { $p stationedAt $b }", "$p.call, $b, $b.code")
    assert [(field["name"], field["nullable"]) for field in fields] == [
        ("p.call", False),
        ("b", True),
        ("b.code", True),
    ]


def test_tables_are_sorted_pairs_without_repetition() -> None:
    operation = read("$p: Pilot  $p trusts $q  not { $q stationedAt $_ }  optional { $q flies $f }").operation
    assert operation.as_json()["reads"] == [
        {"kind": "edge", "type_name": "Flies"},
        {"kind": "edge", "type_name": "StationedAt"},
        {"kind": "edge", "type_name": "Trusts"},
        {"kind": "node", "type_name": "Base"},
        {"kind": "node", "type_name": "Pilot"},
        {"kind": "node", "type_name": "Plane"},
    ]
    assert operation.as_json()["writes"] == []


@pytest.mark.parametrize(
    ("statement", "reads", "writes"),
    [
        ('insert Pilot { call: "a" }', "node:Pilot", "node:Pilot"),
        ('update Pilot set { hours: 1 } where call = "a"', "node:Pilot", "node:Pilot"),
        (
            'insert StationedAt { from: "a", to: "b" }',
            "edge:StationedAt node:Base node:Pilot",
            "edge:StationedAt",
        ),
        ('delete StationedAt where from = "a"', "edge:StationedAt", "edge:StationedAt"),
        (
            'delete Pilot where call = "a"',
            "edge:Flies edge:StationedAt edge:Trusts node:Pilot",
            "edge:Flies edge:StationedAt edge:Trusts node:Pilot",
        ),
    ],
)
def test_mutations(statement: str, reads: str, writes: str) -> None:
    operation = compiled(f"query q() {{ {statement} }}").operation
    assert operation.result == ()
    assert " ".join(f"{kind}:{name}" for kind, name in sorted(operation.reads)) == reads
    assert " ".join(f"{kind}:{name}" for kind, name in sorted(operation.writes)) == writes
