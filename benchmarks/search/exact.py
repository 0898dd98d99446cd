"""What the right answers are, computed plainly, and how far an answer agrees with them.

Documents that are exactly as good as the tenth are as right as it. BM25 is the usual one, with k1 = 1.2, b = 0.75
and the rarity of a word ln(1 + (N - n + 0.5) / (n + 0.5)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from benchmarks.contest import Question, Row
from benchmarks.search.data import BEST, FILTERS, GROUPS, TEXT, Documents, Ints

Floats = npt.NDArray[np.float64]
_K1: Final = 1.2
_B: Final = 0.75
_BLOCK: Final = 1 << 14
_CLOSE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many of the best there are among the ones found, and whether those common to both are in the same order:
    Kendall's tau, None if there are no two."""

    recall: float
    order: float | None


@dataclass(frozen=True, slots=True)
class Truth:
    """The best documents with their scores, more being better: so many as are wanted, and all as good as the last
    of them."""

    wanted: int
    best: Mapping[int, float]


class Exact:
    """The right answers about some documents."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._lengths = np.bincount(documents.of, minlength=documents.count)

    def answers(self, questions: Sequence[Question]) -> list[Truth]:
        """The right answers to questions of one kind."""
        kind = questions[0].texts["kind"]
        if kind == TEXT:
            return [_truth(np.arange(self._documents.count), self._bm25(q.params["words"])) for q in questions]
        allowed = self._documents.groups < FILTERS.get(kind, GROUPS)
        vectors = [np.asarray(question.params["vector"], dtype=np.float32) for question in questions]
        return self._nearest(np.stack(vectors).astype(np.float64), np.flatnonzero(allowed))

    def _nearest(self, queries: Floats, among: Ints) -> list[Truth]:
        """By squared distances in 64 bits. Of each block only documents that may be among the best stay."""
        kept: list[list[tuple[Ints, Floats]]] = [[] for _ in queries]
        for low in range(0, len(among), _BLOCK):
            some = among[low : low + _BLOCK]
            block = self._documents.vectors[some].astype(np.float64)
            products = block @ queries.T
            scores = 2 * products.T - np.einsum("ij,ij->i", block, block) - np.sum(queries**2, axis=1)[:, None]
            for row, kept_of_row in zip(scores, kept, strict=True):
                chosen = row >= _border(row)
                kept_of_row.append((some[chosen], row[chosen]))
        return [_truth(*map(np.concatenate, zip(*parts, strict=True))) for parts in kept]

    def _bm25(self, words: Any) -> Floats:
        """Every word of every text is looked at for every word of the question; -inf where there is none."""
        documents, count = self._documents, self._documents.count
        discount = _K1 * (1 - _B + _B * self._lengths / self._lengths.mean())
        total = np.zeros(count)
        for word in words:
            often = np.bincount(documents.of[documents.words == word], minlength=count)
            having = np.count_nonzero(often)
            rarity = np.log(1 + (count - having + 0.5) / (having + 0.5))
            total += rarity * often * (_K1 + 1) / (often + discount)
        return np.where(total > 0, total, -np.inf)


def _border(scores: Floats) -> float:
    """What a document has to reach to be as good as the last of those that are wanted."""
    wanted = min(BEST, len(scores))
    border = float(np.partition(scores, -wanted)[-wanted])
    return border - _CLOSE * max(1.0, abs(border))


def _truth(documents: Ints, scores: Floats) -> Truth:
    documents, scores = documents[np.isfinite(scores)], scores[np.isfinite(scores)]
    if not len(scores):
        return Truth(0, {})
    chosen = scores >= _border(scores)
    best = dict(zip(documents[chosen].tolist(), scores[chosen].tolist(), strict=True))
    return Truth(min(BEST, len(scores)), best)


def agreement(truth: Truth, rows: Sequence[Row]) -> Agreement:
    """An answer, names of documents with the best first, against the right one."""
    found = [int(str(row[0]).removeprefix("d")) for row in rows[:BEST]]
    if not truth.wanted:
        return Agreement(1.0 if not found else 0.0, None)
    common = [document for document in dict.fromkeys(found) if document in truth.best]
    signs = [_sign(truth.best[a], truth.best[b]) for a, b in combinations(common, 2)]
    told = [sign for sign in signs if sign]
    return Agreement(len(common) / truth.wanted, sum(told) / len(told) if told else None)


def _sign(first: float, second: float) -> int:
    """1 if the first is better, -1 if the second is, 0 if nobody can tell."""
    if abs(first - second) <= 1e-6 * max(abs(first), abs(second)):
        return 0
    return 1 if first > second else -1
