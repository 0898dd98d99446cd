"""Rules that take several rows or tables, on real tables: keys, unique groups, ends of edges, cardinality.

Every test runs four times: values are looked up one by one or by one pass over a column, with and without indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.write.support import Row, base_of, change, indexed, messages, new_graph, put

from omnigraph.errors import ConstraintViolation, KeyConflict
from omnigraph.graph import Graph
from omnigraph.lang.schema.catalog import load_catalog
from omnigraph.storage.stage.lookups import PROBE_LIMIT, is_probed
from omnigraph.write.base import Base
from omnigraph.write.delta import TableDelta
from omnigraph.write.evaluator import read_set, validate

SCHEMA = """
node Person {
  name: String @key
  email: String? @unique
  row: I32?  seat: String?  weight: F64? @unique  size: F32? @unique  active: Bool?  @unique(row, seat)
}
node Base { code: String @key }
edge Knows: Person -> Person { @unique(src, dst) }
edge Leads: Person -> Base @card(1..2) { since: Date? }
"""
CATALOG = load_catalog(SCHEMA)
INDEXES = {
    "node:Person": ["id", "email", "row", "weight"],
    "edge:Knows": ["id", "src"],
    "edge:Leads": ["id", "src"],
}
PERSON, BASE, KNOWS, LEADS = "node:Person", "node:Base", "edge:Knows", "edge:Leads"


def person(name: str, **values: object) -> Row:
    return {"id": name, "name": name, **values}


def base(code: str) -> Row:
    return {"id": code, "code": code}


def edge(name: str, src: str, dst: str) -> Row:
    return {"id": name, "src": src, "dst": dst}


def to(table_key: str, rows: Sequence[Row] = (), deletes: Sequence[str] = (), **how: bool) -> TableDelta:
    return change(CATALOG, table_key, rows, deletes, **how)


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Three people, two bases, and some edges."""
    graph = new_graph(SCHEMA)
    people = [
        person("ada", email="ada@x", row=1, seat="a", weight=0.0, size=0.1),
        person("bob", email="bob@x", row=1, seat="b", weight=-5.5),
        person("cy"),
    ]
    put(
        graph,
        to(PERSON, people),
        to(BASE, [base("alpha"), base("bravo")]),
        to(KNOWS, [edge("k1", "ada", "bob"), edge("k2", "bob", "bob")]),
        to(LEADS, [edge("l1", "ada", "alpha"), edge("l2", "ada", "bravo"), edge("l3", "bob", "alpha")]),
    )
    return graph


@pytest.fixture(scope="module")
def indexed_base(graph: Graph) -> Base:
    return indexed(base_of(graph), INDEXES)


@pytest.fixture(params=[PROBE_LIMIT, 0], ids=["probes", "passes"])
def probe_limit(request: pytest.FixtureRequest) -> int:
    """How many values are looked up one by one; with none, whole columns are read."""
    limit: int = request.param
    return limit


@pytest.fixture(params=["plain", "indexed"])
def found(request: pytest.FixtureRequest, probe_limit: int, graph: Graph, indexed_base: Base) -> Check:
    """What the evaluator has against changes."""
    state = indexed_base if request.param == "indexed" else base_of(graph)
    return lambda *changes: messages(replace(state, probe_limit=probe_limit), *changes)


Check = Callable[..., list[str]]


