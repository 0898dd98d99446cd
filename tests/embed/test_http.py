"""The client against a real server: requests, answers that are none, and everything that can go wrong between."""

from __future__ import annotations

import json
import pickle
import threading
import time
from dataclasses import replace
from email.utils import formatdate
from multiprocessing import get_context
from types import SimpleNamespace

import numpy as np
import pytest
from tests.embed.server import QUICK, EmbeddingServer, Reply

from omnigraph.embed import transport
from omnigraph.embed.batches import BatchLimits
from omnigraph.embed.http import HttpClient
from omnigraph.embed.mock import MockClient
from omnigraph.embed.transport import RetryPolicy
from omnigraph.errors import EmbeddingUnavailable

TEXTS = [f"text {number}" for number in range(10)]


def embed_elsewhere(client: HttpClient, texts: list[str]) -> None:
    """What one task of several does, in a process of its own."""
    client.embed(texts, 4, "document")


class TestAsking:
    def test_vectors_are_those_of_the_texts_at_length_one(self, server: EmbeddingServer) -> None:
        found = server.client().embed(TEXTS, 8, "document")
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, MockClient().embed(TEXTS, 8, "document"), atol=1e-6)
        [asked] = server.asked
        assert asked.path == "/v1/embeddings"
        assert asked.body == {"model": "mini", "input": TEXTS, "dimensions": 8}
        assert asked.headers["Authorization"] == "Bearer sk-secret"

    def test_batches_keep_the_order_and_no_text_is_paid_twice(self, server: EmbeddingServer) -> None:
        texts = TEXTS + TEXTS[::-1]
        found = server.client(limits=BatchLimits(3, 1000)).embed(texts, 4, "document")
        np.testing.assert_allclose(found, MockClient().embed(texts, 4, "document"), atol=1e-6)
        assert len(server.asked) == 4
        assert sorted(server.texts) == sorted(TEXTS)

    def test_nothing_is_asked_for_nothing(self, server: EmbeddingServer) -> None:
        assert server.client().embed([], 4, "document").shape == (0, 4)
        assert server.asked == []

    def test_an_empty_text_is_sent_as_a_space(self, server: EmbeddingServer) -> None:
        assert server.client().embed(["", "\ud800"], 4, "document").shape == (2, 4)
        assert server.texts == [" ", "?"]

    def test_a_dimension_that_the_server_would_refuse_is_not_sent(self, server: EmbeddingServer) -> None:
        server.client(sends_dimension=False).embed(["a"], 4, "query")
        assert "dimensions" not in server.asked[0].body

    @pytest.mark.parametrize(("role", "task"), [("document", "RETRIEVAL_DOCUMENT"), ("query", "RETRIEVAL_QUERY")])
    def test_gemini(self, server: EmbeddingServer, role: str, task: str) -> None:
        client = HttpClient("gemini", "g-2", server.url, "key", retry=QUICK)
        one = client.embed(["a"], 4, role)  # type: ignore[arg-type]
        several = client.embed(["a", "b"], 4, role)  # type: ignore[arg-type]
        np.testing.assert_allclose(several, MockClient().embed(["a", "b"], 4, "document"), atol=1e-6)
        np.testing.assert_array_equal(one[0], several[0])
        assert [asked.path for asked in server.asked] == [
            "/v1/models/g-2:embedContent",
            "/v1/models/g-2:batchEmbedContents",
        ]
        assert server.asked[0].body["taskType"] == server.asked[1].body["requests"][1]["taskType"] == task
        assert server.asked[0].headers["X-Goog-Api-Key"] == "key"


