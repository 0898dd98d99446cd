"""Vectors that are computed on write: the mock client itself, and who gets which vector when."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
import pytest
from tests.write.support import new_graph, stored

from omnigraph.embed.client import Role, Vectors, configured_client
from omnigraph.embed.mock import MockClient
from omnigraph.embed.variables import MOCK, PROVIDER
from omnigraph.errors import EmbeddingUnavailable
from omnigraph.graph import Graph

SCHEMA = """
node Doc { slug: String @key  title: String?  note: String?  meaning: Vector(4)? @embed("title") }
node Strict { slug: String @key  title: String?  meaning: Vector(4) @embed("title") }
"""
MASK = 2**64 - 1


def by_hand(text: str, dimension: int) -> list[float]:
    """The mock's vector of a text, by its definition and without arrays."""
    state = 0xCBF29CE484222325
    for byte in text.encode():
        state = (state ^ byte) * 0x100000001B3 & MASK
    components = []
    for _ in range(dimension):
        state ^= state << 13 & MASK
        state ^= state >> 7
        state ^= state << 17 & MASK
        components.append(2 * (state / MASK) - 1)
    length = math.sqrt(sum(component**2 for component in components))
    return [component / length for component in components]


def vector_of(graph: Graph, slug: str, table_key: str = "node:Doc") -> list[float] | None:
    [found] = [row["meaning"] for row in stored(graph, table_key, "slug", "meaning") if row["slug"] == slug]
    return None if found is None else [float(component) for component in found]


def close(text: str) -> object:
    return pytest.approx(by_hand(text, 4), abs=1e-6)


class Counting(MockClient):
    """The mock, remembering what it was asked."""

    def __init__(self, model: str = "mock") -> None:
        self.asked: list[str] = []
        self.roles: set[Role] = set()
        self._model = model

    @property
    def model(self) -> str:
        return self._model

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        self.asked += texts
        self.roles.add(role)
        return super().embed(texts, dimension, role)


class TestMock:
    @pytest.mark.parametrize("text", ["", "a", "Engines", "é \U0001f600", "x" * 10_000])
    @pytest.mark.parametrize("dimension", [1, 2, 4, 384])
    def test_vectors_are_as_defined(self, text: str, dimension: int) -> None:
        [vector] = MockClient().embed([text], dimension, "document")
        assert vector.dtype == np.float32
        assert vector.tolist() == pytest.approx(by_hand(text, dimension), abs=1e-6)
        assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-5)

    def test_one_vector_per_text(self) -> None:
        together = MockClient().embed(["a", "b", "a"], 8, "query")
        assert together.shape == (3, 8)
        assert together[0].tolist() == together[2].tolist() != together[1].tolist()
        assert MockClient().embed([], 8, "document").shape == (0, 8)


