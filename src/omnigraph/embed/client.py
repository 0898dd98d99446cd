"""The protocol of embedding clients, and the client that the environment configures."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from omnigraph.embed.variables import MOCK, MODEL, PROVIDER

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
    from omnigraph.embed.mock import MockClient

    provider = os.environ.get(PROVIDER, "").strip().lower()
    model = os.environ.get(MODEL, "").strip() or "mock"
    if os.environ.get(MOCK, "").strip().lower() in ("1", "true"):
        if provider not in ("", "mock"):
            warnings.warn(f"{MOCK} is set, so {PROVIDER}={provider} is not asked", UserWarning, stacklevel=2)
        return MockClient(model)
    if provider == "mock":
        return MockClient(model)
    from omnigraph.embed.settings import http_client

    return http_client(provider, os.environ)
