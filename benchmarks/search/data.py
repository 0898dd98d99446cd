"""Documents with a vector and a text each, and questions about them, made from a seed.

Vectors come in clusters, as embeddings do: a mixture of Gaussians, which overlap and are wide in a few directions
and narrow in most, so that an index has something to find. Words are drawn by Zipf's law, and every word
ends in a letter that no stemmer cuts off and is no stop word, so that all engines see the same words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from benchmarks.contest import Question

Matrix = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

NEAREST: Final = "nearest"
FILTERED: Final = "nearest of a tenth"
TEXT: Final = "bm25"
BEST: Final = 10
GROUPS: Final = 100
WANTED_GROUPS: Final = 10
"""A filtered question asks for documents of the first so many groups."""

_VOCABULARY: Final = 50_000
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

    def names(self) -> list[str]:
        return [f"d{number}" for number in range(self.count)]

    def records(self) -> Iterator[str]:
        """The documents as lines of JSON."""
        for number, text in enumerate(self.texts):
            vector = np.round(self.vectors[number].astype(np.float64), 4).tolist()
            data = {"name": f"d{number}", "group": int(self.groups[number]), "text": text, "vector": vector}
            yield json.dumps({"type": "Doc", "data": data})


def write(home: Path, rows: int, dimension: int, seed: int, questions: int) -> None:
    """Make the documents and questions and keep them in a folder."""
    random = np.random.default_rng(seed)
    clusters = max(16, int(rows**0.5))
    widths = np.exp(-8 * np.arange(dimension) / dimension) + 0.02
    turned, _ = np.linalg.qr(random.normal(size=(dimension, dimension)))
    centres = random.normal(size=(clusters, dimension)) * widths

    def drawn(count: int) -> Matrix:
        chosen = centres[random.integers(0, clusters, count)]
        spread = chosen + random.normal(size=chosen.shape) * widths
        return np.asarray(np.round(spread @ turned, 4), dtype=np.float32)

    lengths = random.poisson(30, rows).clip(5)
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
        kind: [_question(kind, number, vector=vector) for number, vector in enumerate(vectors)]
        for kind in (NEAREST, FILTERED)
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
