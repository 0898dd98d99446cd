"""What the right answers are, computed plainly, and how far an answer agrees with them.

Documents that are exactly as good as the tenth are as right as it. BM25 is the usual one, with k1 = 1.2, b = 0.75
and the rarity of a word ln(1 + (N - n + 0.5) / (n + 0.5)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
from benchmarks.contest import Question, Row
from benchmarks.search.data import BEST, FILTERED, TEXT, WANTED_GROUPS, Documents

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


class Exact:
    """The right answers about some documents."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._squares = np.empty(documents.count)
        for low in range(0, documents.count, _BLOCK):
            block = documents.vectors[low : low + _BLOCK].astype(np.float64)
            self._squares[low : low + _BLOCK] = np.einsum("ij,ij->i", block, block)
        self._lengths = np.bincount(documents.of, minlength=documents.count)

    def scores(self, question: Question) -> Floats:
        """How good each document is, more being better; -inf for those that are not asked about."""
        if question.texts["kind"] == TEXT:
            scores = self._bm25(list(question.params["words"]))  # type: ignore[call-overload]
            return np.where(scores > 0, scores, -np.inf)
        scores = -self._distances(np.asarray(question.params["vector"], dtype=np.float32))
        if question.texts["kind"] == FILTERED:
            scores[self._documents.groups >= WANTED_GROUPS] = -np.inf
        return scores

    def _distances(self, query: npt.NDArray[np.float32]) -> Floats:
        """Squared distances in 64 bits."""
        wide = query.astype(np.float64)
        products = np.empty(self._documents.count)
        for low in range(0, len(products), _BLOCK):
            products[low : low + _BLOCK] = self._documents.vectors[low : low + _BLOCK].astype(np.float64) @ wide
        return np.asarray(self._squares - 2 * products + wide @ wide)

    def _bm25(self, words: Sequence[int]) -> Floats:
        """Every word of every text is looked at for every word of the question."""
        documents, count = self._documents, self._documents.count
        discount = _K1 * (1 - _B + _B * self._lengths / self._lengths.mean())
        total = np.zeros(count)
        for word in words:
            often = np.bincount(documents.of[documents.words == word], minlength=count)
            having = np.count_nonzero(often)
            rarity = np.log(1 + (count - having + 0.5) / (having + 0.5))
            total += rarity * often * (_K1 + 1) / (often + discount)
        return total


def agreement(scores: Floats, rows: Sequence[Row]) -> Agreement:
    """An answer, names of documents with the best first, against the scores of all."""
    found = [int(str(row[0]).removeprefix("d")) for row in rows[:BEST]]
    wanted = min(BEST, int(np.count_nonzero(np.isfinite(scores))))
    if not wanted:
        return Agreement(1.0 if not found else 0.0, None)
    border = float(np.partition(scores, -wanted)[-wanted])
    border -= _CLOSE * max(1.0, abs(border))
    common = [document for document in dict.fromkeys(found) if scores[document] >= border]
    signs = [_sign(float(scores[a]), float(scores[b])) for a, b in combinations(common, 2)]
    told = [sign for sign in signs if sign]
    return Agreement(len(common) / wanted, sum(told) / len(told) if told else None)


def _sign(first: float, second: float) -> int:
    """1 if the first is better, -1 if the second is, 0 if nobody can tell."""
    if abs(first - second) <= 1e-6 * max(abs(first), abs(second)):
        return 0
    return 1 if first > second else -1