class TestUnique:
    def test_a_value_that_a_stored_row_has(self, found: Check) -> None:
        [said] = found(to(PERSON, [person("dee", email="ada@x")]))
        assert said == "@unique violation on Person.email: value 'ada@x' held by 'ada' and 'dee'"

    def test_a_row_keeps_its_own_values(self, found: Check) -> None:
        assert found(to(PERSON, [person("ada", email="ada@x", row=1, seat="a", weight=0.0)])) == []

    def test_two_rows_of_one_change(self, found: Check) -> None:
        [said] = found(to(PERSON, [person("x", email="new"), person("y", email="new")]))
        assert "value 'new' held by 'x' and 'y'" in said

    def test_a_value_that_the_change_frees(self, found: Check) -> None:
        assert found(to(PERSON, [person("ada"), person("dee", email="ada@x")])) == []
        swap = [person("ada", email="bob@x"), person("bob", email="ada@x")]
        assert found(to(PERSON, swap)) == []
        assert found(to(PERSON, [person("dee", row=1, seat="b")], ["cy"])) != []

    def test_a_deleted_row_holds_nothing(self, found: Check) -> None:
        gone = to(KNOWS, [], ["k1", "k2"]), to(LEADS, [], ["l3"])
        assert found(to(PERSON, [person("dee", email="bob@x")], ["bob"]), *gone) == []

    def test_nulls_are_exempt(self, found: Check) -> None:
        nobody = [person("x"), person("y"), person("z", row=1), person("zz", row=1), person("zzz", seat="a")]
        assert found(to(PERSON, nobody)) == []

    def test_groups_of_several_columns(self, found: Check) -> None:
        assert found(to(PERSON, [person("x", row=2, seat="a"), person("y", row=1, seat="c")])) == []
        [said] = found(to(PERSON, [person("x", row=1, seat="b"), person("y", row=2, seat="a")]))
        assert said == "@unique violation on Person.(row, seat): value '(1, b)' held by 'bob' and 'x'"

    @pytest.mark.parametrize("zero", [0.0, -0.0])
    def test_zero_has_no_sign(self, found: Check, zero: float) -> None:
        [said] = found(to(PERSON, [person("x", weight=zero)]))
        assert "Person.weight" in said
        [said] = found(to(PERSON, [person("x", size=zero), person("y", size=-zero)]))
        assert "Person.size" in said

    def test_floats_are_compared_as_they_are_stored(self, found: Check) -> None:
        assert len(found(to(PERSON, [person("x", size=0.1)]))) == 1
        assert len(found(to(PERSON, [person("x", weight=-5.5)]))) == 1
        assert found(to(PERSON, [person("x", size=0.2, weight=0.1)])) == []

    def test_an_overwritten_table_has_only_the_new_rows(self, found: Check) -> None:
        kept = to(KNOWS, replaces=True), to(LEADS, replaces=True)
        assert found(to(PERSON, [person("x", email="ada@x")], replaces=True), *kept) == []
        twice = [person("x", email="e"), person("y", email="e")]
        assert len(found(to(PERSON, twice, replaces=True), *kept)) == 1

    def test_ends_of_edges(self, found: Check) -> None:
        [said] = found(to(KNOWS, [edge("k9", "ada", "bob")]))
        assert said == "@unique violation on Knows.(dst, src): value '(bob, ada)' held by 'k1' and 'k9'"
        assert found(to(KNOWS, [edge("k1", "bob", "ada"), edge("k9", "ada", "bob")])) == []


class TestEnds:
    def test_both_ends_exist(self, found: Check) -> None:
        assert found(to(KNOWS, [edge("k9", "ada", "cy")])) == []
        [src, dst] = found(to(KNOWS, [edge("k9", "nobody", "noone")]))
        assert src == "src 'nobody' not found in Person (edge Knows 'k9')"
        assert dst == "dst 'noone' not found in Person (edge Knows 'k9')"

    def test_the_type_of_the_end_counts(self, found: Check) -> None:
        assert len(found(to(LEADS, [edge("l9", "cy", "cy")]))) == 1
        assert len(found(to(LEADS, [edge("l9", "alpha", "alpha")]))) == 1

    def test_nodes_of_the_same_change(self, found: Check) -> None:
        assert found(to(KNOWS, [edge("k9", "new", "ada")]), to(PERSON, [person("new")])) == []
        assert (
            found(to(PERSON, [person("new")], replaces=True), to(KNOWS, replaces=True), to(LEADS, replaces=True))
            == []
        )

    def test_nodes_that_go_in_the_same_change(self, found: Check) -> None:
        assert found(to(PERSON, [], ["cy"])) == []
        [said] = found(to(PERSON, [], ["cy"]), to(KNOWS, [edge("k9", "ada", "cy")]))
        assert "dst 'cy' not found" in said

    def test_edges_that_stay_hold_their_nodes(self, found: Check) -> None:
        said = found(to(PERSON, [], ["bob"]), to(LEADS, [], ["l3"]))
        assert sorted(said) == [
            "dst 'bob' not found in Person (edge Knows 'k1')",
            "dst 'bob' not found in Person (edge Knows 'k2')",
            "src 'bob' not found in Person (edge Knows 'k2')",
        ]

    def test_edges_that_go_or_move_let_them_go(self, found: Check) -> None:
        assert (
            found(to(PERSON, [], ["bob"]), to(LEADS, [], ["l3"]), to(KNOWS, [edge("k1", "ada", "cy")], ["k2"]))
            == []
        )

    def test_an_overwritten_table_loses_what_it_does_not_name(self, found: Check) -> None:
        [said] = found(to(BASE, [base("alpha")], replaces=True))
        assert said == "dst 'bravo' not found in Base (edge Leads 'l2')"
        assert found(to(BASE, [base("alpha"), base("bravo"), base("gulf")], replaces=True)) == []
        assert found(to(BASE, replaces=True), to(LEADS, replaces=True)) == []


