"""The grammar of .pg schemas, rule by rule."""

from __future__ import annotations

from typing import TypeVar

import pytest
from tests.lang.schema.support import parsed, problems

from omnigraph.lang.schema.syntax import (
    Annotation,
    CardinalitySyntax,
    ConstraintArgument,
    ConstraintSyntax,
    Declaration,
    EdgeSyntax,
    InterfaceSyntax,
    Literal,
    NodeSyntax,
    PropertySyntax,
    RangeArgument,
    TypeSyntax,
)
from omnigraph.lang.source import Name
from omnigraph.lang.values import MAX_VECTOR, Scalar

_D = TypeVar("_D", bound=Declaration)


def only(kind: type[_D], text: str) -> _D:
    """The one declaration of a text."""
    [declaration] = parsed(text)
    assert isinstance(declaration, kind)
    return declaration


def prop(text: str) -> PropertySyntax:
    """The one property of a node with this body."""
    [found] = only(NodeSyntax, f"node N {{ {text} }}").properties
    return found


def annotation(text: str) -> Annotation:
    """The one annotation, written behind a property."""
    [found] = prop(f"p: String {text}").annotations
    return found


def constraint(text: str) -> ConstraintSyntax:
    """The one constraint of a node with this body."""
    [found] = only(NodeSyntax, f"node N {{ {text} }}").constraints
    return found


class TestDeclarations:
    def test_an_empty_file_is_an_empty_schema(self) -> None:
        assert parsed("") == parsed(" \n// nothing yet\n") == ()

    def test_the_order_of_declarations_is_free(self) -> None:
        kinds = [type(d) for d in parsed("edge E: A -> A node A implements I {} interface I {}")]
        assert kinds == [EdgeSyntax, NodeSyntax, InterfaceSyntax]

    def test_an_interface_has_properties(self) -> None:
        found = only(InterfaceSyntax, "interface Named { label: String @index }")
        assert found.name == Name("Named")
        assert found.properties == (
            PropertySyntax(Name("label"), TypeSyntax(Scalar.STRING), (Annotation(Name("index")),)),
        )

    def test_a_node_has_annotations_then_interfaces_then_a_body(self) -> None:
        found = only(NodeSyntax, 'node City @foo @bar("x") implements Named, Placed { code: String @key(code) }')
        assert [a.name.text for a in found.annotations] == ["foo", "bar"]
        assert [n.text for n in found.implements] == ["Named", "Placed"]
        assert [p.name.text for p in found.properties] == ["code"]
        assert found.constraints == (ConstraintSyntax("key", (Name("code"),)),)

    def test_a_node_body_may_be_empty_but_not_missing(self) -> None:
        assert only(NodeSyntax, "node A {}").members == ()
        assert problems("node A") == ["P001 1:7 expected `{`, found the end of the file"]

    def test_an_edge_has_endpoints_cardinality_annotations_and_a_body(self) -> None:
        found = only(EdgeSyntax, "edge Knows: Person -> Dog @card(1..3) @foo { since: Date @unique(src, dst) }")
        assert (found.source, found.target) == (Name("Person"), Name("Dog"))
        assert found.cardinality == CardinalitySyntax(1, 3)
        assert [a.name.text for a in found.annotations] == ["foo"]
        assert [p.name.text for p in found.properties] == ["since"]
        assert found.constraints == (ConstraintSyntax("unique", (Name("src"), Name("dst"))),)

    def test_an_edge_needs_no_body(self) -> None:
        assert only(EdgeSyntax, "edge Knows: A -> B").members == only(EdgeSyntax, "edge Knows: A -> B {}").members

    @pytest.mark.parametrize(
        ("card", "bounds"), [("0..", (0, None)), ("2..2", (2, 2)), ("0..4294967295", (0, 2**32 - 1))]
    )
    def test_cardinalities(self, card: str, bounds: tuple[int, int | None]) -> None:
        found = only(EdgeSyntax, f"edge E: A -> B @card({card})").cardinality
        assert found == CardinalitySyntax(*bounds)

    def test_a_bare_card_is_an_unknown_annotation(self) -> None:
        found = only(EdgeSyntax, "edge E: A -> B @card")
        assert found.cardinality is None
        assert found.annotations == (Annotation(Name("card")),)

    def test_spans_cover_what_was_written(self) -> None:
        text = "node A { x: [I32]? @foo }  edge E: A -> A @card(0..1)"
        node, edge = parsed(text)
        assert isinstance(node, NodeSyntax)
        assert isinstance(edge, EdgeSyntax)
        assert edge.cardinality is not None
        [x] = node.properties
        spans = (node.span, x.span, x.type.span, x.annotations[0].span, edge.cardinality.span)
        assert [text[s.start : s.end] for s in spans] == [
            "node A { x: [I32]? @foo }",
            "x: [I32]? @foo",
            "[I32]?",
            "@foo",
            "@card(0..1)",
        ]


class TestKeywords:
    def test_keywords_are_ordinary_names(self) -> None:
        text = "node: String edge: I32 interface: Bool implements: Date enum: String true: F64"
        found = only(NodeSyntax, f"node Node {{ {text} }}")
        assert [p.name.text for p in found.properties] == [
            "node",
            "edge",
            "interface",
            "implements",
            "enum",
            "true",
        ]

    @pytest.mark.parametrize("text", ["nodeA {}", "node A implementsB {}", "interfaceI {}"])
    def test_keywords_end_where_words_end(self, text: str) -> None:
        assert [p.split()[0] for p in problems(text)] == ["P001"]


