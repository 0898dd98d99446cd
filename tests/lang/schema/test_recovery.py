"""One mistake does not hide the next, and does not make sound declarations look wrong."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lang.schema.support import places, problems
from tests.sampling import examples


def test_several_bad_properties_in_one_block() -> None:
    text = """node A {
  x: Strin
  good: String
  y: Vector(0)
  z: [Blob]
  Upper: String
}"""
    assert places(text) == ["P001 2:6", "P003 4:13", "P001 5:7", "P001 6:3"]


def test_bad_declarations_of_every_kind() -> None:
    text = """node person {}
nod Pet {}
edge Knows Person -> Person
edge Owns: Person - Pet
interface Named [ ]
node Good {}
edge Bad: Good -> Missing"""
    assert places(text) == ["P001 1:6", "P001 3:12", "P001 4:19", "P001 5:17", "C203 7:19"]


def test_syntax_errors_and_rule_errors_are_reported_together() -> None:
    text = """node A { x: Strin }
node B { id: String }
node B { v: String @embed(v) }
edge E: B -> C"""
    assert places(text) == ["P001 1:13", "S125 2:10", "C201 3:6", "C203 4:14"]


def test_a_declaration_that_did_not_parse_is_not_missed_elsewhere() -> None:
    assert places("interface I { x: Strin }\nnode A implements I { y: Strin }\nedge E: A -> A") == [
        "P001 1:18",
        "P001 2:26",
    ]


def test_properties_that_did_not_parse_are_not_missed_by_constraints() -> None:
    assert places("node A {\n  x: Strin\n  @key(x)\n}") == ["P001 2:6"]


def test_a_character_that_is_no_token_is_reported_once() -> None:
    assert places("node A {\n  x: 'String'\n  @key(x)\n}\nedge E: A -> A") == ["P002 2:6"]


def test_a_block_that_is_never_closed_does_not_swallow_the_next_declaration() -> None:
    text = """node A {
  x: String
node B {
  y: Strin
}
edge E: A -> B"""
    assert problems(text) == [
        "P001 3:1 the block of the declaration above is never closed",
        "P001 4:6 unknown type `Strin`",
    ]


def test_a_bad_property_before_a_block_that_is_never_closed() -> None:
    text = """node A {
  x: Strin
node B {
  y: Strin
}
edge E: A -> B"""
    assert places(text) == ["P001 2:6", "P001 3:1", "P001 4:6"]


def test_a_type_cut_short_does_not_hide_the_property_below() -> None:
    assert places("node A {\n  x: Vector\n  y: Strin\n}") == ["P001 3:3", "P001 3:6"]


def test_a_block_open_at_the_end_of_the_file() -> None:
    assert problems("node A {\n  x: String\n") == ["P001 3:1 this block is never closed"]
    assert places("node A {\n  x: Strin\n") == ["P001 2:6", "P001 3:1"]


def test_annotations_on_the_line_below_a_bad_property_belong_to_it() -> None:
    assert places("node A {\n  x: Strin\n    @index\n  y: Strin\n}") == ["P001 2:6", "P001 4:6"]


@pytest.mark.parametrize("first", ["node A { x: Strin", "edge E: A ->", "interface I", "}", "@key(x)"])
def test_a_declaration_behind_a_broken_one_is_still_read(first: str) -> None:
    assert places(f"{first}\nnode Z {{ q: Strin }}")[-1] == "P001 2:13"


FRAGMENTS = st.sampled_from(
    [
        "node",
        "edge",
        "interface",
        "implements",
        "A",
        "B",
        "x",
        ":",
        "String",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        "->",
        "@",
        "key",
        "@card(0..1)",
        "..",
        "-",
        "5",
        "1.5",
        '"s"',
        "enum",
        "Vector",
        ",",
        "?",
        "=",
        "\n",
        "'",
        "#",
        "/*",
    ]
)


@settings(max_examples=examples(80, of=300), deadline=None)
@given(st.lists(FRAGMENTS, max_size=40))
def test_any_mixture_of_words_either_compiles_or_is_refused_in_order(words: list[str]) -> None:
    found = [tuple(map(int, place.split()[1].split(":"))) for place in places(" ".join(words))]
    assert found == sorted(found)
