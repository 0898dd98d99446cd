"""Postings: for each term the documents it is in and how often.

A document is a row number among the texts. Postings never change, so any number of threads can use them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from omnigraph.read.text.analysis import Word, go_on, tokenize
from omnigraph.read.text.spelling import Spelling
from omnigraph.read.values.columns import Array, Bools, Ints, Positions
from omnigraph.settings import READ_DEFAULTS, ReadSettings

_NOWHERE: Final = np.zeros(0, dtype=np.int32)


class Postings:
    """The postings of some texts, with what BM25 and approximate spelling need.

    Postings lie in one array, sorted by term and document. A search for similar spellings has to know which word
    of a term a document has, so the words of terms that have more than one follow behind, each with its documents.

    Making them takes a while: ``check`` is called between batches, and may raise to stop it.
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
        self.lengths = np.bincount(tokens.documents, minlength=len(column)).astype(np.int32)

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
        """How many rows there are, nulls included."""
        return len(self.is_null)

    @cached_property
    def nbytes(self) -> int:
        """About how much memory they take, the dictionary of terms included."""
        arrays: tuple[Array, ...] = (
            self.is_null,
            self._bounds,
            self._documents,
            self._frequencies,
            self.lengths,
            self._word_starts,
            self._word_stops,
        )
        terms = sys.getsizeof(self._codes) + sum(map(sys.getsizeof, self._codes)) + 32 * len(self._codes)
        return sum(array.nbytes for array in arrays) + self._spelling.nbytes + terms

    def having(self, term: str, live: Bools | None) -> int:
        """How many documents have a term, of all or of those that are ``live``."""
        found = self._term(term)
        if found is None:
            return 0
        if live is None:
            return len(found)
        return int(np.count_nonzero(live[self._documents[found.start : found.stop]]))

    def with_terms(self, terms: Iterable[str], documents: Array | None) -> Bools:
        """Which documents (of those given, or all) have any of the terms."""
        return self._in_any([found for term in terms if (found := self._term(term)) is not None], documents)

    def with_words(self, words: Iterable[Word], edits: int, documents: Array | None) -> Bools:
        """Which documents have a word that is at most some edits from one of the words, or has the same term."""
        wanted = set(words)
        ranges = {found for word in wanted if (found := self._term(word.term)) is not None}
        for spelling in {word.spelling for word in wanted}:
            near = self._spelling.near(spelling, max(edits, 0))
            ranges.update(map(range, self._word_starts[near].tolist(), self._word_stops[near].tolist()))
        return self._in_any(list(ranges), documents)

    def occurrences(self, term: str, documents: Array | None) -> tuple[Array, Array, Array]:
        """Where a term is: the rows (numbers among the documents given, or of all), how often it is in each, and
        how long each is."""
        postings = self._term(term)
        if postings is None:
            return _NOWHERE, _NOWHERE, _NOWHERE
        places: slice | Ints
        if documents is None:
            places = slice(postings.start, postings.stop)
            rows: Array = self._documents[places]
        else:
            rows, places = self._located(postings, documents)
        return rows, self._frequencies[places], self.lengths[self._documents[places]]

    def _term(self, term: str) -> range | None:
        code = self._codes.get(term)
        return None if code is None else range(int(self._bounds[code]), int(self._bounds[code + 1]))

    def _in_any(self, ranges: list[range], documents: Array | None) -> Bools:
        """Which documents are in any of the postings, by looking them up or by marking all, whichever is less."""
        total = sum(map(len, ranges))
        if documents is not None and 8 * len(ranges) * len(documents) < total:
            held = np.zeros(len(documents), dtype=np.bool_)
            for found in ranges:
                held[self._located(found, documents)[0]] = True
            return held
        marked = np.zeros(len(self), dtype=np.bool_)
        for found in ranges:
            marked[self._documents[found.start : found.stop]] = True
        return marked if documents is None else np.asarray(marked[documents])

    def _located(self, postings: range, documents: Array) -> tuple[Ints, Ints]:
        """Which of the documents are in some postings, as places in the argument and places in the postings."""
        stretch = self._documents[postings.start : postings.stop]
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
