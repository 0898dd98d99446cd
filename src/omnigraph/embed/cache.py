"""Clients with a cache, so that texts whose vectors are known are not sent to the server again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from omnigraph.embed.client import EmbeddingClient, Role, Vectors

VectorCache = dict[tuple[str, int], Vectors]
"""Vectors of documents, by text and dimension."""
_PORTION: Final = 1024


class CachedClient:
    """Takes the vectors of documents from a cache, and asks another client for those that are not in it."""

    def __init__(self, client: EmbeddingClient, cache: VectorCache) -> None:
        self.client = client
        self.cache = cache

    @property
    def model(self) -> str:
        return self.client.model

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        missing = [text for text in texts if role == "query" or (text, dimension) not in self.cache]
        computed = self.client.embed(missing, dimension, role) if missing else np.empty((0, dimension), np.float32)
        if len(missing) == len(texts):
            return computed
        rows = iter(computed)
        vectors = np.empty((len(texts), dimension), np.float32)
        for index, text in enumerate(texts):
            cached = self.cache.get((text, dimension))
            vectors[index] = next(rows) if cached is None else cached
        return vectors


class CachingClient(CachedClient):
    """Starts with an empty cache, adds every document's vector to it, and reports its progress.

    ``progress`` is called with 0 before each portion of the texts, where it may raise to stop, and with the number
    of texts after it.
    """

    def __init__(self, client: EmbeddingClient, progress: Callable[[int], None]) -> None:
        super().__init__(client, {})
        self.progress = progress

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        parts = [np.empty((0, dimension), np.float32)]
        for start in range(0, len(texts), _PORTION):
            self.progress(0)
            portion = texts[start : start + _PORTION]
            parts.append(super().embed(portion, dimension, role))
            if role == "document":
                self.cache.update(zip(((text, dimension) for text in portion), parts[-1], strict=True))
            self.progress(len(portion))
        return np.concatenate(parts)
