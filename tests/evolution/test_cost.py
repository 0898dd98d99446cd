"""What a change of the schema costs, counted in requests to an object store: as much as it touches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.evolution.cases import CITY, KNOWS, PEOPLE, node
from tests.faults.store import Faults, faulty_store
from tests.sampling import sampled
from tests.stores import S3Server

import omnigraph
from omnigraph import Graph
from omnigraph.manifest.publisher import Change, CommitDraft
from omnigraph.manifest.refs.objects import TRUNK
from omnigraph.storage import layout

MOOD = PEOPLE.replace(" }", "  mood: enum(good, bad)? }")
SCHEMA = f"{MOOD} {CITY} {KNOWS}"
TYPES = ("node:City", "node:Person", "edge:Knows")


@pytest.fixture(scope="module")
def made(s3_server: S3Server) -> Iterator[Faults]:
    """A graph on the S3 server, which keeps a copy of it."""
    with faulty_store(s3_server) as faults:
        graph = omnigraph.init(faults.store.uri, SCHEMA, storage_options=faults.store.options)
        grow(graph, 3)
        graph.load([{"type": "City", "data": {"name": "Rome"}}], mode="append")
        graph.load([{"edge": "Knows", "from": "p0", "to": "p1"}], mode="append")
        faults.save()
        yield faults


@pytest.fixture
def place(made: Faults) -> Faults:
    """The graph as it was made."""
    made.restore()
    return made


def grow(graph: Graph, rows: int, first: int = 0) -> None:
    graph.load([node(name=f"p{first + number}", age=1) for number in range(rows)], mode="append")


def requests_of(place: Faults, schema: str, **options: object) -> list[str]:
    """The keys of all requests for a change of the schema, by a process that has just opened the graph."""
    graph = omnigraph.open(place.store.uri, storage_options=place.store.options)
    place.forget()
    assert graph.apply_schema(schema, **options).commit is not None  # type: ignore[arg-type]
    return [request.key for request in place.journal()]


def tables_in(place: Faults, keys: list[str]) -> set[str]:
    """The tables whose files are among the keys; those of new tables count by the name of their folder."""
    graph = omnigraph.open(place.store.uri, storage_options=place.store.options, read_only=True)
    locations = {pin.location: key for key, pin in graph.snapshot().tables.items()}
    files = [key for key in keys if key.startswith((layout.NODES, layout.EDGES))]
    return {locations.get("/".join(key.split("/")[:2]), key) for key in files}


METADATA = {
    "a description": SCHEMA.replace("node City {", 'node City @description("a place") {'),
    "an enum with more values": SCHEMA.replace("bad)", "bad, odd)"),
    "an index": SCHEMA.replace("mood: enum", "@index(city)  mood: enum"),
    "another name for a type": SCHEMA.replace("node City {", 'node Town @rename_from("City") {'),
}


@pytest.mark.parametrize("schema", METADATA.values(), ids=METADATA)
def test_what_concerns_no_row_touches_no_table(schema: str, place: Faults) -> None:
    assert tables_in(place, requests_of(place, schema)) == set()


ONE_TYPE = {
    "a new property": (SCHEMA.replace(CITY, CITY.replace(" }", "  zip: String? }")), {}, "node:City"),
    "a filled property": (
        SCHEMA.replace(CITY, CITY.replace(" }", "  zip: String }")),
        {"City.zip": "0"},
        "node:City",
    ),
    "another name": (SCHEMA.replace("since: I32?", "met: I32? @rename_from(since)"), {}, "edge:Knows"),
    "a wider property": (SCHEMA.replace("age: I32?", "age: I64?"), {}, "node:Person"),
    "a new rule": (SCHEMA.replace("age: I32?", "age: I32?  @range(age, 0..9)"), {}, "node:Person"),
    "a dropped property": (SCHEMA.replace("born: Date?", ""), {}, "node:Person"),
    "a dropped type": (SCHEMA.replace(KNOWS, ""), {}, None),
}


@pytest.mark.parametrize(("schema", "fill", "table"), sampled(ONE_TYPE.values(), 3))
def test_other_types_are_neither_read_nor_written(
    schema: str, fill: dict[str, object], table: str | None, place: Faults
) -> None:
    assert tables_in(place, requests_of(place, schema, fill=fill)) == ({table} if table else set())


def test_a_new_type_touches_no_table_that_was_there(place: Faults) -> None:
    found = tables_in(place, requests_of(place, f"{SCHEMA} node Pet {{ name: String @key }}"))
    assert not found & set(TYPES)
    assert found == {"node:Pet"}


NAMES = {
    "a property": (
        SCHEMA.replace("age: I32?", "years: I32? @rename_from(age)"),
        SCHEMA.replace("age: I32?", "age: I32? @rename_from(years)"),
    ),
    "a type": (
        SCHEMA.replace("node City {", 'node Town @rename_from("City") {'),
        SCHEMA.replace("node City {", 'node City @rename_from("Town") {'),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(("there", "back"), NAMES.values(), ids=NAMES)
def test_a_new_name_costs_the_same_with_more_rows_and_more_history(there: str, back: str, place: Faults) -> None:
    graph = omnigraph.open(place.store.uri, storage_options=place.store.options)
    counts = [len(requests_of(place, there))]
    requests_of(place, back)
    grow(graph, 2000, first=10)
    counts.append(len(requests_of(place, there)))
    requests_of(place, back)
    for _ in range(20):
        graph._repository.manifest.publish(TRUNK.ref, Change(), {}, CommitDraft("load"))
    counts.append(len(requests_of(place, there)))
    assert counts[0] == counts[1] == counts[2]
