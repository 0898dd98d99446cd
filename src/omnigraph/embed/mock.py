"""A client without a model: the same text always gives the same vector, and different texts different ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.embed.client import Role, Vectors
from omnigraph.storage.layout import fnv1a64


class MockClient:
    """Deterministic vectors from a hash of the text, for tests and demos; they are the same for every model."""

    def __init__(self, model: str = "mock") -> None:
        self._model = model

    @property
    def model(self) -> str:
        return self._model

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        """Components from a xorshift generator seeded by the text, scaled to length one."""
        del role
        state = np.array([int(fnv1a64(text), 16) for text in texts], dtype=np.uint64)
        vectors = np.empty((len(texts), dimension), dtype=np.float64)
        for component in range(dimension):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            vectors[:, component] = 2.0 * (state.astype(np.float64) / float(2**64 - 1)) - 1.0
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Vectors = (vectors / lengths).astype(np.float32)
        return unit
