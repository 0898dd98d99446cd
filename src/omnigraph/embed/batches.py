"""Cutting many texts into requests of a size that servers take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What one request may carry at most. A text that alone has more characters goes alone."""

    texts: int = 64
    characters: int = 100_000


def cut(texts: Sequence[str], limits: BatchLimits) -> list[Sequence[str]]:
    """The texts in batches, in their order. The same texts are always cut at the same places."""
    batches: list[Sequence[str]] = []
    start, held = 0, 0
    for index, text in enumerate(texts):
        if index > start and (index - start >= limits.texts or held + len(text) > limits.characters):
            batches.append(texts[start:index])
            start, held = index, 0
        held += len(text)
    if start < len(texts):
        batches.append(texts[start:])
    return batches


def each_once(texts: Sequence[str]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The different texts, and for each text its place among them: nobody pays twice for the same one."""
    places: dict[str, int] = {}
    which = np.fromiter((places.setdefault(text, len(places)) for text in texts), np.int64, len(texts))
    return list(places), which
