"""The catalog: an accepted schema, arranged for looking things up."""

from __future__ import annotations

import datetime as dt

import pytest
from tests.lang.schema.support import ir

from omnigraph.lang.schema.catalog import Catalog, Range, load_catalog
from omnigraph.lang.schema.identity import resolve_identities
from omnigraph.lang.schema.resolve import compile_schema
from omnigraph.lang.schema.shape import EmbedShape

ZOO = """
interface Named { label: String @index }
node Zoo @description("a place") implements Named {
  code: String
  town: String
  area: F64?
  photo: Blob?
  vector: Vector(3)? @embed(code, model="m")
  @key(town, code)
  @unique(area, label)
  @range(area, 0..)
  @range(area, ..9)
  @check(code, "^z")
  @check(code, "9$")
}
node Ape {}
edge LivesIn: Ape -> Zoo @card(1..2) { since: Date @unique(src) @index(dst, since) }
edge Knows: Ape -> Ape
"""


@pytest.fixture(scope="module")
def zoo() -> Catalog:
    return load_catalog(ZOO)


def test_a_node_type(zoo: Catalog) -> None:
    node = zoo.nodes["Zoo"]
    assert node.table_key == "node:Zoo"
    assert node.implements == ("Named",)
    assert node.columns == ("id", "area", "code", "label", "photo", "town", "vector")
    assert node.key == ("code", "town")
    assert node.uniques == (("area", "label"),)
    assert node.indexes == (("label",), ("code", "town"))
    assert node.ranges == (Range("area", None, 9.0), Range("area", 0.0, None))
    assert node.checks == {"code": ("9$", "^z")}
    assert node.embeds == {"vector": EmbedShape("code", "m")}
    assert node.blobs == {"photo"}
    assert [a.value for a in node.annotations] == ["a place"]


def test_an_edge_type(zoo: Catalog) -> None:
    edge = zoo.edges["LivesIn"]
    assert edge.table_key == "edge:LivesIn"
    assert edge.columns == ("id", "src", "dst", "since")
    assert (edge.source, edge.target, edge.symmetric) == ("Ape", "Zoo", False)
    assert (edge.minimum, edge.maximum) == (1, 2)
    assert edge.uniques == (("src",),)
    assert edge.indexes == (("dst", "since"),)
    assert zoo.edges["Knows"].symmetric
    assert (zoo.edges["Knows"].minimum, zoo.edges["Knows"].maximum) == (0, None)


@pytest.mark.parametrize("spelling", ["LivesIn", "livesIn", "livesin", "LIVESIN"])
def test_edges_are_found_whatever_the_letter_case(zoo: Catalog, spelling: str) -> None:
    assert zoo.edge(spelling) is zoo.edges["LivesIn"]


def test_unknown_edges_are_not_found(zoo: Catalog) -> None:
    assert zoo.edge("lives") is None


def test_interfaces_are_no_node_types(zoo: Catalog) -> None:
    assert list(zoo.interfaces) == ["Named"]
    assert list(zoo.nodes) == ["Ape", "Zoo"]


def test_the_edges_that_touch_a_node_type(zoo: Catalog) -> None:
    touching = {name: [e.name for e in edges] for name, edges in zoo.incident.items()}
    assert touching == {"Ape": ["Knows", "LivesIn"], "Zoo": ["LivesIn"]}


def test_edge_names_as_queries_write_them(zoo: Catalog) -> None:
    assert zoo.edge_spellings == ["knows", "livesIn"]


def test_catalogs_of_one_schema_are_equal(zoo: Catalog) -> None:
    assert zoo == load_catalog("// another file\n" + ZOO)
    assert hash(zoo) == hash(load_catalog("// another file\n" + ZOO))
    assert zoo != load_catalog(ZOO.replace("1..2", "1..3"))
    assert repr(zoo).startswith("Catalog(2 nodes, 2 edges, sha256:")


class TestNodeIds:
    def test_a_single_key_is_its_own_text(self) -> None:
        node = load_catalog("node Day { date: Date @key }").nodes["Day"]
        assert node.id_of({"date": dt.date(2024, 1, 1)}) == "19723"

    def test_a_composite_key_is_an_array_in_alphabetical_order(self) -> None:
        node = load_catalog("node Seat { number: I32  airline: String  @key(number, airline) }").nodes["Seat"]
        assert node.id_of({"number": 7, "airline": "acme"}) == '["acme","7"]'

    def test_a_renamed_key_keeps_its_place(self) -> None:
        accepted = ir("node Seat { number: I32  airline: String  @key(number, airline) }")
        renamed = compile_schema(
            'node Seat { number: I32  zairline: String @rename_from("airline")  @key(number, zairline) }'
        )
        node = Catalog(resolve_identities(renamed, accepted)).nodes["Seat"]
        assert node.key == ("zairline", "number")
        assert node.id_of({"number": 7, "zairline": "acme"}) == '["acme","7"]'

    def test_a_missing_part_has_no_id(self) -> None:
        node = load_catalog("node Seat { number: I32  airline: String  @key(number, airline) }").nodes["Seat"]
        with pytest.raises(ValueError, match="null"):
            node.id_of({"number": 7})
