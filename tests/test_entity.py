"""One node or edge by its type and id, from Python and from the command line."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from tests.cli.command import omnigraph as run_command
from tests.stores import Store

import omnigraph
from omnigraph.errors import InvalidArgument, RequestError, SnapshotNotFound

SCHEMA = """
node Person { name: String @key  born: Date?  seen: DateTime?  tags: [String]?  photo: Blob?  height: F64? }
node Likes { what: String? }
edge Knows: Person -> Person { since: Date? }
edge Likes: Person -> Likes
"""
ADA = {"name": "Ada", "born": "1815-12-10", "seen": "2024-02-29T13:05:06Z", "tags": ["a"], "photo": "base64:AAEC"}
KNOWS = {"edge": "Knows", "from": "Ada", "to": "Bo", "data": {"since": "2020-01-01"}}


@pytest.fixture
def graph(local_store: Store) -> omnigraph.Graph:
    graph = omnigraph.init(local_store.uri, SCHEMA)
    people = [{"type": "Person", "data": ADA}, {"type": "Person", "data": {"name": "Bo"}}]
    graph.load([*people, KNOWS], mode="append")
    return graph


def test_all_properties_as_python_values(graph: omnigraph.Graph) -> None:
    assert graph.entity("Person", "Ada") == {
        "id": "Ada",
        "born": dt.date(1815, 12, 10),
        "height": None,
        "name": "Ada",
        "photo": b"\x00\x01\x02",
        "seen": dt.datetime(2024, 2, 29, 13, 5, 6, tzinfo=dt.UTC),
        "tags": ["a"],
    }


def test_an_edge_has_its_ends(graph: omnigraph.Graph) -> None:
    pin = graph.snapshot().tables["edge:Knows"]
    (edge_id,) = graph._repository.tables.scan(pin.ref, ["id"]).read_all()["id"].to_pylist()
    found = graph.entity("Knows", edge_id)
    assert found == {"id": edge_id, "src": "Ada", "dst": "Bo", "since": dt.date(2020, 1, 1)}
    assert graph.entity("knows", edge_id) == found


@pytest.mark.parametrize("name", ["Zoe", "", "Ada'; --", "ada"])
def test_what_is_not_there_is_none(graph: omnigraph.Graph, name: str) -> None:
    assert graph.entity("Person", name) is None
    assert graph.entity("node:Likes", name) is None


def test_older_states_and_branches(graph: omnigraph.Graph) -> None:
    before = graph.commits()[0].graph_commit_id
    graph.create_branch("dev")
    graph.mutate('query q() { update Person set { height: 1.65 } where name = "Ada" }', branch="dev")

    def height(**where: object) -> object:
        found = graph.entity("Person", "Ada", **where)  # type: ignore[arg-type]
        return None if found is None else found["height"]

    assert (height(), height(branch="dev"), height(at=before)) == (None, 1.65, None)
    assert graph.entity("Person", "Ada", at=1) is None
    with pytest.raises(SnapshotNotFound):
        height(at="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(InvalidArgument, match="is a state by itself; leave out branch 'dev'"):
        height(branch="dev", at=before)


def test_types_are_named_as_elsewhere(graph: omnigraph.Graph) -> None:
    with pytest.raises(RequestError, match="there is no type 'Persn'; did you mean `Person`"):
        graph.entity("Persn", "Ada")
    with pytest.raises(
        RequestError, match="'Likes' is a node type and an edge type; write node:Likes or edge:Likes"
    ):
        graph.entity("Likes", "x")
    with pytest.raises(InvalidArgument, match="'id'"):
        graph.entity("Person", 7)  # type: ignore[arg-type]


def test_the_command(graph: omnigraph.Graph) -> None:
    ran = run_command("entity", "Person", "Ada", "--store", graph.address, "--json")
    assert json.loads(ran.out) == {
        "type": "Person",
        "id": "Ada",
        **ADA,
        "seen": "2024-02-29T13:05:06.000Z",
        "height": None,
    }
    ran = run_command("entity", "Person", "Bo", "--store", graph.address)
    assert (ran.code, "name" in ran.out, "Bo" in ran.out) == (0, True, True)
    ran = run_command("entity", "Person", "Zoe", "--store", graph.address)
    assert (ran.code != 0, "there is no Person with id 'Zoe'" in ran.err) == (True, True)
