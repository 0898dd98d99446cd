"""How often a one-row write asks an object store, and how many of its requests wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.faults.store import Faults, Request, faulty_store
from tests.sampling import sampled
from tests.stores import S3Server

import omnigraph
from omnigraph import Graph

TYPES = "node Person { name: String @key age: I32? }\nedge Knows: Person -> Person\n"
INSERT = "query q($n: String) { insert Person { name: $n, age: 1 } }"
UPDATE = "query q($n: String) { update Person set { age: 2 } where name = $n }"
DELETE = "query q($n: String) { delete Person where name = $n }"
EDGE = "query q($n: String) { insert Knows { from: $n, to: $n } }"
QUIET = 0.06
"""How long the server waits for more requests of a wave, in seconds."""


@pytest.fixture
def place(s3_server: S3Server) -> Iterator[Faults]:
    with faulty_store(s3_server) as faults:
        yield faults


def warm(place: Faults, others: int = 0) -> Graph:
    """A graph that has been written to, with some more types."""
    types = TYPES + "\n".join(f"node Other{i} {{ name: String @key }}" for i in range(others))
    graph = omnigraph.init(place.store.uri, types, storage_options=place.store.options)
    for name in ("ada", "bo", "cy"):
        graph.mutate(INSERT, {"n": name})
    graph.mutate(EDGE, {"n": "ada"})
    return graph


def requests_of(place: Faults, graph: Graph, text: str, name: str) -> list[Request]:
    place.forget()
    graph.mutate(text, {"n": name})
    return place.journal()


def control(requests: list[Request]) -> list[Request]:
    """All but those for data files of tables, whose number depends on the rows that are looked up."""
    return [request for request in requests if "/data/" not in request.key or "__manifest" in request.key]


@pytest.mark.parametrize("text", sampled([INSERT, UPDATE, DELETE, EDGE], 2))
def test_a_write_takes_at_most_20_requests_and_12_one_after_the_other(place: Faults, text: str) -> None:
    graph = warm(place)
    graph.mutate(INSERT, {"n": "di"})
    graph.mutate(EDGE, {"n": "di"})
    with place.waves(QUIET):
        requests = requests_of(place, graph, text, "eve" if text == INSERT else "di")
    assert len(requests) <= 20
    assert len({request.wave for request in requests}) <= 12


def test_rows_that_this_process_wrote_are_not_read_again(place: Faults) -> None:
    graph = warm(place)
    requests = [request for text in (INSERT, UPDATE, EDGE) for request in requests_of(place, graph, text, "ada")]
    assert not [request for request in requests if request.method == "GET" and "/data/" in request.key]


@pytest.mark.long
def test_they_are_as_many_whatever_the_number_of_commits_and_tables(
    place: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_FOLD", "off")
    graph = warm(place, others=20)
    for turn in range(22):
        graph.mutate(INSERT, {"n": f"p{turn}"})
    for text in (INSERT, UPDATE, EDGE, DELETE):
        assert len(requests_of(place, graph, text, "last")) <= 20


@pytest.mark.long
def test_a_write_to_a_branch_also_reads_the_ref_of_the_branch(place: Faults) -> None:
    graph = warm(place)
    graph.create_branch("dev")
    graph.mutate(INSERT, {"n": "di"}, branch="dev")
    place.forget()
    graph.mutate(INSERT, {"n": "eve"}, branch="dev")
    requests = control(place.journal())
    assert [request.key for request in requests].count("_refs/branches/dev.json") == 2
    assert len(requests) <= 19
