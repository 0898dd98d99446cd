"""What an embedding client is, and which one is configured."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from omnigraph.embed.variables import MOCK as MOCK
from omnigraph.embed.variables import PROVIDER as PROVIDER

Role = Literal["document", "query"]
Vectors = npt.NDArray[np.float32]


class EmbeddingClient(Protocol):
    """Turns texts into unit vectors. One that goes to Spark's workers has to be picklable."""

    @property
    def model(self) -> str:
        """The model's name, which a schema may require."""

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        """One vector of that dimension per text: an array of shape (len(texts), dimension)."""


def configured_client() -> EmbeddingClient | None:
    """The client the environment asks for; None if it asks for none."""
    from omnigraph.embed.mock import MockClient

    provider = os.environ.get(PROVIDER, "").strip().lower()
    if os.environ.get(MOCK, "").strip().lower() in ("1", "true"):
        if provider not in ("", "mock"):
            warnings.warn(f"{MOCK} is set, so {PROVIDER}={provider} is not asked", UserWarning, stacklevel=2)
        return MockClient()
    if provider == "mock":
        return MockClient()
    from omnigraph.embed.settings import client_of

    return client_of(provider, os.environ)
