"""Which client the environment asks for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from omnigraph.embed import variables
from omnigraph.embed.batches import BatchLimits
from omnigraph.embed.client import configured_client
from omnigraph.embed.http import HttpClient
from omnigraph.embed.mock import MockClient
from omnigraph.embed.transport import RetryPolicy
from omnigraph.errors import EmbeddingUnavailable


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def test_defaults_of_the_providers(configured: pytest.MonkeyPatch) -> None:
    configured.setenv("OPENAI_API_KEY", "one")
    configured.setenv("GEMINI_API_KEY", "two")
    for provider, base_url, model, key in (
        ("openai-compatible", "https://openrouter.ai/api/v1", "openai/text-embedding-3-large", "one"),
        ("openai", "https://api.openai.com/v1", "text-embedding-3-large", "one"),
        (" Gemini ", "https://generativelanguage.googleapis.com/v1beta", "gemini-embedding-2", "two"),
    ):
        configured.setenv(variables.PROVIDER, provider)
        assert configured_client() == HttpClient(provider.strip().lower(), model, base_url, key)
    configured.setenv("OPENROUTER_API_KEY", "three")
    configured.setenv(variables.PROVIDER, "openai-compatible")
    client = configured_client()
    assert isinstance(client, HttpClient)
    assert client.api_key == "three"


def test_everything_can_be_set(configured: pytest.MonkeyPatch) -> None:
    for name, value in (
        (variables.BASE_URL, "http://localhost:11434/v1/"),
        (variables.MODEL, "nomic"),
        (variables.API_KEY, "k"),
        (variables.TIMEOUT, "1500"),
        (variables.DEADLINE, "0"),
        (variables.ATTEMPTS, "2"),
        (variables.BACKOFF, "50"),
        (variables.BATCH, "8"),
        (variables.BATCH_CHARACTERS, "1000"),
        (variables.CONCURRENCY, "1"),
        (variables.DIMENSIONS, "off"),
    ):
        configured.setenv(name, value)
    configured.setenv("OPENAI_API_KEY", "another")
    assert configured_client() == HttpClient(
        "openai-compatible",
        "nomic",
        "http://localhost:11434/v1",
        "k",
        BatchLimits(8, 1000),
        RetryPolicy(1.5, 0.0, 2, 0.05),
        1,
        sends_dimension=False,
    )


def test_a_server_of_ones_own_needs_no_key(configured: pytest.MonkeyPatch) -> None:
    configured.setenv(variables.BASE_URL, "http://localhost:8080")
    client = configured_client()
    assert isinstance(client, HttpClient)
    assert client.api_key is None


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (
            variables.PROVIDER,
            "oracle",
            "oracle is not a provider; there are openai-compatible, openai, gemini and",
        ),
        (variables.PROVIDER, "gemini", "gemini wants a key; set OMNIGRAPH_EMBED_API_KEY or GEMINI_API_KEY"),
        (variables.BASE_URL, "localhost:80", "is not an http:// or https:// address"),
        (variables.BASE_URL, "http://a:99999/", "is not an http:// or https:// address"),
        (variables.BASE_URL, "https://me:secret@host/v1", "has a user, a query or a fragment; give the key in"),
        (variables.TIMEOUT, "soon", "OMNIGRAPH_EMBED_TIMEOUT_MS=soon is not a whole number from 1"),
        (variables.CONCURRENCY, "0", "OMNIGRAPH_EMBED_CONCURRENCY=0 is not a whole number from 1"),
        (variables.API_KEY, "sk-\x07one", "OMNIGRAPH_EMBED_API_KEY has characters that no key has"),
    ],
)
def test_what_is_wrong_is_named(configured: pytest.MonkeyPatch, name: str, value: str, reason: str) -> None:
    if name not in (variables.PROVIDER, variables.BASE_URL):
        configured.setenv(variables.BASE_URL, "http://localhost")
    configured.setenv(name, value)
    with pytest.raises(EmbeddingUnavailable, match=reason) as caught:
        configured_client()
    assert "secret" not in str(caught.value)


def test_the_mock_wins_and_says_so(configured: pytest.MonkeyPatch) -> None:
    configured.setenv(variables.MOCK, "1")
    configured.setenv(variables.PROVIDER, "openai")
    with pytest.warns(UserWarning, match="OMNIGRAPH_EMBED_PROVIDER=openai is not asked"):
        assert isinstance(configured_client(), MockClient)


@pytest.mark.parametrize(("name", "value"), [(variables.MOCK, "1"), (variables.PROVIDER, "mock")])
def test_the_mock_stands_in_for_the_configured_model(
    configured: pytest.MonkeyPatch, name: str, value: str
) -> None:
    configured.setenv(name, value)
    assert getattr(configured_client(), "model", None) == "mock"
    configured.setenv(variables.MODEL, " text-embedding-3-large ")
    assert getattr(configured_client(), "model", None) == "text-embedding-3-large"


def test_nobody_pays_for_what_is_not_configured() -> None:
    code = (
        "import sys\nimport omnigraph.graph\nfrom omnigraph.embed.client import configured_client\n"
        "assert configured_client() is None\nprint(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pyspark" not in ran.stdout.split()