class TestCardinality:
    def test_too_many_counting_what_is_there(self, found: Check) -> None:
        assert found(to(LEADS, [edge("l9", "bob", "bravo")])) == []
        [said] = found(to(LEADS, [edge("l9", "ada", "bravo")]))
        assert said == "@card violation on edge Leads: source 'ada' has 3 edges (max 2)"

    def test_too_few(self, found: Check) -> None:
        assert found(to(LEADS, [], ["l1"])) == []
        [said] = found(to(LEADS, [], ["l3"]))
        assert said == "@card violation on edge Leads: source 'bob' has 0 edges (min 1)"

    def test_an_edge_that_moves_leaves_its_source(self, found: Check) -> None:
        assert found(to(LEADS, [edge("l1", "bob", "alpha")])) == []
        [said] = found(to(LEADS, [edge("l3", "cy", "alpha")]))
        assert "source 'bob' has 0 edges (min 1)" in said
        said_of_both = found(to(LEADS, [edge("l3", "ada", "alpha")]))
        assert [text.split(": ")[1] for text in said_of_both] == [
            "source 'ada' has 3 edges (max 2)",
            "source 'bob' has 0 edges (min 1)",
        ]

    def test_a_source_that_goes_is_not_asked(self, found: Check) -> None:
        assert found(to(PERSON, [], ["bob"]), to(KNOWS, [], ["k1", "k2"]), to(LEADS, [], ["l3"])) == []

    def test_sources_without_edges_are_not_asked(self, found: Check) -> None:
        assert found(to(PERSON, [person("new")])) == []

    def test_an_overwritten_table_has_only_the_new_rows(self, found: Check) -> None:
        assert found(to(LEADS, [edge("x", "ada", "alpha"), edge("y", "ada", "bravo")], replaces=True)) == []
        three = [edge(name, "ada", "alpha") for name in "xyz"]
        assert len(found(to(LEADS, three, replaces=True))) == 1

    def test_edges_without_limits_are_not_counted(self, found: Check) -> None:
        assert found(to(KNOWS, [edge("x", "cy", "ada"), edge("y", "cy", "bob"), edge("z", "cy", "cy")])) == []


class TestAppending:
    def test_ids_that_are_there(self, graph: Graph, probe_limit: int) -> None:
        rows = [person("ada"), person("new"), person("bob")]
        with pytest.raises(KeyConflict) as raised:
            validate({PERSON: to(PERSON, rows, strict=True)}, replace(base_of(graph), probe_limit=probe_limit))
        assert (raised.value.table_key, sorted(raised.value.ids), raised.value.total) == (
            PERSON,
            ["ada", "bob"],
            2,
        )

    def test_new_ids(self, graph: Graph, probe_limit: int) -> None:
        state = replace(base_of(graph), probe_limit=probe_limit)
        validate({PERSON: to(PERSON, [person("new")], strict=True)}, state)


@pytest.mark.parametrize(
    ("changes", "total"),
    [
        ([to(PERSON, [person(f"{side}{i}", email=f"e{i}") for side in "xy" for i in range(25)])], 25),
        ([to(KNOWS, [edge(f"e{i}", "ada", f"n{i}") for i in range(25)])], 25),
        ([to(LEADS, [edge(f"{n}{i}", f"n{i}", "alpha") for n in "xyz" for i in range(25)])], 75 + 25),
        ([to(PERSON, [person(f"n{i}", row=i) for i in range(9)]), to(LEADS, [], ["l3"])], 1),
    ],
)
def test_twenty_are_listed_and_all_are_counted(graph: Graph, changes: list[TableDelta], total: int) -> None:
    with pytest.raises(ConstraintViolation) as raised:
        validate({one.table_key: one for one in changes}, base_of(graph))
    assert (len(raised.value.violations), raised.value.total) == (min(total, 20), total)


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ([to(PERSON, [person("x")])], {PERSON}),
        ([to(KNOWS, [edge("x", "ada", "ada")])], {KNOWS, PERSON}),
        ([to(LEADS, [edge("x", "ada", "alpha")])], {LEADS, PERSON, BASE}),
        ([to(LEADS, [], ["l1"])], {LEADS}),
        ([to(BASE, [], ["alpha"])], {BASE, LEADS}),
        ([to(PERSON, [], ["ada"])], {PERSON, KNOWS, LEADS}),
        ([to(BASE, [base("x")], replaces=True)], {BASE, LEADS}),
    ],
)
def test_what_a_change_depends_on(changes: list[TableDelta], read: set[str]) -> None:
    assert read_set({one.table_key: one for one in changes}, CATALOG) == read


class TestProbes:
    """Values are looked up one by one if they are few, or a small part of a large table."""

    @pytest.mark.parametrize(
        ("values", "rows", "probed"),
        [
            (PROBE_LIMIT, 10, True),
            (PROBE_LIMIT + 1, 64 * PROBE_LIMIT, False),
            (PROBE_LIMIT + 1, 64 * (PROBE_LIMIT + 1), True),
            (8 * PROBE_LIMIT + 1, 10**9, False),
        ],
    )
    def test_how_values_are_looked_up(self, values: int, rows: int, probed: bool) -> None:
        assert is_probed(values, rows) == probed

    def test_many_values_are_looked_up_in_slices(self, graph: Graph) -> None:
        small = replace(base_of(graph), probe_limit=2)
        ids = pa.array([*small.scan(PERSON, ["id"])["id"].to_pylist()[:3], "nobody"])
        probes = list(small._probes({"id": ids}))
        assert len(probes) == 2
        found = pa.concat_tables(small.scan(PERSON, ["id"], probe) for probe in probes)
        assert sorted(found["id"].to_pylist()) == sorted(ids.to_pylist()[:3])
