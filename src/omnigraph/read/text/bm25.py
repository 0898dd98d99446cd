"""BM25: how well texts fit a query, by how often its terms are in them and how rare the terms are.

Statistics are of the whole column. An index over the column has them; a column that is read in pieces is counted
first, piece by piece, and then scored, piece by piece.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.read.text.analysis import Tokens, terms_of, tokenize
from omnigraph.read.values.columns import Array, Floats, Ints
from omnigraph.records import dataclass

_SATURATION: Final = 1.2
"""How soon more of the same word stops to matter: the k1 of BM25."""
_LENGTH_MATTERS: Final = 0.75
"""How much long texts are discounted: the b of BM25."""


def term_scores(times: int, texts: int, having: int, frequencies: Array, lengths: Floats) -> Floats:
    """What one term adds to the scores of the n texts that contain it.

    ``times``: occurrences of the term in the query. ``texts``: number of all texts of the column; ``having``: of
    those that contain the term. ``frequencies``, shape (n,): occurrences in each text. ``lengths``, shape (n,):
    the length of each text, divided by the average.
    """
    often = frequencies.astype(np.float64)
    discount = 1 - _LENGTH_MATTERS + _LENGTH_MATTERS * lengths
    rarity = _rarity(texts, having)
    return np.asarray(times * rarity * (often * (_SATURATION + 1) / (often + _SATURATION * discount)))


def _rarity(texts: int, having: int) -> float:
    return float(np.log(1 + (texts - having + 0.5) / (having + 0.5)))


def most_of_term(times: int, texts: int, having: int) -> float:
    """More than one term can add to the score of any text."""
    return times * _rarity(texts, having) * (_SATURATION + 1)


def rough_scores(most: float, frequencies: Array, lengths: Array, average: float) -> npt.NDArray[np.float32]:
    """The same as `term_scores` but for rounding to 32 bits, in half the time, for a term that adds less than
    ``most``. ``lengths`` are not yet divided by the average."""
    often = frequencies.astype(np.float32)
    below = lengths * np.float32(_SATURATION * _LENGTH_MATTERS / average)
    below += np.float32(_SATURATION * (1 - _LENGTH_MATTERS))
    below += often
    often *= np.float32(most)
    often /= below
    return often


@dataclass(frozen=True, slots=True)
class Statistics:
    """The number of texts in a column, of words in all of them, and of texts that have each term of a query."""

    texts: int
    words: int
    having: Mapping[str, int]

    @classmethod
    def of(cls, column: pa.Array, terms: Iterable[str]) -> Statistics:
        """The statistics of some texts."""
        tokens = tokenize(column)
        having = {term: int(np.count_nonzero(_frequencies(tokens, term, len(column)))) for term in set(terms)}
        return cls(len(column) - column.null_count, len(tokens.words), having)

    @classmethod
    def sum_of(cls, parts: Iterable[Statistics]) -> Statistics:
        """The statistics of a column from those of its pieces."""
        texts, words, having = 0, 0, Counter[str]()
        for part in parts:
            texts, words = texts + part.texts, words + part.words
            having.update(part.having)
        return cls(texts, words, having)


def piece_scores(column: pa.Array, query: str, whole: Statistics) -> Floats:
    """The scores of some texts of a column; 0 where no term is in a text, NaN where there is no text."""
    out = np.zeros(len(column))
    tokens = tokenize(column)
    lengths = np.bincount(tokens.documents, minlength=len(column)).astype(np.int32)
    average = whole.words / max(whole.texts, 1)
    for term, times in Counter(terms_of(query)).items():
        frequencies = _frequencies(tokens, term, len(column))
        rows = np.flatnonzero(frequencies)
        if len(rows):
            relative = lengths[rows] / average
            out[rows] += term_scores(times, whole.texts, whole.having[term], frequencies[rows], relative)
    out[np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)] = np.nan
    return out


def _frequencies(tokens: Tokens, term: str, documents: int) -> Ints:
    """How often a term is in each document."""
    has_term = np.array([word.term == term for word in tokens.vocabulary], dtype=np.bool_)
    if not has_term.any():
        return np.zeros(documents, dtype=np.int64)
    return np.bincount(tokens.documents[has_term[tokens.words]], minlength=documents)