class TestConfigured:
    @pytest.mark.parametrize(
        ("name", "value"), [(PROVIDER, "mock"), (PROVIDER, " MOCK "), (MOCK, "1"), (MOCK, "true")]
    )
    def test_the_mock(self, name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(name, value)
        assert isinstance(configured_client(), MockClient)

    @pytest.mark.parametrize("value", ["", " "])
    def test_none(self, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(PROVIDER, value)
        assert configured_client() is None

    def test_one_that_does_not_exist(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(PROVIDER, "oracle")
        with pytest.raises(EmbeddingUnavailable, match="OMNIGRAPH_EMBED_PROVIDER=oracle"):
            configured_client()

    def test_a_graph_asks_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(PROVIDER, "mock")
        graph = new_graph(SCHEMA)
        graph.mutate('query q() { insert Doc { slug: "a", title: "Engines" } }')
        assert vector_of(graph, "a") == close("Engines")


class TestWriting:
    @pytest.fixture
    def client(self) -> Counting:
        return Counting()

    @pytest.fixture
    def graph(self, client: Counting) -> Graph:
        return new_graph(SCHEMA, client)

    def test_what_is_not_brought_is_computed(self, graph: Graph, client: Counting) -> None:
        graph.load(
            [
                {"type": "Doc", "data": {"slug": "a", "title": "Engines"}},
                {"type": "Doc", "data": {"slug": "b", "title": "Engines", "meaning": [1, 0, 0, 0]}},
                {"type": "Doc", "data": {"slug": "c"}},
                {"type": "Doc", "data": {"slug": "d", "title": "Motors", "meaning": None}},
            ],
            mode="append",
        )
        assert vector_of(graph, "a") == close("Engines")
        assert vector_of(graph, "b") == [1, 0, 0, 0]
        assert vector_of(graph, "c") is None
        assert vector_of(graph, "d") == close("Motors")
        assert client.asked == ["Engines", "Motors"]
        assert client.roles == {"document"}

    def test_a_vector_of_an_insert_is_kept(self, graph: Graph, client: Counting) -> None:
        graph.mutate('query q() { insert Strict { slug: "a", title: "Engines", meaning: [0, 1, 0, 0] } }')
        assert vector_of(graph, "a", "node:Strict") == [0, 1, 0, 0]
        assert client.asked == []

    def test_a_change_of_the_source_computes_it_again(self, graph: Graph, client: Counting) -> None:
        graph.mutate('query q() { insert Doc { slug: "a", title: "Engines" } }')
        graph.mutate('query q() { update Doc set { title: "Motors" } where slug = "a" }')
        assert vector_of(graph, "a") == close("Motors")
        graph.mutate('query q() { update Doc set { note: "x" } where slug = "a" }')
        assert client.asked == ["Engines", "Motors"]

    def test_a_vector_that_comes_with_the_change_is_kept(self, graph: Graph) -> None:
        graph.mutate('query q() { insert Doc { slug: "a", title: "Engines" } }')
        text = 'query q() { update Doc set { title: "Motors", meaning: [0, 0, 1, 0] } where slug = "a" }'
        graph.mutate(text)
        assert vector_of(graph, "a") == [0, 0, 1, 0]

    def test_without_a_source_there_is_no_vector(self, graph: Graph) -> None:
        graph.mutate('query q() { insert Doc { slug: "a", title: "Engines" } }')
        graph.mutate('query q($t: String?) { update Doc set { title: $t } where slug = "a" }', {})
        assert vector_of(graph, "a") is None

    def test_rows_of_the_same_query(self, graph: Graph) -> None:
        insert, update = (
            'insert Doc { slug: "a", title: "x" }',
            'update Doc set { title: "Motors" } where title = "x"',
        )
        graph.mutate(f"query q() {{ {insert}  {update} }}")
        assert vector_of(graph, "a") == close("Motors")

    def test_the_model_must_be_the_one_the_schema_names(self) -> None:
        schema = 'node Doc { slug: String @key  meaning: Vector(4)? @embed("slug", model="mini") }'
        graph = new_graph(schema, Counting("maxi"))
        with pytest.raises(EmbeddingUnavailable, match=r"Doc\.meaning is computed by model mini.* is maxi"):
            graph.mutate('query q() { insert Doc { slug: "a" } }')
        assert (
            new_graph(schema, Counting("mini")).mutate('query q() { insert Doc { slug: "a" } }').affected_nodes
            == 1
        )


class TestWithoutProvider:
    @pytest.fixture
    def graph(self, monkeypatch: pytest.MonkeyPatch) -> Graph:
        monkeypatch.delenv(PROVIDER, raising=False)
        monkeypatch.delenv(MOCK, raising=False)
        return new_graph(SCHEMA)

    def test_a_nullable_vector_stays_null_with_one_warning(self, graph: Graph) -> None:
        docs = [{"type": "Doc", "data": {"slug": slug, "title": "x"}} for slug in "abc"]
        with pytest.warns(UserWarning, match=r"Doc\.meaning stayed null.*OMNIGRAPH_EMBED_PROVIDER") as said:
            assert graph.load(docs, mode="append").warnings == ("Doc.meaning",)
        assert len(said) == 1
        with pytest.warns(UserWarning, match=r"Doc\.meaning") as said:
            graph.mutate(
                'query q() { insert Doc { slug: "d", title: "x" }  insert Doc { slug: "e", title: "x" } }'
            )
        assert len(said) == 1
        assert vector_of(graph, "a") is None

    def test_a_vector_whose_source_changes_goes(self, graph: Graph) -> None:
        graph.load([{"type": "Doc", "data": {"slug": "a", "title": "x", "meaning": [1, 0, 0, 0]}}], mode="append")
        graph.mutate('query q() { update Doc set { note: "n" } where slug = "a" }')
        assert vector_of(graph, "a") == [1, 0, 0, 0]
        with pytest.warns(UserWarning, match=r"Doc\.meaning"):
            graph.mutate('query q() { update Doc set { title: "y" } where slug = "a" }')
        assert vector_of(graph, "a") is None

    def test_no_warning_where_there_is_nothing_to_compute(self, graph: Graph) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            graph.load([{"type": "Doc", "data": {"slug": "a"}}], mode="append")
            graph.mutate('query q() { update Doc set { note: "x" } where slug = "a" }')

    def test_a_required_vector_fails_the_write(self, graph: Graph) -> None:
        for write in (
            lambda: graph.mutate('query q() { insert Strict { slug: "a", title: "x" } }'),
            lambda: graph.load([{"type": "Strict", "data": {"slug": "a", "title": "x"}}], mode="append"),
        ):
            with pytest.raises(
                EmbeddingUnavailable, match=r"Strict\.meaning is required.*OMNIGRAPH_EMBED_PROVIDER"
            ):
                write()
        assert stored(graph, "node:Strict") == []

    def test_a_required_vector_that_is_brought_is_fine(self, graph: Graph) -> None:
        record = {"type": "Strict", "data": {"slug": "a", "title": "x", "meaning": [1, 0, 0, 0]}}
        assert graph.load([record], mode="append").warnings == ()
