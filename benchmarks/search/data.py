"""Documents with a vector and a text each, and questions about them, made from a seed.

Vectors come in clusters, as embeddings do: a mixture of Gaussians, which overlap and are wide in a few directions
and narrow in most, so that an index has something to find. Words are drawn by Zipf's law, and every word
ends in a letter that no stemmer cuts off and is no stop word, so that all engines see the same words.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from benchmarks.contest import Question

Matrix = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

NEAREST: Final = "nearest"
TEXT: Final = "bm25"
BEST: Final = 10
GROUPS: Final = 1000
FILTERS: Final = {
    "nearest of a half": 500,
    "nearest of a tenth": 100,
    "nearest of a hundredth": 10,
    "nearest of a thousandth": 1,
}
"""Questions with a filter ask for documents of the first so many groups."""

VECTORS: Final = (NEAREST, *FILTERS)
KINDS: Final = (*VECTORS, TEXT)

_VOCABULARY: Final = 50_000
_BLOCK: Final = 1 << 16
_CONSONANTS: Final = "bdfgmnprtv"
_VOWELS: Final = "aeiou"


@dataclass(frozen=True, slots=True)
class Documents:
    """What is searched. A document's name is ``d`` and its number.

    ``words`` are those of all texts, one text after the other, by number, and ``of`` is the document of each.
    """

    vectors: Matrix
    groups: Ints
    words: Ints
    of: Ints
    texts: list[str]

    @property
    def count(self) -> int:
        return len(self.vectors)

    def arrow(self, low: int = 0, high: int | None = None) -> pa.Table:
        """Some of the documents, or all, as a table."""
        some = slice(low, self.count if high is None else min(high, self.count))
        flat = pa.array(self.vectors[some].reshape(-1))
        return pa.table(
            {
                "name": [f"d{number}" for number in range(some.start, some.stop)],
                "group": pa.array(self.groups[some], pa.int32()),
                "text": self.texts[some],
                "vector": pa.FixedSizeListArray.from_arrays(flat, self.vectors.shape[1]),
            }
        )


def write(home: Path, rows: int, dimension: int, seed: int, questions: int, length: int = 30) -> None:
    """Make the documents and questions and keep them in a folder; ``length`` words make a text, on average."""
    random = np.random.default_rng(seed)
    clusters = max(16, int(rows**0.5))
    widths = np.exp(-8 * np.arange(dimension) / dimension) + 0.02
    turned, _ = np.linalg.qr(random.normal(size=(dimension, dimension)))
    centres = random.normal(size=(clusters, dimension)) * widths

    def drawn(count: int) -> Matrix:
        parts = [min(_BLOCK, count - low) for low in range(0, count, _BLOCK)]
        return np.concatenate([block(part) for part in parts])

    def block(count: int) -> Matrix:
        chosen = centres[random.integers(0, clusters, count)]
        spread = chosen + random.normal(size=chosen.shape) * widths
        return np.asarray(np.round(spread @ turned, 4), dtype=np.float32)

    lengths = random.poisson(length, rows).clip(max(1, length // 6))
    chances = 1.0 / np.arange(1, _VOCABULARY + 1)
    words = random.choice(_VOCABULARY, int(lengths.sum()), p=chances / chances.sum())
    np.savez(
        home / "documents.npz",
        vectors=drawn(rows),
        groups=random.integers(0, GROUPS, rows),
        words=words,
        of=np.repeat(np.arange(rows), lengths),
        queries=drawn(questions),
        searches=_searches(words, np.cumsum(lengths) - lengths, lengths, questions, random),
    )


def _searches(
    words: Ints, starts: Ints, lengths: Ints, count: int, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """For each search three places in the words of one document; the second and third may repeat the first."""
    documents = random.integers(0, len(starts), count)
    places = (random.random((count, 3)) * lengths[documents, None]).astype(np.int64)
    return np.asarray(words[starts[documents, None] + places])


def read(home: Path) -> Documents:
    """The documents of a folder."""
    stored = np.load(home / "documents.npz")
    words, of = stored["words"], stored["of"]
    spelled = np.array([spelling(number) for number in range(_VOCABULARY)], dtype=object)[words]
    bounds = np.searchsorted(of, np.arange(len(stored["vectors"]) + 1))
    texts = [" ".join(spelled[low:high]) for low, high in pairwise(bounds.tolist())]
    return Documents(stored["vectors"], stored["groups"], words, of, texts)


def questions(home: Path) -> dict[str, list[Question]]:
    """The questions of a folder, by kind."""
    stored = np.load(home / "documents.npz")
    vectors: list[list[float]] = stored["queries"].astype(np.float64).tolist()
    searches = [[int(number) for number in set(row)] for row in stored["searches"].tolist()]
    return {
        kind: [_question(kind, number, vector=vector) for number, vector in enumerate(vectors)] for kind in VECTORS
    } | {
        TEXT: [
            _question(TEXT, number, words=row, text=" ".join(map(spelling, row)))
            for number, row in enumerate(searches)
        ]
    }


def _question(kind: str, number: int, **params: Any) -> Question:
    return Question(f"{kind} {number}", {"kind": kind}, params)


def spelling(number: int) -> str:
    """The word with a number: syllables, and an ``x``."""
    syllables = []
    while True:
        number, syllable = divmod(number, len(_CONSONANTS) * len(_VOWELS))
        consonant, vowel = divmod(syllable, len(_VOWELS))
        syllables.append(_CONSONANTS[consonant] + _VOWELS[vowel])
        if not number:
            return "".join(syllables) + "x"
