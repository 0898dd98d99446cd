"""BM25 over a table in pieces: statistics of the whole column first, then the scores of each piece.

The arithmetic is that of `read.text.postings`, step by step, so that both engines give the same bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.bulk.pieces import Piece
from omnigraph.bulk.runner import TaskResult
from omnigraph.read.text.analysis import Tokens, terms_of, tokenize
from omnigraph.read.values.columns import Ints
from omnigraph.read.values.vectors import Floats
from omnigraph.spark.runner import SparkRunner

_SATURATION = 1.2
_LENGTH_MATTERS = 0.75


@dataclass(frozen=True, slots=True)
class Statistics:
    """What BM25 has to know about a column: how many texts, how many words, and in how many texts each term is."""

    texts: int
    words: int
    having: Mapping[str, int]


def statistics(runner: SparkRunner, pieces: Sequence[Piece], name: str, query: str) -> Statistics:
    """The statistics of a column, for the terms of a query."""
    terms = tuple(dict.fromkeys(terms_of(query)))
    counted = runner.run("statistics", partial(_counted, name, terms), pieces)
    return _sum(counted, terms)


def _sum(parts: Sequence[Statistics], terms: Sequence[str]) -> Statistics:
    having = {term: sum(part.having[term] for part in parts) for term in terms}
    return Statistics(sum(part.texts for part in parts), sum(part.words for part in parts), having)


def _counted(name: str, terms: Sequence[str], piece: Piece) -> TaskResult[Statistics]:
    """The statistics of one piece."""
    parts = [statistics_of(batch.column(name), terms) for batch in piece.batches([name])]
    return TaskResult(_sum(parts, terms), rows=piece.rows)


def statistics_of(column: pa.Array, terms: Sequence[str]) -> Statistics:
    """The statistics of some texts."""
    tokens = tokenize(column)
    having = {term: int(np.count_nonzero(_frequencies(tokens, term, len(column)))) for term in terms}
    return Statistics(len(column) - column.null_count, len(tokens.words), having)


def scores(column: pa.Array, query: str, known: Statistics) -> Floats:
    """How well each text fits the query; 0 where no term is in it, NaN where there is no text."""
    out = np.zeros(len(column))
    tokens = tokenize(column)
    lengths = np.bincount(tokens.documents, minlength=len(column)).astype(np.int32)
    average = known.words / max(known.texts, 1)
    for term, times in Counter(terms_of(query)).items():
        having = known.having[term]
        frequencies = _frequencies(tokens, term, len(column))
        rows = np.flatnonzero(frequencies)
        if not len(rows):
            continue
        rarity = np.log(1 + (known.texts - having + 0.5) / (having + 0.5))
        often = frequencies[rows].astype(np.float64)
        discount = 1 - _LENGTH_MATTERS + _LENGTH_MATTERS * (lengths[rows] / average)
        out[rows] += times * rarity * (often * (_SATURATION + 1) / (often + _SATURATION * discount))
    out[np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)] = np.nan
    return out


def _frequencies(tokens: Tokens, term: str, documents: int) -> Ints:
    """How often a term is in each document."""
    has_term = np.array([word.term == term for word in tokens.vocabulary], dtype=np.bool_)
    if not has_term.any():
        return np.zeros(documents, dtype=np.int64)
    return np.bincount(tokens.documents[has_term[tokens.words]], minlength=documents)
