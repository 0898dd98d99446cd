"""Every change that existing data cannot follow, and the words it is refused with."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lang.schema.support import planned

from omnigraph.errors import SchemaError


def row(title: str, old: str, new: str, *refusals: str) -> Any:
    """What is refused: the entity, then the words it is refused with, a code before them."""
    return pytest.param(old, new, [f"refused: {refusal}" for refusal in refusals], id=title)


def on_node(title: str, old: str, new: str, *refusals: str) -> Any:
    """A change inside `node A { … }`."""
    return row(title, f"node A {{ {old} }}", f"node A {{ {new} }}", *refusals)


def retyped(title: str, old: str, new: str) -> Any:
    """A change of the type of `A.x`."""
    words = f"[OG-MF-106] node:A.x: its type cannot change from {old} to {new}"
    return on_node(f"type: {title}", f"x: {old}", f"x: {new}", words)


NEW_REQUIRED = "a new property must be nullable, because existing rows have no value for it: write"

TYPES = [
    row("interface removed", "interface I {}", "", "interface:I: an interface cannot be renamed or removed"),
    row(
        "interface renamed",
        "interface I { x: I32 }",
        "interface J { x: I32 }",
        "interface:I: an interface cannot be renamed or removed",
    ),
    row(
        "interface implemented later",
        "interface I {} node A {}",
        "interface I {} node A implements I {}",
        "node:A: the list of interfaces it implements cannot change",
    ),
    row(
        "interface implemented no more",
        "interface I {} node A implements I {}",
        "interface I {} node A {}",
        "node:A: the list of interfaces it implements cannot change",
    ),
    row(
        "source of an edge",
        "node A {} node B {} edge E: A -> B",
        "node A {} node B {} edge E: B -> B",
        "edge:E: its endpoints cannot change from A -> B to B -> B",
    ),
    row(
        "target of an edge",
        "node A {} node B {} edge E: A -> B",
        "node A {} node B {} edge E: A -> A",
        "edge:E: its endpoints cannot change from A -> B to A -> A",
    ),
    row(
        "endpoint declared anew under another name",
        "node A {} edge E: A -> A",
        "node B {} edge E: B -> B",
        "edge:E: its endpoints cannot change from A -> A to B -> B",
    ),
    row(
        "cardinality tightened",
        "node A {} edge E: A -> A",
        "node A {} edge E: A -> A @card(0..1)",
        "edge:E: its cardinality cannot change",
    ),
    row(
        "cardinality loosened",
        "node A {} edge E: A -> A @card(0..1)",
        "node A {} edge E: A -> A @card(0..2)",
        "edge:E: its cardinality cannot change",
    ),
]

PROPERTIES = [
    on_node("new required property", "", "x: I32", f"[OG-MF-103] node:A.x: {NEW_REQUIRED} `x: I32?`"),
    row(
        "new required property of an edge",
        "node A {} edge E: A -> A",
        "node A {} edge E: A -> A { x: [Date] }",
        f"[OG-MF-103] edge:E.x: {NEW_REQUIRED} `x: [Date]?`",
    ),
    retyped("wider integer", "I32", "I64"),
    retyped("narrower integer", "I64", "I32"),
    retyped("wider float", "F32", "F64"),
    retyped("other kind", "I32", "String"),
    retyped("nullable to required", "I32?", "I32"),
    retyped("required to nullable", "I32", "I32?"),
    retyped("one to many", "I32", "[I32]"),
    retyped("vector length", "Vector(3)", "Vector(4)"),
    retyped("enum value removed", "enum(a, b)", "enum(a)"),
    retyped("enum value renamed", "enum(a, b)", "enum(a, c)"),
    retyped("enum to text", "enum(a, b)", "String"),
    retyped("text to enum", "String", "enum(a, b)"),
    retyped("enum extended and nullable", "enum(a)", "enum(a, b)?"),
    on_node(
        "renamed and retyped",
        "x: I32",
        'y: I64 @rename_from("x")',
        "[OG-MF-106] node:A.y: its type cannot change from I32 to I64",
    ),
    on_node(
        "key property dropped",
        "x: I32 @key  y: I32",
        "y: I32",
        "node:A.x: a key property cannot be dropped",
    ),
    on_node(
        "source of an embedding",
        "x: String  y: String  v: Vector(2) @embed(x)",
        "x: String  y: String  v: Vector(2) @embed(y)",
        "node:A.v: the source or model of its @embed cannot change",
    ),
    on_node(
        "model of an embedding",
        'x: String  v: Vector(2) @embed(x, model="m")',
        "x: String  v: Vector(2) @embed(x)",
        "node:A.v: the source or model of its @embed cannot change",
    ),
    on_node(
        "embedding of a vector that has none",
        "x: String  v: Vector(2)",
        "x: String  v: Vector(2) @embed(x)",
        "node:A.v: the source or model of its @embed cannot change",
    ),
    row(
        "embedding of an interface whose source the nodes bring",
        "interface I { v: Vector(2) @embed(x) }",
        "interface I { v: Vector(2) @embed(y) }",
        "interface:I.v: the source or model of its @embed cannot change",
    ),
    row(
        "declared, then left to the interface",
        "interface I { x: I32 } node A implements I { x: I32 }",
        "interface I { x: I32 } node A implements I {}",
        "node:A.x: it cannot change between declared and brought by an interface",
    ),
    row(
        "brought by the interface, then declared",
        "interface I { x: I32 } node A implements I {}",
        "interface I { x: I32 } node A implements I { x: I32 }",
        "node:A.x: it cannot change between declared and brought by an interface",
    ),
    row(
        "asked for by another interface",
        "interface I { x: I32? } interface J {} node A implements I, J { x: I32? }",
        "interface I { x: I32? } interface J { x: I32? } node A implements I, J { x: I32? }",
        "node:A.x: the interfaces that ask for it cannot change",
    ),
]


CONSTRAINTS = [
    on_node("new key", "x: I32", "x: I32 @key", "node:A: @key(x) cannot be added to a type that may have data"),
    on_node(
        "new unique", "x: I32", "x: I32 @unique", "node:A: @unique(x) cannot be added to a type that may have data"
    ),
    on_node(
        "new unique on a new property",
        "",
        "x: I32? @unique",
        "node:A: @unique(x) cannot be added to a type that may have data",
    ),
    on_node(
        "new range",
        "x: I32",
        "x: I32 @range(x, 0..2000000)",
        "node:A: @range(x, 0..2000000) cannot be added to a type that may have data",
    ),
    on_node(
        "new check",
        "x: String",
        'x: String @check(x, "^a")',
        'node:A: @check(x, "^a") cannot be added to a type that may have data',
    ),
    on_node(
        "wider range",
        "x: I32 @range(x, 0..1)",
        "x: I32 @range(x, 0..2)",
        "node:A: @range(x, 0..2) cannot be added to a type that may have data",
        "node:A: @range(x, 0..1) cannot be removed",
    ),
    on_node(
        "longer key",
        "x: I32  y: I32  @key(x)",
        "x: I32  y: I32  @key(x, y)",
        "node:A: @key(x, y) cannot be added to a type that may have data",
        "node:A: @key(x) cannot be removed",
    ),
    *(
        on_node(f"{kind} removed", f"x: String  @{written}", "x: String", f"node:A: @{written} cannot be removed")
        for kind, written in (
            ("key", "key(x)"),
            ("unique", "unique(x)"),
            ("index", "index(x)"),
            ("check", 'check(x, "^a")'),
        )
    ),
    on_node("range removed", "x: I32  @range(x, ..9)", "x: I32", "node:A: @range(x, ..9) cannot be removed"),
    row(
        "unique removed from an edge",
        "node A {} edge E: A -> A { @unique(src, dst) }",
        "node A {} edge E: A -> A",
        "edge:E: @unique(dst, src) cannot be removed",
    ),
]

ANNOTATIONS = [
    row("annotation added", "node A {}", "node A @foo {}", "node:A: annotation @foo cannot change"),
    row("annotation removed", "node A @foo {}", "node A {}", "node:A: annotation @foo cannot change"),
    row("annotation value", "node A @foo(1) {}", "node A @foo(2) {}", "node:A: annotation @foo cannot change"),
    on_node("of a property", "x: I32", "x: I32 @default(5)", "node:A.x: annotation @default cannot change"),
]


@pytest.mark.parametrize(("old", "new", "refusals"), TYPES + PROPERTIES + CONSTRAINTS + ANNOTATIONS)
def test_refusals(old: str, new: str, refusals: list[str]) -> None:
    plan = planned(old, new)
    assert not plan.supported
    assert [str(step) for step in plan.steps if step.kind == "unsupported_change"] == refusals


def test_a_node_type_cannot_go_while_an_edge_names_it() -> None:
    with pytest.raises(SchemaError) as raised:
        planned("node A {} edge E: A -> A", "edge E: A -> A")
    assert {d.code for d in raised.value.diagnostics} == {"C203"}