class TestTryingAgain:
    @pytest.mark.parametrize(
        "reply",
        [
            Reply(429),
            Reply(500),
            Reply(503),
            Reply(drops=True),
            Reply(body=b'{"da', headers={"Content-Length": "99"}),
        ],
        ids=["429", "500", "503", "dropped", "broken off"],
    )
    def test_what_may_pass_is_asked_again(self, server: EmbeddingServer, reply: Reply) -> None:
        server.replies = [reply, reply]
        assert server.client().embed(["a"], 4, "document").shape == (1, 4)
        assert len(server.asked) == 3

    def test_a_server_that_hangs(self, server: EmbeddingServer) -> None:
        server.replies = [Reply(hangs=2.0)]
        client = replace(server.client(), retry=replace(QUICK, timeout=0.2))
        assert client.embed(["a"], 4, "document").shape == (1, 4)
        assert len(server.asked) == 2

    def test_it_ends(self, server: EmbeddingServer) -> None:
        server.replies = [Reply(503, b'{"error": {"message": "overloaded"}}')] * 9
        with pytest.raises(EmbeddingUnavailable, match=r"answered 503 4 times: overloaded; .*try again later"):
            server.client().embed(["a"], 4, "document")
        assert len(server.asked) == 4

    def test_a_job_tries_longer(self, server: EmbeddingServer) -> None:
        server.replies = [Reply(503)] * 7
        assert server.client().for_job().embed(["a"], 4, "document").shape == (1, 4)
        assert server.client().for_job().retry.deadline == 10 * QUICK.deadline

    @pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 408, 413, 422])
    def test_what_stays_wrong_is_not(self, server: EmbeddingServer, status: int) -> None:
        server.replies = [Reply(status, headers={"Location": "http://elsewhere.invalid/"})]
        with pytest.raises(EmbeddingUnavailable, match=f"answered {status}: "):
            server.client().embed(["a"], 4, "document")
        assert len(server.asked) == 1

    def test_pauses_grow_unless_the_server_says_when(
        self, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pauses: list[float] = []
        clock = SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic, time=time.time)
        monkeypatch.setattr(transport, "time", clock)
        soon = formatdate(time.time() + 9, usegmt=True)
        server.replies = [
            Reply(500),
            Reply(500),
            Reply(500),
            Reply(429, headers={"Retry-After": "7"}),
            Reply(503, headers={"Retry-After": soon}),
            Reply(503, headers={"Retry-After": "whenever"}),
        ]
        client = replace(server.client(), retry=RetryPolicy(deadline=0, attempts=9, backoff=1.0))
        assert client.embed(["a"], 4, "document").shape == (1, 4)
        for pause, (least, most) in zip(
            pauses, [(0.5, 1.5), (1, 3), (2, 6), (7, 8), (6, 10), (15, 45)], strict=True
        ):
            assert least <= pause <= most

    def test_not_beyond_the_deadline(self, server: EmbeddingServer) -> None:
        server.replies = [Reply(429, b"slow down", headers={"Retry-After": "3600"})]
        with pytest.raises(
            EmbeddingUnavailable,
            match=r"429: slow down; waiting 3600\.0 s more would pass .* lower OMNIGRAPH_EMBED",
        ):
            server.client().embed(["a"], 4, "document")
        assert len(server.asked) == 1

    def test_the_first_failure_stops_what_waits(self, server: EmbeddingServer) -> None:
        server.replies, server.delay = [Reply(400)] * 50, 0.02
        with pytest.raises(EmbeddingUnavailable):
            server.client(limits=BatchLimits(1, 100), concurrency=2).embed(
                [f"{number}" for number in range(50)], 4, "document"
            )
        assert len(server.asked) < 10


