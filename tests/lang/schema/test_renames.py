"""`@rename_from`: what a hint may continue, what it may not, and when it says nothing.

Rows of accepted and desired schemas; problems are given as `CODE line:column` in the desired one.
"""

from __future__ import annotations

import pytest
from tests.lang.schema.support import ir, planned

from omnigraph.errors import SchemaError
from omnigraph.lang.schema.migration import plan_migration
from omnigraph.lang.schema.resolve import compile_schema

FINE = [
    pytest.param(
        "node A {} node B {}",
        'node A @rename_from("B") {} node B @rename_from("A") {}',
        [],
        id="the exact name wins over the hint",
    ),
    pytest.param(
        "node A {} node B {}",
        'node B @rename_from("A") {}',
        ["drop node A (soft)"],
        id="also when the hinted type goes",
    ),
    pytest.param(
        "node A { x: I32 y: I32 }",
        'node A { y: I32 @rename_from("x") }',
        ["drop A.x (soft)"],
        id="the exact property wins over the hint",
    ),
    pytest.param(
        "node A {}",
        'node B @rename_from("A") {} node A2 {}',
        ["add node A2", "rename node A to B"],
        id="a hint names a type of the same kind",
    ),
    pytest.param(
        "node X {} edge X: X -> X",
        'node Y @rename_from("X") {} edge Z: Y -> Y @rename_from("X")',
        ["rename node X to Y", "rename edge X to Z"],
        id="kinds have their own names",
    ),
    pytest.param(
        "node A { x: I32 }",
        'node B @rename_from("A") { y: I32 @rename_from("x") }',
        ["rename node A to B", "rename B.x to y"],
        id="a property of a renamed type is still its own",
    ),
    pytest.param(
        "node A { x: I32 y: I32 }",
        'node A { y: I32 z: I32 @rename_from("x") }',
        ["rename A.x to z"],
        id="neighbours stay",
    ),
    pytest.param(
        "node A { x: I32 }",
        "node A { y: I32 @rename_from(x) }",
        ["rename A.x to y"],
        id="the old name may be written bare",
    ),
]


@pytest.mark.parametrize(("old", "new", "steps"), FINE)
def test_hints_that_fit(old: str, new: str, steps: list[str]) -> None:
    plan = planned(old, new)
    assert [str(step) for step in plan.steps] == steps
    assert plan.supported


WRONG = [
    pytest.param("node A {}", 'node B @rename_from("Aa") {}', ["M301 1:8"], id="unknown type"),
    pytest.param("", 'node B @rename_from("A") {}', ["M301 1:8"], id="nothing accepted"),
    pytest.param("node A {}", 'node A { y: I32? @rename_from("x") }', ["M301 1:18"], id="unknown property"),
    pytest.param(
        "node A {} edge E: A -> A", 'node A {} node B @rename_from("E") {}', ["M302 1:18"], id="an edge as a node"
    ),
    pytest.param(
        "node A {} node B {}", 'node A {} edge E: A -> A @rename_from("B")', ["M302 1:26"], id="a node as an edge"
    ),
    pytest.param(
        "node A { x: I32 } node B {}",
        'node A { x: I32 } node B { y: I32? @rename_from("x") }',
        ["M302 1:36"],
        id="a property of another type",
    ),
    pytest.param(
        "node A { x: I32 }",
        'node A { x: I32 } node B { y: I32 @rename_from("x") }',
        ["M302 1:35"],
        id="a property of a new type",
    ),
    pytest.param(
        "node A {}",
        'node B @rename_from("A") {}\nnode C @rename_from("A") {}',
        ["M303 2:8"],
        id="two types from one",
    ),
    pytest.param(
        "node A {}", 'node A {}\nnode B @rename_from("A") {}', ["M303 2:8"], id="the old type is still there"
    ),
    pytest.param(
        "node A { x: I32 }",
        'node A {\n y: I32 @rename_from("x")\n z: I32 @rename_from("x")\n}',
        ["M303 3:9"],
        id="two properties from one",
    ),
    pytest.param(
        "node A { x: I32 }",
        'node A { x: I32 y: I32 @rename_from("x") }',
        ["M303 1:24"],
        id="the old property is still there",
    ),
    pytest.param(
        "node A { x: I32 }",
        'node B @rename_from("Z") {}\nnode A {\n y: I32? @rename_from("z") }',
        ["M301 1:8", "M301 3:10"],
        id="all of them at once",
    ),
]


@pytest.mark.parametrize(("old", "new", "problems"), WRONG)
def test_hints_that_do_not_fit(old: str, new: str, problems: list[str]) -> None:
    with pytest.raises(SchemaError) as raised:
        planned(old, new)
    assert [f"{d.code} {d.line}:{d.column}" for d in raised.value.diagnostics] == problems
    assert {d.stage for d in raised.value.diagnostics} == {"catalog error"}


def test_an_unknown_old_name_gets_a_suggestion() -> None:
    with pytest.raises(SchemaError) as raised:
        planned("node Person {}", 'node Human @rename_from("Persn") {}')
    assert raised.value.diagnostics[0].help == "did you mean `Person`?"


def test_a_hint_may_stay_in_the_file_for_ever() -> None:
    hinted = compile_schema('node B @rename_from("A") { y: I32 @rename_from("x") }')
    accepted = plan_migration(ir("node A { x: I32 }"), hinted).target
    assert plan_migration(accepted, hinted).steps == ()


def test_a_hint_left_in_an_interface_does_not_stand_in_the_way_of_new_nodes() -> None:
    interface = 'interface Named { label: String @rename_from("name") }'
    accepted = plan_migration(
        ir("interface Named { name: String } node City implements Named {}"),
        compile_schema(f"{interface} node City implements Named {{}}"),
    ).target
    grown = compile_schema(f"{interface} node City implements Named {{}} node Town implements Named {{}}")
    assert [str(step) for step in plan_migration(accepted, grown).steps] == ["add node Town"]


def test_an_interface_s_property_may_be_renamed_while_a_new_node_implements_it() -> None:
    plan = planned(
        "interface Named { name: String } node City implements Named {}",
        'interface Named { label: String @rename_from("name") } node City implements Named {} '
        "node Town implements Named {}",
    )
    assert [str(step) for step in plan.steps] == [
        "rename Named.name to label",
        "rename City.name to label",
        "add node Town",
    ]
