"""Changes that are refused, with the words for it, and changes that rows can follow if they keep the new rules."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lang.schema.support import planned

from omnigraph.errors import SchemaError


def row(title: str, old: str, new: str, *steps: str) -> Any:
    """A change and the steps of its plan."""
    return pytest.param(old, new, list(steps), id=title)


REFUSED = [
    row(
        "interface removed",
        "interface I {}",
        "",
        "refused: interface:I: an interface cannot be renamed or removed",
    ),
    row(
        "interface renamed",
        "interface I { x: I32 }",
        "interface J { x: I32 }",
        "add interface J",
        "refused: interface:I: an interface cannot be renamed or removed",
    ),
    row(
        "interface implemented later",
        "interface I {} node A {}",
        "interface I {} node A implements I {}",
        "refused: node:A: the list of interfaces it implements cannot change",
    ),
    row(
        "interface implemented no more",
        "interface I {} node A implements I {}",
        "interface I {} node A {}",
        "refused: node:A: the list of interfaces it implements cannot change",
    ),
    row(
        "source of an edge",
        "node A {} node B {} edge E: A -> B",
        "node A {} node B {} edge E: B -> B",
        "refused: edge:E: its endpoints cannot change from A -> B to B -> B",
    ),
    row(
        "target of an edge",
        "node A {} node B {} edge E: A -> B",
        "node A {} node B {} edge E: A -> A",
        "refused: edge:E: its endpoints cannot change from A -> B to A -> A",
    ),
    row(
        "endpoint declared anew under another name",
        "node A {} edge E: A -> A",
        "node B {} edge E: B -> B",
        "add node B",
        "drop node A (soft)",
        "refused: edge:E: its endpoints cannot change from A -> A to B -> B",
    ),
    row(
        "new required property",
        "node A {  }",
        "node A { x: I32 }",
        "refused: [OG-MF-103] node:A.x: existing rows have no value for a new property: write `x: I32?`",
    ),
    row(
        "new required property of an edge",
        "node A {} edge E: A -> A",
        "node A {} edge E: A -> A { x: [Date] }",
        "refused: [OG-MF-103] edge:E.x: existing rows have no value for a new property: write `x: [Date]?`",
    ),
    row(
        "type: narrower integer",
        "node A { x: I64 }",
        "node A { x: I32 }",
        "refused: [OG-MF-106] node:A.x: its type cannot change from I64 to I32",
    ),
    row(
        "type: other kind",
        "node A { x: I32 }",
        "node A { x: String }",
        "refused: [OG-MF-106] node:A.x: its type cannot change from I32 to String",
    ),
    row(
        "type: one to many",
        "node A { x: I32 }",
        "node A { x: [I32] }",
        "refused: [OG-MF-106] node:A.x: its type cannot change from I32 to [I32]",
    ),
    row(
        "type: vector length",
        "node A { x: Vector(3) }",
        "node A { x: Vector(4) }",
        "refused: [OG-MF-106] node:A.x: its type cannot change from Vector(3) to Vector(4)",
    ),
    row(
        "type: enum value removed",
        "node A { x: enum(a, b) }",
        "node A { x: enum(a) }",
        "refused: [OG-MF-106] node:A.x: its type cannot change from enum(a, b) to enum(a)",
    ),
    row(
        "type: enum value renamed",
        "node A { x: enum(a, b) }",
        "node A { x: enum(a, c) }",
        "refused: [OG-MF-106] node:A.x: its type cannot change from enum(a, b) to enum(a, c)",
    ),
    row(
        "type: text to enum",
        "node A { x: String }",
        "node A { x: enum(a, b) }",
        "refused: [OG-MF-106] node:A.x: its type cannot change from String to enum(a, b)",
    ),
    row(
        "key property dropped",
        "node A { x: I32 @key  y: I32 }",
        "node A { y: I32 }",
        "refused: node:A.x: a key property cannot be dropped",
    ),
    row(
        "declared, then left to the interface",
        "interface I { x: I32 } node A implements I { x: I32 }",
        "interface I { x: I32 } node A implements I {}",
        "refused: node:A.x: it cannot change between declared and brought by an interface",
    ),
    row(
        "brought by the interface, then declared",
        "interface I { x: I32 } node A implements I {}",
        "interface I { x: I32 } node A implements I { x: I32 }",
        "refused: node:A.x: it cannot change between declared and brought by an interface",
    ),
    row(
        "asked for by another interface",
        "interface I { x: I32? } interface J {} node A implements I, J { x: I32? }",
        "interface I { x: I32? } interface J { x: I32? } node A implements I, J { x: I32? }",
        "add J.x: I32?",
        "refused: node:A.x: the interfaces that ask for it cannot change",
    ),
    row(
        "new key",
        "node A { x: I32 }",
        "node A { x: I32 @key }",
        "refused: node:A: @key(x) cannot be added: ids of existing rows are made without it",
    ),
    row(
        "longer key",
        "node A { x: I32  y: I32  @key(x) }",
        "node A { x: I32  y: I32  @key(x, y) }",
        "refused: node:A: @key(x, y) cannot be added: ids of existing rows are made without it",
        "refused: node:A: @key(x) cannot be removed: ids of existing rows are made of it",
    ),
    row(
        "key removed",
        "node A { x: String  @key(x) }",
        "node A { x: String }",
        "refused: node:A: @key(x) cannot be removed: ids of existing rows are made of it",
    ),
    row("annotation added", "node A {}", "node A @foo {}", "refused: node:A: annotation @foo cannot change"),
    row("annotation removed", "node A @foo {}", "node A {}", "refused: node:A: annotation @foo cannot change"),
    row(
        "annotation value",
        "node A @foo(1) {}",
        "node A @foo(2) {}",
        "refused: node:A: annotation @foo cannot change",
    ),
    row(
        "of a property",
        "node A { x: I32 }",
        "node A { x: I32 @default(5) }",
        "refused: node:A.x: annotation @default cannot change",
    ),
]

POSSIBLE = [
    row(
        "cardinality tightened",
        "node A {} edge E: A -> A",
        "node A {} edge E: A -> A @card(0..1)",
        "change E from @card(0..) to @card(0..1)",
    ),
    row(
        "cardinality loosened",
        "node A {} edge E: A -> A @card(0..1)",
        "node A {} edge E: A -> A @card(0..2)",
        "change E from @card(0..1) to @card(0..2)",
    ),
    row("type: wider integer", "node A { x: I32 }", "node A { x: I64 }", "widen A.x from I32 to I64"),
    row("type: wider float", "node A { x: F32 }", "node A { x: F64 }", "widen A.x from F32 to F64"),
    row("type: nullable to required", "node A { x: I32? }", "node A { x: I32 }", "require A.x"),
    row("type: required to nullable", "node A { x: I32 }", "node A { x: I32? }", "let A.x be null"),
    row(
        "type: enum to text",
        "node A { x: enum(a, b) }",
        "node A { x: String }",
        "widen A.x from enum(a, b) to String",
    ),
    row(
        "type: enum extended and nullable",
        "node A { x: enum(a) }",
        "node A { x: enum(a, b)? }",
        "extend A.x with b",
        "let A.x be null",
    ),
    row(
        "renamed and retyped",
        "node A { x: I32 }",
        'node A { y: I64 @rename_from("x") }',
        "rename A.x to y",
        "widen A.y from I32 to I64",
    ),
    row(
        "source of an embedding",
        "node A { x: String  y: String  v: Vector(2) @embed(x) }",
        "node A { x: String  y: String  v: Vector(2) @embed(y) }",
        "compute A.v from y",
    ),
    row(
        "model of an embedding",
        'node A { x: String  v: Vector(2) @embed(x, model="m") }',
        "node A { x: String  v: Vector(2) @embed(x) }",
        "compute A.v from x",
    ),
    row(
        "embedding of a vector that has none",
        "node A { x: String  v: Vector(2) }",
        "node A { x: String  v: Vector(2) @embed(x) }",
        "compute A.v from x",
    ),
    row(
        "embedding of an interface whose source the nodes bring",
        "interface I { v: Vector(2) @embed(x) }",
        "interface I { v: Vector(2) @embed(y) }",
        "compute I.v from y",
    ),
    row("new unique", "node A { x: I32 }", "node A { x: I32 @unique }", "add @unique(x) to A"),
    row(
        "new unique on a new property",
        "node A {  }",
        "node A { x: I32? @unique }",
        "add A.x: I32?",
        "add @unique(x) to A",
    ),
    row(
        "new range",
        "node A { x: I32 }",
        "node A { x: I32 @range(x, 0..2000000) }",
        "add @range(x, 0..2000000) to A",
    ),
    row("new check", "node A { x: String }", 'node A { x: String @check(x, "^a") }', 'add @check(x, "^a") to A'),
    row(
        "wider range",
        "node A { x: I32 @range(x, 0..1) }",
        "node A { x: I32 @range(x, 0..2) }",
        "add @range(x, 0..2) to A",
        "drop @range(x, 0..1) of A",
    ),
    row("unique removed", "node A { x: String  @unique(x) }", "node A { x: String }", "drop @unique(x) of A"),
    row("index removed", "node A { x: String  @index(x) }", "node A { x: String }", "drop @index(x) of A"),
    row(
        "check removed",
        'node A { x: String  @check(x, "^a") }',
        "node A { x: String }",
        'drop @check(x, "^a") of A',
    ),
    row("range removed", "node A { x: I32  @range(x, ..9) }", "node A { x: I32 }", "drop @range(x, ..9) of A"),
    row(
        "unique removed from an edge",
        "node A {} edge E: A -> A { @unique(src, dst) }",
        "node A {} edge E: A -> A",
        "drop @unique(dst, src) of E",
    ),
]


@pytest.mark.parametrize(("old", "new", "steps"), REFUSED)
def test_refusals(old: str, new: str, steps: list[str]) -> None:
    plan = planned(old, new)
    assert not plan.supported
    assert len(plan.steps) == len(steps)
    for step, begins in zip(plan.steps, steps, strict=True):
        assert str(step).startswith(begins), "what can be done instead comes behind it"


@pytest.mark.parametrize(("old", "new", "steps"), POSSIBLE)
def test_changes_that_rows_may_follow(old: str, new: str, steps: list[str]) -> None:
    plan = planned(old, new)
    assert plan.supported
    assert [str(step) for step in plan.steps] == steps


def test_a_node_type_cannot_go_while_an_edge_names_it() -> None:
    with pytest.raises(SchemaError) as raised:
        planned("node A {} edge E: A -> A", "edge E: A -> A")
    assert {d.code for d in raised.value.diagnostics} == {"C203"}
