"""Postings: for each term the documents it is in and how often.

A document is a row number among the texts. Postings never change, so any number of threads can use them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from omnigraph.read.text.analysis import Word, go_on, tokenize
from omnigraph.read.text.vocabulary import Texts, Vocabulary
from omnigraph.read.values.columns import Array, Bools, Ints, Positions
from omnigraph.settings import READ_DEFAULTS, ReadSettings

if TYPE_CHECKING:
    from omnigraph.read.text.spelling import Spelling

_NOWHERE: Final = np.zeros(0, dtype=np.int32)


class PostingArrays(NamedTuple):
    """What postings consist of.

    Postings lie in one array, sorted by term and document: those of the term with code c between ``bounds`` c and
    c + 1. A search for similar spellings has to know which word of a term a document has, so the words of terms
    that have more than one follow behind, each with its documents.
    """

    is_null: Bools
    """By document: has it no text?"""
    lengths: Positions
    """By document: how many words it has."""
    bounds: Ints
    documents: Positions
    frequencies: Array
    word_starts: Ints
    """By word: where the documents begin that have it, …"""
    word_stops: Ints
    """… and where they end."""
    term_offsets: Ints
    """The terms, ascending …"""
    term_content: Array
    spelling_offsets: Ints
    """… and the spellings of words."""
    spelling_content: Array


class Postings:
    """The postings of some texts, with what BM25 and approximate spelling need."""

    def __init__(self, arrays: PostingArrays) -> None:
        self.arrays = arrays
        self.is_null, self.lengths = arrays.is_null, arrays.lengths
        self._bounds, self._documents, self._frequencies = arrays.bounds, arrays.documents, arrays.frequencies
        self._terms = Vocabulary(Texts(arrays.term_offsets, arrays.term_content))

    @classmethod
    def of(
        cls,
        column: pa.ChunkedArray | pa.Array,
        check: Callable[[], None] = go_on,
        settings: ReadSettings = READ_DEFAULTS,
    ) -> Postings:
        """The postings of a column. Making them takes a while: ``check`` is called between batches, and may raise
        to stop it."""
        is_null: Bools = np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
        is_null.flags.writeable = False
        tokens = tokenize(column, check, settings)
        terms, stems = _numbered_terms(tokens.vocabulary)
        grouped = _grouped(stems[tokens.words], tokens.documents, len(terms.offsets) - 1)
        lengths = np.bincount(tokens.documents, minlength=len(column)).astype(np.int32)

        is_one_of_many = np.bincount(stems, minlength=len(terms.offsets) - 1)[stems] > 1
        shared = is_one_of_many[tokens.words]
        variants = _grouped(tokens.words[shared], tokens.documents[shared], len(stems))
        behind = len(grouped.documents)
        return cls(
            PostingArrays(
                is_null,
                lengths,
                grouped.bounds,
                np.concatenate([grouped.documents, variants.documents]),
                grouped.frequencies,
                np.where(is_one_of_many, behind + variants.bounds[:-1], grouped.bounds[stems]),
                np.where(is_one_of_many, behind + variants.bounds[1:], grouped.bounds[stems + 1]),
                *terms,
                *Texts.of(word.spelling for word in tokens.vocabulary),
            )
        )

    def moved(self, positions: Positions, size: int) -> Postings:
        """The same texts at other positions, which ascend, of so many; those with -1 are left out. Where no text
        is moved to there is none."""
        arrays, there = self.arrays, np.flatnonzero(positions >= 0)
        documents = positions[arrays.documents]
        kept = documents >= 0
        before = np.zeros(len(kept) + 1, dtype=np.int64)
        np.cumsum(kept, out=before[1:])
        is_null, lengths = np.ones(size, dtype=np.bool_), np.zeros(size, dtype=np.int32)
        is_null[positions[there]], lengths[positions[there]] = arrays.is_null[there], arrays.lengths[there]
        return Postings(
            arrays._replace(
                is_null=is_null,
                lengths=lengths,
                bounds=before[arrays.bounds],
                documents=documents[kept],
                frequencies=arrays.frequencies[kept[: len(arrays.frequencies)]],
                word_starts=before[arrays.word_starts],
                word_stops=before[arrays.word_stops],
            )
        )

    def __len__(self) -> int:
        """How many rows there are, nulls included."""
        return len(self.is_null)

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        spelling = vars(self).get("_spelling")
        return sum(array.nbytes for array in self.arrays) + (0 if spelling is None else spelling.nbytes)

    @cached_property
    def _spelling(self) -> Spelling:
        from omnigraph.read.text.spelling import Spelling

        return Spelling(Texts(self.arrays.spelling_offsets, self.arrays.spelling_content).decoded())

    def having(self, term: str, gone: Ints) -> int:
        """How many documents have a term, without those that are ``gone``."""
        found = self._term(term)
        if found is None:
            return 0
        return len(found) - _common(self._documents[found.start : found.stop], gone)

    def with_terms(self, terms: Iterable[str], documents: Array | None) -> Bools:
        """Which documents (of those given, or all) have any of the terms."""
        return self._in_any([found for term in terms if (found := self._term(term)) is not None], documents)

    def with_words(self, words: Iterable[Word], edits: int, documents: Array | None) -> Bools:
        """Which documents have a word that is at most some edits from one of the words, or has the same term."""
        wanted = set(words)
        ranges = {found for word in wanted if (found := self._term(word.term)) is not None}
        for spelling in {word.spelling for word in wanted}:
            near = self._spelling.near(spelling, max(edits, 0))
            starts, stops = self.arrays.word_starts[near], self.arrays.word_stops[near]
            ranges.update(filter(None, map(range, starts.tolist(), stops.tolist())))
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
        code = self._terms.code(term)
        if code is None:
            return None
        found = range(int(self._bounds[code]), int(self._bounds[code + 1]))
        return found or None

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


def _common(left: Array, right: Array) -> int:
    """How many numbers two ascending arrays have in common."""
    few, many = sorted((left, right), key=len)
    if not len(few):
        return 0
    places = np.searchsorted(many, few.astype(many.dtype, copy=False))
    return int(np.count_nonzero(many[np.minimum(places, len(many) - 1)] == few))


class _Grouped(NamedTuple):
    """Documents by code: those of code c, ascending, are between bounds c and c + 1."""

    bounds: Ints
    documents: Positions
    frequencies: Array


def _numbered_terms(vocabulary: list[Word]) -> tuple[Texts, Positions]:
    """The terms of a vocabulary in ascending order, and for each word the place of its term among them."""
    terms = sorted({word.term for word in vocabulary})
    codes = {term: code for code, term in enumerate(terms)}
    stems = (codes[word.term] for word in vocabulary)
    return Texts.of(terms), np.fromiter(stems, dtype=np.int32, count=len(vocabulary))


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
