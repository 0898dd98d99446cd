"""How many texts are cut into batches, one for each request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The most that one request may carry. A text with more characters than that has a request of its own."""

    texts: int = 64
    characters: int = 100_000


def cut(texts: Sequence[str], limits: BatchLimits) -> list[Sequence[str]]:
    """The texts in batches that keep their order. The same texts always give the same batches."""
    batches: list[Sequence[str]] = []
    start, characters = 0, 0
    for index, text in enumerate(texts):
        if index > start and (index - start >= limits.texts or characters + len(text) > limits.characters):
            batches.append(texts[start:index])
            start, characters = index, 0
        characters += len(text)
    if start < len(texts):
        batches.append(texts[start:])
    return batches


def distinct(texts: Sequence[str]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The distinct texts, and for each text its index among them, so that no text is sent twice."""
    indexes: dict[str, int] = {}
    inverse = np.fromiter((indexes.setdefault(text, len(indexes)) for text in texts), np.int64, len(texts))
    return list(indexes), inverse
