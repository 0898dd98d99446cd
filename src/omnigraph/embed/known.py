"""Clients that look before they ask: texts whose vectors are known already are not paid for again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from omnigraph.embed.client import EmbeddingClient, Role, Vectors

Known = dict[tuple[str, int], Vectors]
"""Vectors of documents, by text and dimension."""
_AT_ONCE: Final = 1024


class WithKnown:
    """Asks for what is not known."""

    def __init__(self, client: EmbeddingClient, known: Known) -> None:
        self.client = client
        self.known = known

    @property
    def model(self) -> str:
        return self.client.model

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        missing = [text for text in texts if role == "query" or (text, dimension) not in self.known]
        computed = self.client.embed(missing, dimension, role) if missing else np.empty((0, dimension), np.float32)
        if len(missing) == len(texts):
            return computed
        rows = iter(computed)
        vectors = np.empty((len(texts), dimension), np.float32)
        for index, text in enumerate(texts):
            found = self.known.get((text, dimension))
            vectors[index] = next(rows) if found is None else found
        return vectors


class Remembering(WithKnown):
    """Remembers every vector it was given, and tells after each portion how many there are more."""

    def __init__(self, client: EmbeddingClient, tell: Callable[[int], None]) -> None:
        super().__init__(client, {})
        self.tell = tell

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        parts = [np.empty((0, dimension), np.float32)]
        for start in range(0, len(texts), _AT_ONCE):
            self.tell(0)
            portion = texts[start : start + _AT_ONCE]
            parts.append(super().embed(portion, dimension, role))
            self.known.update(zip(((text, dimension) for text in portion), parts[-1], strict=True))
            self.tell(len(portion))
        return np.concatenate(parts)
