"""Every kind of schema change: the steps it takes, or why there are none.

Each row reads: what it shows, the accepted schema, the desired one, and the steps in their order.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.lang.schema.support import planned

from omnigraph.errors import MigrationError
from omnigraph.lang.schema.migration import plan_migration
from omnigraph.lang.schema.resolve import compile_schema

Expected = dict[str, Any]


def row(title: str, old: str, new: str, *steps: Expected) -> Any:
    return pytest.param(old, new, list(steps), id=title)


def add_type(kind: str, name: str) -> Expected:
    return {"kind": "add_type", "type_kind": kind, "name": name}


def drop_type(kind: str, name: str) -> Expected:
    return {"kind": "drop_type", "type_kind": kind, "name": name, "mode": "soft"}


def rename_type(kind: str, old: str, new: str) -> Expected:
    return {"kind": "rename_type", "type_kind": kind, "from": old, "to": new}


def of(kind: str, path: str, **fields: object) -> Expected:
    """A step on `node:A` or `node:A.p`."""
    type_kind, _, rest = path.partition(":")
    name, _, prop = rest.partition(".")
    return {
        "kind": kind,
        "type_kind": type_kind,
        "type_name": name,
        **({"property_name": prop} if prop else {}),
    } | fields


NOTHING = [
    row("same text", "node A { x: I32 }", "node A { x: I32 }"),
    row("comments", "node A { x: I32 }", "// more\nnode A { /* and more */ x: I32 }"),
    row("order of declarations", "node A {} node B {}", "node B {} node A {}"),
    row("order of properties", "node A { x: I32 y: I32 }", "node A { y: I32 x: I32 }"),
    row("order of enum values", "node A { s: enum(x, y) }", "node A { s: enum(y, x) }"),
    row("order of key columns", "node A { x: I32 y: I32 @key(x, y) }", "node A { x: I32 y: I32 @key(y, x) }"),
    row("annotation or body", "node A { x: I32 @key }", "node A { x: I32 @key(x) }"),
    row("default cardinality", "node A {} edge E: A -> A", "node A {} edge E: A -> A @card(0..) {}"),
    row("a hint nobody needs", "node A { x: I32 }", 'node A @rename_from("Z") { x: I32 @rename_from("y") }'),
]

STEPS = [
    row("add an interface", "", "interface I { x: I32 }", add_type("interface", "I")),
    row("add a node", "", "node A { x: I32 @key }", add_type("node", "A")),
    row("add an edge", "node A {}", "node A {} edge E: A -> A", add_type("edge", "E")),
    row(
        "interfaces before nodes before edges, additions before drops",
        "node Z {} edge Y: Z -> Z",
        "edge E: A -> A node B implements I {} node A {} interface I {}",
        add_type("interface", "I"),
        add_type("node", "A"),
        add_type("node", "B"),
        drop_type("node", "Z"),
        add_type("edge", "E"),
        drop_type("edge", "Y"),
    ),
    row("drop a node", "node A {} node B {}", "node A {}", drop_type("node", "B")),
    row("drop an edge", "node A {} edge E: A -> A", "node A {}", drop_type("edge", "E")),
    row(
        "drop a node and its edge",
        "node A {} edge E: A -> A",
        "",
        drop_type("node", "A"),
        drop_type("edge", "E"),
    ),
    row(
        "add a nullable property to a node",
        "node A {}",
        "node A { x: [I32]? }",
        of("add_property", "node:A.x", property_type="[I32]?"),
    ),
    row(
        "add a nullable property to an edge",
        "node A {} edge E: A -> A",
        "node A {} edge E: A -> A { s: enum(b, a)? }",
        of("add_property", "edge:E.s", property_type="enum(a, b)?"),
    ),
    row(
        "add a nullable property to an interface and so to its nodes",
        "interface I {} node A implements I {}",
        "interface I { v: Vector(3)? } node A implements I {}",
        of("add_property", "interface:I.v", property_type="Vector(3)?"),
        of("add_property", "node:A.v", property_type="Vector(3)?"),
    ),
    row(
        "drop a property",
        "node A { x: I32 y: I32 } edge E: A -> A { z: I32 }",
        "node A { x: I32 } edge E: A -> A",
        of("drop_property", "node:A.y", mode="soft"),
        of("drop_property", "edge:E.z", mode="soft"),
    ),
    row(
        "an index goes with its property",
        "node A { x: I32 @index y: I32 @index(x, y) }",
        "node A { y: I32 }",
        of("drop_property", "node:A.x", mode="soft"),
    ),
    row("rename a node", "node A {}", 'node B @rename_from("A") {}', rename_type("node", "A", "B")),
    row(
        "renaming a node leaves its edges alone",
        "node A {} edge E: A -> A",
        'node B @rename_from("A") {} edge E: B -> B',
        rename_type("node", "A", "B"),
    ),
    row(
        "rename an edge",
        "node A {} edge E: A -> A",
        'node A {} edge F: A -> A @rename_from("E")',
        rename_type("edge", "E", "F"),
    ),
    row(
        "rename a property with its key, range and embedding",
        "node A { n: I32 x: String @key v: Vector(2)? @embed(x) @range(n, 0..) }",
        "node A { m: I32 @rename_from(n) y: String @key @rename_from(x) v: Vector(2)? @embed(y) @range(m, 0..) }",
        of("rename_property", "node:A", **{"from": "n", "to": "m"}),
        of("rename_property", "node:A", **{"from": "x", "to": "y"}),
    ),
    row(
        "rename an interface's property and so that of its nodes",
        "interface I { x: I32 } node A implements I {}",
        'interface I { y: I32 @rename_from("x") } node A implements I {}',
        of("rename_property", "interface:I", **{"from": "x", "to": "y"}),
        of("rename_property", "node:A", **{"from": "x", "to": "y"}),
    ),
    row(
        "rename, extend and index one property of a renamed node",
        "node A { s: enum(x) }",
        'node B @rename_from("A") { t: enum(x, y) @rename_from("s") @index }',
        rename_type("node", "A", "B"),
        of("rename_property", "node:B", **{"from": "s", "to": "t"}),
        of("extend_enum", "node:B.t", added_values=["y"]),
        of("add_constraint", "node:B", constraint="@index(t)"),
    ),
    row(
        "add an index",
        "node A { x: I32 y: I32 } edge E: A -> A",
        "node A { x: I32 @index y: I32 @index(y, x) } edge E: A -> A { @index(src) }",
        of("add_constraint", "node:A", constraint="@index(x)"),
        of("add_constraint", "node:A", constraint="@index(x, y)"),
        of("add_constraint", "edge:E", constraint="@index(src)"),
    ),
    row(
        "extend an enum",
        "node A { s: enum(b)? }",
        "node A { s: enum(c, a, b)? }",
        of("extend_enum", "node:A.s", added_values=["a", "c"]),
    ),
    row(
        "describe a type",
        'node A @description("old") {}',
        'node A @description("new") @instruction("use it") {}',
        {
            "kind": "update_type_metadata",
            "type_kind": "node",
            "name": "A",
            "annotations": {"description": "new", "instruction": "use it"},
        },
    ),
    row(
        "describe a property",
        "node A { x: I32 }",
        'node A { x: I32 @description("how many") }',
        of("update_property_metadata", "node:A.x", annotations={"description": "how many"}),
    ),
    row(
        "take a description away",
        'node A { x: I32 @description("how many") }',
        "node A { x: I32 }",
        of("update_property_metadata", "node:A.x", annotations={}),
    ),
]


@pytest.mark.parametrize(("old", "new", "steps"), NOTHING + STEPS)
def test_steps(old: str, new: str, steps: list[Expected]) -> None:
    plan = planned(old, new)
    assert plan.as_json() == {"supported": True, "steps": steps}
    plan.require_supported()


@pytest.mark.parametrize(("old", "new", "steps"), NOTHING + STEPS)
def test_once_applied_nothing_is_left_to_do(old: str, new: str, steps: list[Expected]) -> None:
    accepted = planned(old, new).target
    assert plan_migration(accepted, compile_schema(new)).steps == ()


def test_every_drop_becomes_hard_when_data_may_be_lost() -> None:
    plan = planned("node A { x: I32 y: I32 } node B {} edge E: A -> A", "node A { x: I32 }", hard=True)
    assert [str(step) for step in plan.steps] == [
        "drop A.y (hard)",
        "drop node B (hard)",
        "drop edge E (hard)",
    ]


def test_a_plan_with_a_refused_step_is_not_supported() -> None:
    plan = planned("node A { x: I64 }", "node A { x: I32  y: I32  z: I32? }")
    assert plan.as_json()["supported"] is False
    assert [step.kind for step in plan.steps] == ["unsupported_change", "unsupported_change", "add_property"]
    with pytest.raises(MigrationError) as raised:
        plan.require_supported()
    assert str(raised.value) == (
        "[OG-MF-106] node:A.x: its type cannot change from I64 to I32; add another property and drop this one"
        " (and 1 more)"
    )
    assert [change["code"] for change in raised.value.changes] == ["OG-MF-106", "OG-MF-103"]
