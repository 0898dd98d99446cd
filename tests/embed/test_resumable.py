"""What a job has paid for it keeps, and what is lost it stops paying for."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.embed.server import EmbeddingServer, Reply
from tests.stores import Store

from omnigraph.embed.batches import BatchLimits
from omnigraph.embed.cache import CachedClient, CachingClient
from omnigraph.embed.client import Role, Vectors
from omnigraph.embed.http import HttpClient
from omnigraph.embed.mock import MockClient
from omnigraph.embed.resumable import ResumableClient, resumable
from omnigraph.errors import EmbeddingUnavailable
from omnigraph.storage.address import Address, parse_address
from omnigraph.storage.objects import open_objects

TEXTS = [f"text {number}" for number in range(10)]
BATCHES = BatchLimits(3, 1000)
FOLDER = "__jobs/1"


def expected(texts: Sequence[str]) -> Vectors:
    return MockClient().embed(texts, 4, "document")


@pytest.fixture
def place(tmp_path: Path) -> Address:
    return parse_address(tmp_path / "g.omni")


class TestResumable:
    def test_a_second_attempt_asks_for_nothing(self, server: EmbeddingServer, shared_store: Store) -> None:
        client = resumable(server.client(limits=BATCHES), shared_store.address, FOLDER)
        assert client is not None
        for _ in range(2):
            again = pickle.loads(pickle.dumps(client))
            np.testing.assert_allclose(again.embed(TEXTS * 2, 4, "document"), expected(TEXTS * 2), atol=1e-6)
            assert len(server.asked) == 4
        client.embed(TEXTS[:3], 8, "document")
        client.embed(TEXTS[:3], 4, "query")
        assert len(server.asked) == 6

    def test_what_was_done_before_a_failure_is_kept(self, server: EmbeddingServer, place: Address) -> None:
        client = server.client(limits=BATCHES, concurrency=1)
        server.replies = [Reply(), Reply(), Reply(400, b"no")]
        with pytest.raises(EmbeddingUnavailable, match="answered 400: no"):
            ResumableClient(client, place, FOLDER).embed(TEXTS, 4, "document")
        asked = len(server.asked)
        with pytest.raises(EmbeddingUnavailable, match="answered 400: no"):
            ResumableClient(client, place, FOLDER).embed(["another"], 4, "document")
        assert len(server.asked) == asked, "no other task pays for a job that is lost"
        kept = ResumableClient(client, place, FOLDER).embed(TEXTS[:6], 4, "document")
        np.testing.assert_allclose(kept, expected(TEXTS[:6]), atol=1e-6)
        assert len(server.asked) == asked
        assert ResumableClient(client, place, "__jobs/2").embed(["another"], 4, "document").shape == (1, 4)

    def test_half_a_batch_is_none(self, server: EmbeddingServer, place: Address) -> None:
        client = ResumableClient(server.client(limits=BATCHES), place, FOLDER)
        client.embed(["a"], 4, "document")
        [key] = open_objects(place).list(FOLDER)
        open_objects(place).put(key, b"half")
        np.testing.assert_allclose(client.embed(["a"], 4, "document"), expected(["a"]), atol=1e-6)
        assert len(server.asked) == 2

    def test_clients_of_others_and_the_mock(self, place: Address) -> None:
        class Other(MockClient):
            """Not ours."""

        assert resumable(None, place, FOLDER) is None
        mock = MockClient()
        assert resumable(mock, place, FOLDER) is mock
        wrapped = resumable(Other(), place, FOLDER)
        assert isinstance(wrapped, ResumableClient)
        np.testing.assert_array_equal(wrapped.embed(TEXTS, 4, "document"), expected(TEXTS))
        assert wrapped.embed([], 4, "document").shape == (0, 4)
        assert wrapped.model == "mock"

    def test_a_job_limits_the_requests_of_the_whole_machine(self, server: EmbeddingServer, place: Address) -> None:
        wrapped = resumable(server.client(), place, FOLDER)
        assert isinstance(wrapped, ResumableClient)
        assert isinstance(wrapped.client, HttpClient)
        assert wrapped.client.machine_wide


class TestCache:
    class Asked(MockClient):
        """The mock, with what it was asked."""

        def __init__(self) -> None:
            self.texts: list[str] = []

        def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
            self.texts += texts
            return super().embed(texts, dimension, role)

    def test_what_is_cached_is_not_asked(self) -> None:
        asked = self.Asked()
        mine = np.array([1, 0, 0, 0], np.float32)
        client = CachedClient(asked, {("text 3", 4): mine})
        found = client.embed(TEXTS, 4, "document")
        assert asked.texts == TEXTS[:3] + TEXTS[4:]
        assert found[3].tolist() == mine.tolist()
        np.testing.assert_array_equal(np.delete(found, 3, 0), expected(asked.texts))
        assert CachedClient(asked, {("a", 4): mine}).embed(["a"], 4, "query")[0].tolist() != mine.tolist()

    def test_it_fills_its_cache_and_reports_its_progress(self) -> None:
        asked, progress = self.Asked(), list[int]()
        client = CachingClient(asked, progress.append)
        many = [f"{number}" for number in range(2500)]
        for _ in range(2):
            np.testing.assert_array_equal(client.embed(many, 4, "document"), expected(many))
        assert asked.texts == many
        assert [count for count in progress if count] == [1024, 1024, 452] * 2

    def test_vectors_of_queries_are_not_those_of_documents(self) -> None:
        asked = self.Asked()
        client = CachingClient(asked, lambda _: None)
        client.embed(["a"], 4, "query")
        client.embed(["a"], 4, "document")
        assert asked.texts == ["a", "a"]
