"""A server for the tests of embedding."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.embed.server import EmbeddingServer, embedding_server

from omnigraph.embed import variables

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine's user has configured, the tests do not ask it."""
    for name in [name for name in vars(variables) if name.isupper()]:
        monkeypatch.delenv(getattr(variables, name), raising=False)
    for name in ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", *PROXIES):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
