"""What an embedding client is, and which one is configured."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from omnigraph.errors import EmbeddingUnavailable

Role = Literal["document", "query"]
Vectors = npt.NDArray[np.float32]
PROVIDER = "OMNIGRAPH_EMBED_PROVIDER"
MOCK = "OMNIGRAPH_EMBEDDINGS_MOCK"


class EmbeddingClient(Protocol):
    """Turns texts into unit vectors."""

    @property
    def model(self) -> str:
        """The model's name, which a schema may require."""

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        """One vector of that dimension per text: an array of shape (len(texts), dimension)."""


def configured_client() -> EmbeddingClient | None:
    """The client the environment asks for; None if it asks for none."""
    from omnigraph.embed.mock import MockClient

    provider = os.environ.get(PROVIDER, "").strip().lower()
    if os.environ.get(MOCK, "").strip().lower() in ("1", "true") or provider == "mock":
        return MockClient()
    if not provider:
        return None
    raise EmbeddingUnavailable(f"{PROVIDER}={provider} is not a provider this release has; it has: mock")