class TestTypes:
    @pytest.mark.parametrize("scalar", list(Scalar))
    def test_every_scalar_alone_and_nullable(self, scalar: Scalar) -> None:
        assert prop(f"p: {scalar.value}").type == TypeSyntax(scalar)
        assert prop(f"p: {scalar.value}?").type == TypeSyntax(scalar, nullable=True)

    @pytest.mark.parametrize("scalar", [s for s in Scalar if s is not Scalar.BLOB])
    def test_lists_of_every_scalar_but_blob(self, scalar: Scalar) -> None:
        assert prop(f"p: [{scalar.value}]").type == TypeSyntax(scalar, is_list=True)

    def test_vectors(self) -> None:
        assert prop("p: Vector(3)").type == TypeSyntax(Scalar.F32, dimension=3)
        assert prop(f"p: Vector({MAX_VECTOR})?").type == TypeSyntax(
            Scalar.F32, dimension=MAX_VECTOR, nullable=True
        )

    def test_enum_values_are_letters_digits_underscores_and_dashes(self) -> None:
        members = prop("p: enum(b, A, 2nd-class, _x, 007, -, true, enum)").type.members
        assert members is not None
        assert [m.text for m in members] == ["b", "A", "2nd-class", "_x", "007", "-", "true", "enum"]

    def test_an_enum_means_a_sorted_set(self) -> None:
        assert str(prop("p: enum(b, a, C)?").type.resolve()) == "enum(C, a, b)?"

    @pytest.mark.parametrize("written", ["enum(a b)", "enum(a, )", "enum()", "enum(a.b)", "enum"])
    def test_malformed_enums(self, written: str) -> None:
        assert [p.split()[0] for p in problems(f"node N {{ p: {written} }}")] == ["P001"]


class TestAnnotations:
    def test_without_a_value(self) -> None:
        assert annotation("@foo") == Annotation(Name("foo"))

    @pytest.mark.parametrize(
        ("written", "stored"),
        [
            ('"x y"', "x y"),
            ("5", "5"),
            ("007", "7"),
            ("2.50", "2.50"),
            ("true", "true"),
            ("word", "word"),
        ],
    )
    def test_the_value_is_kept_as_text(self, written: str, stored: str) -> None:
        assert annotation(f"@foo({written})").value_text == stored

    def test_with_options(self) -> None:
        found = annotation('@foo("x", b=2, a="y")')
        assert found.options == ((Name("b"), Literal(2)), (Name("a"), Literal("y")))

    @pytest.mark.parametrize("written", ["@", "@Foo", "@foo()", '@foo("x", "y")', "@foo(x, k=v)", "@foo(Type)"])
    def test_malformed_annotations(self, written: str) -> None:
        assert [p.split()[0] for p in problems(f"node N {{ p: String {written} }}")] == ["P001"]


class TestConstraints:
    @pytest.mark.parametrize("kind", ["key", "unique", "index"])
    def test_columns(self, kind: str) -> None:
        assert constraint(f"@{kind}(b, a)") == ConstraintSyntax(kind, (Name("b"), Name("a")))

    def test_a_constraint_on_a_property_s_line_is_a_constraint_of_the_body(self) -> None:
        found = only(NodeSyntax, "node N { age: I32 @foo @range(age, 0..9) }")
        assert [a.name.text for a in found.properties[0].annotations] == ["foo"]
        assert [c.kind for c in found.constraints] == ["range"]

    @pytest.mark.parametrize(
        ("written", "bounds"),
        [
            ("0..9", RangeArgument(Literal(0), Literal(9))),
            ("-5..-1.5", RangeArgument(Literal(-5), Literal(-1.5))),
            ("0.5..", RangeArgument(Literal(0.5), None)),
            ("..9", RangeArgument(None, Literal(9))),
            ("..-9", RangeArgument(None, Literal(-9))),
            ("5", Literal(5)),
            ('"text"', Literal("text")),
            ("true", Literal(True)),
            ("word", Name("word")),
        ],
    )
    def test_arguments(self, written: str, bounds: ConstraintArgument) -> None:
        assert constraint(f"@range(p, {written})").arguments[1] == bounds

    @pytest.mark.parametrize("written", ["@key()", "@range(p, ..)", "@range(p, -5)", "@range(p, -)"])
    def test_malformed_constraints(self, written: str) -> None:
        assert [p.split()[0] for p in problems(f"node N {{ p: I32\n{written} }}")] == ["P001"]

    def test_a_body_has_five_kinds_of_constraints_and_no_annotations(self) -> None:
        assert problems("node N { @sort(p) }") == ["P001 1:10 `@sort` is not a constraint"]

    def test_numbers_do_not_run_into_words(self) -> None:
        assert problems("node N { p: I32 @range(p, 0..9kg) }") == ["P001 1:31 a number runs into the word `kg`"]


def test_trees_are_equal_when_they_say_the_same() -> None:
    assert parsed("node A{x:I32@foo(1)}") == parsed("node A {\n  x: I32  @foo( 1 ) // note\n}")