class TestAnswers:
    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            (b"<html>", "the answer is not JSON: <html>"),
            (b"[]", "the answer has no vectors"),
            (b'{"data": [{"vector": 1}]}', "the answer has no vectors"),
            (b'{"data": []}', "0 vectors for 1 texts"),
            (b'{"data": [{"embedding": [1, 2, 3]}]}', r"vectors of 3 components, and the schema has Vector\(4\)"),
            (b'{"data": [{"embedding": "AAAA"}]}', "vectors of 0 components"),
            (b'{"data": [{"embedding": [1, 2, 3, "x"]}]}', "components that are no numbers"),
            (b'{"data": [{"embedding": [0, 0, 0, 0]}]}', "not finite, or has no length"),
            (b'{"data": [{"embedding": [1, NaN, 0, 0]}]}', "not finite, or has no length"),
            (b'{"data": [{"embedding": [1, 1e999, 0, 0]}]}', "not finite, or has no length"),
        ],
    )
    def test_only_vectors_that_can_be_stored(self, server: EmbeddingServer, body: bytes, reason: str) -> None:
        server.replies = [Reply(body=body)]
        with pytest.raises(EmbeddingUnavailable, match=f"openai-compatible model mini at 127.*{reason}"):
            server.client().embed(["a"], 4, "document")
        assert len(server.asked) == 1

    @pytest.mark.parametrize(
        ("said", "shown"),
        [
            ({"error": {"message": "bad key sk-secret"}}, "bad key …"),
            ({"error": "no"}, "no"),
            ({"detail": [{"msg": "too long"}]}, "too long"),
            ({"object": "error", "message": "no such model"}, "no such model"),
        ],
    )
    def test_errors_say_what_the_server_says_and_never_the_key(
        self, server: EmbeddingServer, said: object, shown: str
    ) -> None:
        server.replies = [Reply(401, json.dumps(said).encode())]
        with pytest.raises(EmbeddingUnavailable) as caught:
            server.client().embed(["a"], 4, "document")
        assert f"answered 401: {shown}; check the key in OMNIGRAPH_EMBED_API_KEY or OPENROUTER" in str(
            caught.value
        )
        assert "sk-secret" not in str(caught.value)
        assert "sk-secret" not in repr(server.client())

    def test_a_text_that_is_too_long(self, server: EmbeddingServer) -> None:
        server.replies = [Reply(400, b'{"error": {"message": "at most 8192 tokens"}}')]
        with pytest.raises(
            EmbeddingUnavailable, match=r"of 2 texts the longest has 50,000 characters; shorten it$"
        ):
            server.client().embed(["a", "x" * 50_000], 4, "document")

    def test_a_model_without_dimensions(self, server: EmbeddingServer) -> None:
        server.replies = [Reply(400, b'{"message": "this model does not support dimensions"}')]
        with pytest.raises(EmbeddingUnavailable, match=r"or set OMNIGRAPH_EMBED_DIMENSIONS=off"):
            server.client().embed(["a"], 4, "document")

    def test_nobody_there(self) -> None:
        client = HttpClient("openai", "m", "http://127.0.0.1:1/v1", retry=replace(QUICK, attempts=2))
        with pytest.raises(EmbeddingUnavailable, match=r"at 127\.0\.0\.1:1 did not answer 2 times: .*refused"):
            client.embed(["a"], 4, "query")


class TestManyAtATime:
    def test_no_more_than_so_many_per_process(self, server: EmbeddingServer) -> None:
        server.delay = 0.05
        client = server.client(limits=BatchLimits(1, 100), concurrency=3)
        threads = [
            threading.Thread(target=client.embed, args=([f"{thread}-{text}" for text in TEXTS], 4, "document"))
            for thread in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (server.most_in_flight, len(server.asked)) == (3, 30)

    def test_no_more_than_so_many_per_machine_in_a_job(self, server: EmbeddingServer) -> None:
        server.delay = 0.05
        client = server.client(limits=BatchLimits(1, 100), concurrency=2).for_job()
        processes = [
            get_context("spawn").Process(target=embed_elsewhere, args=(client, [f"{number}-{t}" for t in TEXTS]))
            for number in range(3)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0, 0, 0]
        assert (server.most_in_flight, len(server.asked)) == (2, 30)

    def test_it_travels(self, server: EmbeddingServer) -> None:
        client = server.client().for_job()
        assert pickle.loads(pickle.dumps(client)) == client
