"""What interfaces bring to the nodes that implement them."""

from __future__ import annotations

import pytest
from tests.lang.schema.support import places, shape

from omnigraph.lang.schema.catalog import load_catalog


def test_a_missing_property_is_brought_with_all_its_annotations() -> None:
    text = """
    interface Doc {
      title: String @unique @description("what it says on the cover")
      vector: Vector(3)? @embed(title, model="m") @index
    }
    node Book implements Doc { isbn: String @key }
    """
    book = load_catalog(text).nodes["Book"]
    assert list(book.properties) == ["isbn", "title", "vector"]
    assert book.uniques == (("title",),)
    assert book.indexes == (("vector",), ("isbn",))
    assert book.embeds["vector"].source == "title"
    assert [a.name for a in book.properties["title"].annotations] == ["description"]


def test_an_interface_may_bring_the_key() -> None:
    assert load_catalog("interface Keyed { k: String @key } node N implements Keyed {}").nodes["N"].key == ("k",)


def test_a_redeclared_property_keeps_only_its_own_annotations() -> None:
    text = "interface Named { label: String @index } node City implements Named { label: String }"
    assert load_catalog(text).nodes["City"].indexes == ()


def test_an_interface_named_twice_counts_once() -> None:
    assert shape("interface I { a: I32 } node N implements I, I {}").nodes[0].implements == ("I",)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("String", "String"),
        ("String @index @unique", "String @unique @index"),
        ("enum(a, b)", "enum(b, a)"),
        ("String @foo(x)", 'String @foo("x")'),
        ('String @foo("x", a=1, b=2)', 'String @foo("x", b=2, a=1)'),
        ('Vector(3) @embed("t")', "Vector(3) @embed(t)"),
        ('String @rename_from("old")', "String"),
    ],
)
def test_two_interfaces_may_bring_the_same_property(first: str, second: str) -> None:
    text = f"interface I {{ p: {first} }} interface J {{ p: {second} }} node N implements I, J {{ t: String }}"
    found = shape(text).nodes[0].property("p")
    assert found is not None
    assert found.satisfies == ("I", "J")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("String", "String?"),
        ("String", "String @index"),
        ("String @foo(1)", "String @foo(true)"),
        ('Vector(3) @embed("t")', 'Vector(3) @embed("t", model="m")'),
    ],
)
def test_two_interfaces_may_not_bring_different_properties_of_one_name(first: str, second: str) -> None:
    text = f"interface I {{ p: {first} }}\ninterface J {{ p: {second} }}\nnode N implements I, J {{ t: String }}"
    assert places(text) == ["C207 3:22"]


def test_declaring_the_property_settles_a_disagreement_about_annotations() -> None:
    text = "interface I { p: String } interface J { p: String @index } node N implements I, J { p: String }"
    assert places(text) == []


def test_a_mistake_in_an_interface_is_reported_once_however_many_nodes_implement_it() -> None:
    text = 'interface I { p: String @description("") }\nnode A implements I {}\nnode B implements I {}'
    assert places(text) == ["S111 1:25"]


def test_the_source_of_an_embedding_may_come_from_the_node() -> None:
    interface = 'interface I { v: Vector(3)? @embed("title") }'
    assert places(f"{interface}\nnode A implements I {{ title: String }}") == []
    assert places(f"{interface}\nnode A implements I {{ name: String }}") == ["S113 1:29"]
