"""Filling the vectors of an existing graph, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.write.support import base_of, new_graph, stored

from omnigraph.bulk.embed.requests import EmbedCounts
from omnigraph.bulk.runner import JobEvent
from omnigraph.embed.client import Role, Vectors
from omnigraph.embed.mock import MockClient
from omnigraph.errors import EmbeddingUnavailable, JobCancelled, NotOnSpark, RequestError
from omnigraph.failpoints import armed
from omnigraph.graph import Graph
from omnigraph.read.limits import Cancellation

SCHEMA = """
node Doc {
  slug: String @key  title: String?  body: String?  raw: Blob?
  meaning: Vector(4)? @embed("title")  gist: Vector(3)? @embed("body")
}
node Note { slug: String @key  text: String  sense: Vector(4)? @embed("text", model="mock") }
node Plain { slug: String @key }
edge Cites: Doc -> Doc
"""
GIVEN = [1.0, 0.0, 0.0, 0.0]
RECORDS: list[dict[str, Any]] = [
    {"type": "Doc", "data": {"slug": "a", "title": "Engines", "body": "of all kinds", "raw": "base64:AAAA"}},
    {"type": "Doc", "data": {"slug": "b", "title": "Motors", "meaning": GIVEN}},
    {"type": "Doc", "data": {"slug": "c"}},
    {"type": "Doc", "data": {"slug": "d", "meaning": GIVEN, "body": "Engines"}},
    {"type": "Note", "data": {"slug": "n", "text": "Engines"}},
    {"edge": "Cites", "from": "a", "to": "b"},
]


class Counting(MockClient):
    """The mock, remembering what it was asked, under any name."""

    def __init__(self, model: str = "mock") -> None:
        self.asked: list[str] = []
        self._model = model

    @property
    def model(self) -> str:
        return self._model

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        assert role == "document"
        self.asked += texts
        return super().embed(texts, dimension, role)


def without_vectors(monkeypatch: pytest.MonkeyPatch, client: MockClient) -> Graph:
    """A graph that was loaded before there was a provider, in the hands of somebody who has one."""
    for name in ("OMNIGRAPH_EMBED_PROVIDER", "OMNIGRAPH_EMBEDDINGS_MOCK", "OMNIGRAPH_EMBED_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    graph = new_graph(SCHEMA)
    with pytest.warns(UserWarning, match="stayed null"):
        graph.load(RECORDS, mode="append")
    return Graph(graph._repository, embedder=client)


@pytest.fixture
def client() -> Counting:
    return Counting()


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch, client: Counting) -> Graph:
    return without_vectors(monkeypatch, client)


def vectors(graph: Graph, table_key: str, name: str, branch: str = "main") -> dict[str, list[float] | None]:
    return {row["slug"]: row[name] for row in stored(graph, table_key, "slug", name, branch=branch)}


def of(text: str, dimension: int = 4) -> list[float]:
    found: list[float] = MockClient().embed([text], dimension, "document")[0].tolist()
    return found


def test_what_is_missing_is_filled_and_nothing_else_changes(graph: Graph, client: Counting) -> None:
    before = stored(graph, "node:Doc")
    done = graph.embed(actor="ada")
    assert done.counts == {
        "Doc.gist": EmbedCounts(2, 0, 2),
        "Doc.meaning": EmbedCounts(1, 2, 1),
        "Note.sense": EmbedCounts(1, 0, 0),
    }
    assert (done.embedded, done.engine, done.model) == (4, "local", "mock")
    assert done.commit is not None
    assert (done.commit.kind, done.commit.actor_id) == ("embed", "ada")
    assert vectors(graph, "node:Doc", "meaning") == {"a": of("Engines"), "b": GIVEN, "c": None, "d": GIVEN}
    assert vectors(graph, "node:Doc", "gist")["d"] == of("Engines", 3)
    assert vectors(graph, "node:Note", "sense") == {"n": of("Engines")}
    after = stored(graph, "node:Doc")
    for row in (*before, *after):
        row.pop("meaning")
        row.pop("gist")
    assert after == before
    assert [commit.kind for commit in graph.commits()] == ["embed", "load", "init"]
    again = graph.embed()
    assert (again.commit, again.embedded) == (None, 0)
    assert again.counts["Doc.meaning"] == EmbedCounts(0, 3, 1)
    assert client.asked == ["of all kinds", "Engines", "Engines"], "the third one has another dimension"


def test_all_of_it_again(graph: Graph) -> None:
    done = graph.embed(reembed=True, types=["Doc"])
    assert done.counts == {"Doc.gist": EmbedCounts(2, 0, 2), "Doc.meaning": EmbedCounts(2, 1, 1)}
    assert vectors(graph, "node:Doc", "meaning") == {
        "a": of("Engines"),
        "b": of("Motors"),
        "c": None,
        "d": GIVEN,
    }
    assert vectors(graph, "node:Note", "sense") == {"n": None}


def test_one_property_of_one_branch(graph: Graph) -> None:
    graph.create_branch("b")
    done = graph.embed(branch="b", properties=["gist"])
    assert done.counts == {"Doc.gist": EmbedCounts(2, 0, 2)}
    assert vectors(graph, "node:Doc", "meaning", "b")["a"] is None
    assert vectors(graph, "node:Doc", "gist", "b")["a"] == of("of all kinds", 3)
    assert vectors(graph, "node:Doc", "gist")["a"] is None


def test_an_update_is_seen_as_one(graph: Graph) -> None:
    def row_ids() -> dict[str, int]:
        base = base_of(graph)
        rows = base.repository.tables.scan(base.ref("node:Doc"), ["slug"], row_ids=True).read_all().to_pylist()
        return {row["slug"]: row["_rowid"] for row in rows}

    before = row_ids()
    graph.embed()
    assert row_ids() == before
    assert graph.snapshot().tables["node:Doc"].row_count == len(before)


def test_somebody_else_is_faster(graph: Graph, client: Counting) -> None:
    other = Graph(graph._repository)
    changed: list[int] = []

    def interfere() -> None:
        if not changed:
            changed.append(1)
            other.mutate('query q() { update Note set { text: "Motors" } where slug = "n" }')

    with pytest.warns(UserWarning, match="stayed null"), armed("write.after_stage", interfere):
        done = graph.embed()
    assert done.embedded == 4
    assert vectors(graph, "node:Note", "sense") == {"n": of("Motors")}
    assert client.asked.count("of all kinds") == 1, "what was computed for the first attempt is not paid for again"


def test_names_that_are_not_there(graph: Graph) -> None:
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"types": ["Dok"]}, "there is no node type 'Dok'; did you mean `Doc`"),
        ({"types": ["Plain"]}, "Plain has no vector with @embed"),
        ({"properties": ["meanin"]}, "called 'meanin'; did you mean `meaning`"),
        ({"types": ["Note"], "properties": ["gist"]}, "@embed property of Note called 'gist'"),
        ({"engine": "quick"}, "'quick' is no engine; there are auto, local, spark"),
    ]
    for options, reason in refusals:
        with pytest.raises(RequestError, match=reason):
            graph.embed(**options)


def test_somebody_has_to_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = without_vectors(monkeypatch, Counting("maxi"))
    with pytest.raises(EmbeddingUnavailable, match=r"Note\.sense is computed by model mock.* is maxi"):
        graph.embed()
    assert graph.embed(types=["Doc"]).model == "maxi"
    with pytest.raises(
        EmbeddingUnavailable, match="no embedding provider is configured; set OMNIGRAPH_EMBED_PROV"
    ):
        Graph(graph._repository).embed()


def test_listening_and_cancelling(graph: Graph) -> None:
    events: list[JobEvent] = []
    graph.embed(types=["Note"], listener=events.append)
    assert [(event.step, event.rows) for event in events] == [("embedding", 1)]
    cancelled = Cancellation()
    cancelled.cancel()
    with pytest.raises(JobCancelled):
        graph.embed(cancellation=cancelled)
    assert [commit.kind for commit in graph.commits()] == ["embed", "load", "init"]


def test_not_on_spark(graph: Graph) -> None:
    with pytest.raises(NotOnSpark, match="a graph in memory"):
        graph.embed(engine="spark")
