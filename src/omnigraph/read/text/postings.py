"""An inverted index over one text column: for each term the documents it is in and how often.

A document is a row number of the column. The index never changes, so any number of threads can use it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from omnigraph.read.text.analysis import Word, go_on, terms_of, tokenize, words_of
from omnigraph.read.text.bm25 import term_scores
from omnigraph.read.text.spelling import Spelling
from omnigraph.read.values.columns import Array, Bools, Floats, Ints, Positions
from omnigraph.settings import READ_DEFAULTS, ReadSettings


class _Range(NamedTuple):
    """A stretch of the postings: the documents of one term or word, ascending."""

    start: int
    stop: int


class TextIndex:
    """The postings of one column, with what BM25 and approximate spelling need.

    Postings lie in one array, sorted by term and document. A search for similar spellings has to know which word
    of a term a document has, so the words of terms that have more than one follow behind, each with its documents.

    Building an index takes a while: ``check`` is called between batches, and may raise to stop it.
    """

    def __init__(
        self,
        column: pa.ChunkedArray | pa.Array,
        check: Callable[[], None] = go_on,
        settings: ReadSettings = READ_DEFAULTS,
    ) -> None:
        self.is_null: Bools = np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
        tokens = tokenize(column, check, settings)
        self._codes, stems = _numbered_terms(tokens.vocabulary)
        grouped = _grouped(stems[tokens.words], tokens.documents, len(self._codes))
        self._bounds = grouped.bounds
        self._frequencies = grouped.frequencies
        self._lengths = np.bincount(tokens.documents, minlength=len(column)).astype(np.int32)
        self._count = len(column) - int(np.count_nonzero(self.is_null))
        self._average = len(tokens.words) / max(self._count, 1)

        is_one_of_many = np.bincount(stems, minlength=len(self._codes))[stems] > 1
        shared = is_one_of_many[tokens.words]
        variants = _grouped(tokens.words[shared], tokens.documents[shared], len(stems))
        self._documents = np.concatenate([grouped.documents, variants.documents])
        behind = len(grouped.documents)
        self._word_starts = np.where(is_one_of_many, behind + variants.bounds[:-1], self._bounds[stems])
        self._word_stops = np.where(is_one_of_many, behind + variants.bounds[1:], self._bounds[stems + 1])
        self._spelling = Spelling([word.spelling for word in tokens.vocabulary])
        self.is_null.flags.writeable = False

    def __len__(self) -> int:
        """How many rows the column has, nulls included."""
        return len(self.is_null)

    @cached_property
    def nbytes(self) -> int:
        """About how much memory the index takes, its dictionary of terms included."""
        arrays: tuple[Array, ...] = (
            self.is_null,
            self._bounds,
            self._documents,
            self._frequencies,
            self._lengths,
            self._word_starts,
            self._word_stops,
        )
        terms = sys.getsizeof(self._codes) + sum(map(sys.getsizeof, self._codes)) + 32 * len(self._codes)
        return sum(array.nbytes for array in arrays) + self._spelling.nbytes + terms

    def matches(self, query: str, documents: Array | None = None) -> Bools:
        """Which documents (of those given, or all) have any term of the query. No terms match nothing."""
        ranges = [found for term in set(terms_of(query)) if (found := self._term(term)) is not None]
        return self._in_any(ranges, documents)

    def fuzzy_matches(self, query: str, edits: int, documents: Array | None = None) -> Bools:
        """Which documents have a word that is at most some edits from one of the query, or has the same term."""
        wanted = set(words_of(query))
        ranges = {found for word in wanted if (found := self._term(word.term)) is not None}
        for spelling in {word.spelling for word in wanted}:
            near = self._spelling.near(spelling, max(edits, 0))
            ranges.update(map(_Range, self._word_starts[near].tolist(), self._word_stops[near].tolist()))
        return self._in_any(list(ranges), documents)

    def scores(self, query: str, documents: Array | None = None) -> Floats:
        """The BM25 score of each document (of those given, or all); 0 where no term is in it. A term counts as
        often as the query repeats it. The statistics are always of the whole column."""
        if documents is not None and 4 * len(documents) > len(self):
            return np.asarray(self.scores(query)[documents])
        out = np.zeros(len(self) if documents is None else len(documents))
        for term, times in Counter(terms_of(query)).items():
            postings = self._term(term)
            if postings is None:
                continue
            places: slice | Ints
            if documents is None:
                places = slice(*postings)
                rows = self._documents[places]
            else:
                rows, places = self._located(postings, documents)
            frequencies = self._frequencies[places]
            lengths = self._lengths[self._documents[places]] / self._average
            having = postings.stop - postings.start
            out[rows] += term_scores(times, self._count, having, frequencies, lengths)
        return out

    def _term(self, term: str) -> _Range | None:
        code = self._codes.get(term)
        return None if code is None else _Range(int(self._bounds[code]), int(self._bounds[code + 1]))

    def _in_any(self, ranges: list[_Range], documents: Array | None) -> Bools:
        """Which documents are in any of the postings, by looking them up or by marking all, whichever is less."""
        total = sum(found.stop - found.start for found in ranges)
        if documents is not None and 8 * len(ranges) * len(documents) < total:
            held = np.zeros(len(documents), dtype=np.bool_)
            for found in ranges:
                held[self._located(found, documents)[0]] = True
            return held
        marked = np.zeros(len(self), dtype=np.bool_)
        for start, stop in ranges:
            marked[self._documents[start:stop]] = True
        return marked if documents is None else np.asarray(marked[documents])

    def _located(self, postings: _Range, documents: Array) -> tuple[Ints, Ints]:
        """Which of the documents are in some postings, as places in the argument and places in the postings."""
        stretch = self._documents[slice(*postings)]
        # Searching for another type than there is would copy the whole stretch.
        places = np.searchsorted(stretch, documents.astype(np.int32, copy=False))
        rows = np.flatnonzero(stretch[np.minimum(places, len(stretch) - 1)] == documents)
        return rows, places[rows] + postings.start


class _Grouped(NamedTuple):
    """Documents by code: those of code c, ascending, are between bounds c and c + 1."""

    bounds: Ints
    documents: Positions
    frequencies: Array


def _numbered_terms(vocabulary: list[Word]) -> tuple[dict[str, int], Positions]:
    """The terms of a vocabulary with their codes, and the code of each word."""
    codes: dict[str, int] = {}
    stems = (codes.setdefault(word.term, len(codes)) for word in vocabulary)
    return codes, np.fromiter(stems, dtype=np.int32, count=len(vocabulary))


def _grouped(codes: Positions, documents: Ints, groups: int) -> _Grouped:
    """Occurrences sorted by code and document, and counted."""
    keys = codes.astype(np.int64) << 32 | documents
    keys.sort()
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    frequencies = np.diff(firsts, append=len(keys))
    keys = keys[firsts]
    bounds = np.searchsorted(keys, np.arange(groups + 1, dtype=np.int64) << 32)
    smallest = np.min_scalar_type(int(frequencies.max(initial=0)))
    return _Grouped(bounds, (keys & 0xFFFFFFFF).astype(np.int32), frequencies.astype(smallest))
