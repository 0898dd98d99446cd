"""The protocol of embedding clients, and the client that the environment configures."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from omnigraph.embed.variables import BASE_URL, MOCK, MODEL, PROVIDER

Role = Literal["document", "query"]
Vectors = npt.NDArray[np.float32]


class EmbeddingClient(Protocol):
    """Turns texts into unit vectors. Jobs on Spark pickle the client and send it to the workers."""

    @property
    def model(self) -> str:
        """The name of the model. A write is refused if the schema names another one."""

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        """The vectors of the texts, in an array of shape (len(texts), dimension)."""


def configured_client() -> EmbeddingClient | None:
    """The client that the environment configures; None if it configures none."""
    provider = os.environ.get(PROVIDER, "").strip().lower()
    is_mock = os.environ.get(MOCK, "").strip().lower() in ("1", "true")
    if is_mock or provider == "mock":
        from omnigraph.embed.mock import MockClient

        if provider not in ("", "mock"):
            warnings.warn(f"{MOCK} is set, so {PROVIDER}={provider} is not asked", UserWarning, stacklevel=2)
        return MockClient(os.environ.get(MODEL, "").strip() or "mock")
    if not provider and not os.environ.get(BASE_URL, "").strip():
        return None
    from omnigraph.embed.settings import http_client

    return http_client(provider, os.environ)
