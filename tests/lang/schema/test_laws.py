"""What holds for all schemas, tried on many small ones."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lang.schema.support import ir, parsed, planned, shape
from tests.sampling import examples

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.format import format_schema
from omnigraph.lang.schema.identity import SchemaIR
from omnigraph.lang.schema.migration import plan_migration
from omnigraph.lang.schema.resolve import compile_schema

TYPES = st.sampled_from(["I32", "I32?", "String", "F64", "enum(a, b)", "enum(b, c, a)", "Date?", "[String]?"])
MARKS = st.sampled_from(["", "", "", "@index", "@foo", '@description("x")', '@rename_from("z")'])
NODES = ("A", "B", "C")


@st.composite
def bodies(draw: st.DrawFn, names: str, tail: str = "") -> str:
    """Properties, each of them maybe there, and what stands behind them."""
    chosen = draw(st.lists(st.sampled_from(names), unique=True))
    properties = []
    for name in chosen:
        written = draw(TYPES)
        mark = "" if written.startswith("[") else draw(MARKS)
        properties.append(f"{name}: {written} {mark}")
    has_tail = draw(st.booleans())
    if chosen and has_tail:
        properties.append(tail.replace("?", chosen[0]))
    return "{ " + "  ".join(properties) + " }"


@st.composite
def schemas(draw: st.DrawFn) -> list[str]:
    """The declarations of a small schema; edges join node types that are there."""
    interfaces = draw(st.lists(st.sampled_from("IJ"), unique=True))
    declarations = [f"interface {name} {draw(bodies('im' if name == 'I' else 'jn'))}" for name in interfaces]
    nodes = draw(st.lists(st.sampled_from(NODES), unique=True))
    for name in nodes:
        implemented = draw(st.lists(st.sampled_from(interfaces), unique=True)) if interfaces else []
        clause = f"implements {', '.join(implemented)} " if implemented else ""
        declarations.append(f"node {name} {clause}{draw(bodies('pqr', '@index(?)'))}")
    for name in draw(st.lists(st.sampled_from("EF"), unique=True)) if nodes else []:
        ends = f"{draw(st.sampled_from(nodes))} -> {draw(st.sampled_from(nodes))}"
        card = draw(st.sampled_from(["", "@card(0..1)"]))
        declarations.append(f"edge {name}: {ends} {card} {draw(bodies('xy', '@unique(src, dst)'))}")
    return declarations


@settings(max_examples=examples(12, of=60), deadline=None)
@given(schemas())
def test_the_order_of_declarations_never_matters(declarations: list[str]) -> None:
    text = "\n".join(declarations)
    assert shape("\n".join(reversed(declarations))).hash == shape(text).hash
    assert Catalog(ir("\n".join(reversed(declarations)))) == Catalog(ir(text))


@settings(max_examples=examples(12, of=60), deadline=None)
@given(schemas())
def test_every_schema_reads_back_from_its_stored_form(declarations: list[str]) -> None:
    stored = ir("\n".join(declarations))
    assert SchemaIR.from_json(json.loads(stored.dumps())) == stored


@settings(max_examples=examples(12, of=60), deadline=None)
@given(schemas())
def test_identities_are_numbered_without_gaps(declarations: list[str]) -> None:
    found = ir("\n".join(declarations))
    numbers = [t.id for t in found.identities.values()]
    numbers += [number for t in found.identities.values() for number in t.properties.values()]
    numbers += [t.incarnation for t in found.identities.values() if t.incarnation is not None]
    assert sorted(numbers) == list(range(1, found.next_identity_id))


@settings(max_examples=examples(20, of=120), deadline=None)
@given(schemas(), schemas())
def test_a_plan_has_no_steps_exactly_when_the_shapes_agree(before: list[str], after: list[str]) -> None:
    old, new = ("\n".join(d).replace('@rename_from("z")', "") for d in (before, after))
    plan = planned(old, new)
    assert (plan.steps == ()) == (shape(old).hash == shape(new).hash)
    assert plan_migration(plan.target, compile_schema(new)).steps == ()


@st.composite
def commented(draw: st.DrawFn) -> str:
    """A small schema with comments and line breaks in unlikely places."""
    words = "\n".join(draw(schemas())).split(" ")
    fillers = st.sampled_from([" ", " ", " ", "\n", "\n\n", " /* c */ ", " // c\n", "\n// c\n", "\n/* c\n c */\n"])
    return "".join(word + draw(fillers) for word in words)


@settings(max_examples=examples(25, of=150), deadline=None)
@given(commented())
def test_formatting_keeps_what_is_said_and_every_comment(text: str) -> None:
    tidy = format_schema(text)
    assert parsed(tidy) == parsed(text)
    assert tidy.count("// c") == text.count("// c")
    assert tidy.count("/* c") == text.count("/* c")
    assert format_schema(tidy) == tidy
