"""The shape of a schema: what it means, free of how it is written."""

from __future__ import annotations

import hashlib
import re

import pytest
from tests.lang.schema.support import places, shape

BASE = """
interface Named { label: String @index }
node City @tag("x", b="2", a="1") @mark implements Named {
  code: String
  area: F64?
  level: enum(low, high)
  @key(code)
  @unique(area, level)
  @range(area, 0..1000000)
  @check(code, "^[A-Z]+$")
}
edge Road: City -> City @card(0..4) { km: I32  @unique(src, dst) }
"""


def test_the_hash_names_its_algorithm() -> None:
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", shape(BASE).hash)


def test_the_hash_is_that_of_compact_json_with_sorted_fields() -> None:
    stored = b'{"edges":[],"interfaces":[],"nodes":[]}'
    assert shape("").hash == "sha256:" + hashlib.sha256(stored).hexdigest()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("node City", "// a note\nnode /* another */ City", id="comments"),
        pytest.param("\n", "\r\n", id="line ends"),
        pytest.param("  code: String\n  area: F64?\n", "  area: F64?\n  code: String\n", id="property order"),
        pytest.param("enum(low, high)", "enum(high, low)", id="enum order"),
        pytest.param('@tag("x", b="2", a="1") @mark', '@mark @tag("x", a="1", b="2")', id="annotation order"),
        pytest.param("@unique(area, level)", "@unique(level, area, level)", id="column order and repeats"),
        pytest.param(
            "  @key(code)\n  @unique(area, level)\n",
            "  @unique(area, level)\n  @key(code)\n",
            id="constraint order",
        ),
        pytest.param("  code: String\n", "  code: String @key\n", id="key as an annotation"),
        pytest.param("@unique(src, dst)", "@unique(dst, src) @unique(src, dst)", id="a constraint twice"),
        pytest.param("1000000)", "1000000.0)", id="spelling of a bound"),
        pytest.param("0..1000000", "-0.0..1000000", id="negative zero"),
        pytest.param("km: I32", 'km: I32 @rename_from("length")', id="rename hint on a property"),
        pytest.param('@tag("x"', '@rename_from("Town") @tag("x"', id="rename hint on a type"),
    ],
)
def test_spelling_does_not_change_the_hash(old: str, new: str) -> None:
    text = BASE.replace(old, new)
    if "@key" in new and "@key(code)" not in new:
        text = text.replace("  @key(code)\n", "")
    assert text != BASE
    assert shape(text) == shape(BASE)
    assert shape(text).hash == shape(BASE).hash


def test_the_order_of_declarations_does_not_change_the_hash() -> None:
    parts = ["interface I { a: I32 }", "node B implements I {}", "node A {}", "edge F: A -> B", "edge E: A -> B"]
    assert shape("\n".join(parts)).hash == shape("\n".join(reversed(parts))).hash


def test_constraints_that_differ_in_the_last_digit_have_one_order() -> None:
    first, second = "@range(x, 0..16777216)", "@range(x, 0..16777217)"
    assert (
        shape(f"node N {{ x: F64 {first} {second} }}").hash == shape(f"node N {{ x: F64 {second} {first} }}").hash
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("City", "Town"),
        ("area: F64?", "area: F64"),
        ("area: F64?", "area: F32?"),
        ("enum(low, high)", "enum(low, high, top)"),
        ("@mark", '@mark("1")'),
        ("@mark", '@mark @description("where people live")'),
        ("@key(code)", "@index(code)"),
        ("0..1000000", "0..1000001"),
        ("@card(0..4)", "@card(1..4)"),
        ("@card(0..4)", ""),
        ("implements Named", ""),
        (" @index }", " }"),
    ],
)
def test_meaning_changes_the_hash(old: str, new: str) -> None:
    assert shape(BASE.replace(old, new)).hash != shape(BASE).hash


def test_an_option_has_one_value() -> None:
    assert places('node N @foo("x", k=1, k=2) { v: Vector(2) @embed(t, model="a", model="b")  t: String }') == [
        "S112 1:23",
        "S112 1:64",
    ]


def test_an_injected_property_is_not_a_declared_one() -> None:
    interface = "interface Named { label: String }"
    injected = shape(f"{interface} node City implements Named {{}}")
    declared = shape(f"{interface} node City implements Named {{ label: String }}")
    assert injected.hash != declared.hash
    assert [(p.injected, p.satisfies) for p in injected.nodes[0].properties] == [(True, ("Named",))]
    assert [(p.injected, p.satisfies) for p in declared.nodes[0].properties] == [(False, ("Named",))]


@pytest.mark.parametrize(
    "written",
    [
        "@key(a, b)",
        "@unique(a)",
        "@index(a, b)",
        "@range(n, 0..1000000)",
        "@range(n, -1.5..)",
        "@range(n, ..16777217)",
        '@check(a, "^\\\\w+$")',
    ],
)
def test_constraints_are_shown_as_they_are_written(written: str) -> None:
    [node] = shape(f"node N {{ a: String  b: String  n: F64  {written} }}").nodes
    assert [str(constraint) for constraint in node.constraints] == [written]


def test_types_are_found_by_property_name() -> None:
    [node] = shape("node N { a: String }").nodes
    found = node.property("a")
    assert found is not None
    assert str(found.type) == "String"
    assert node.property("b") is None
