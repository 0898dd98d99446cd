"""The index of one text column: postings, in one segment or in several, of which some rows may be deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.read.text.analysis import go_on, terms_of, words_of
from omnigraph.read.text.bm25 import most_of_term, rough_scores, term_scores
from omnigraph.read.text.postings import Postings
from omnigraph.read.values.columns import Array, Bools, Floats, Ints
from omnigraph.read.values.segments import Segment
from omnigraph.read.values.sorting import smallest
from omnigraph.settings import READ_DEFAULTS, ReadSettings

_FEW: Final = 16
"""Documents are scored one by one if they are fewer than one in so many."""
_ROUNDING: Final = 1e-5
"""How far a sum of scores in 32 bits may be off, relative to itself."""


class TextIndex:
    """Finds and scores the texts of a column. A document is a position of the column."""

    def __init__(
        self,
        column: pa.ChunkedArray | pa.Array,
        check: Callable[[], None] = go_on,
        settings: ReadSettings = READ_DEFAULTS,
    ) -> None:
        self._over([Segment(0, len(column), Postings.of(column, check, settings))], len(column), None)

    @classmethod
    def over(cls, segments: Sequence[Segment[Postings]], size: int, live: Bools | None) -> TextIndex:
        """The index over the texts up to a position; ``live`` tells which positions have rows."""
        index = cls.__new__(cls)
        index._over(segments, size, live)
        return index

    def _over(self, segments: Sequence[Segment[Postings]], size: int, live: Bools | None) -> None:
        self._segments = tuple(segment for segment in segments if segment.start < max(size, 1))
        self._size = size
        stop = self._segments[-1].stop
        if live is None and stop > size:
            live = np.ones(size, dtype=np.bool_)
        self._live = None if live is None else np.append(live, np.zeros(stop - size, dtype=np.bool_))
        is_null = [segment.made.is_null for segment in self._segments]
        self.is_null: Bools = (is_null[0] if len(is_null) == 1 else np.concatenate(is_null))[:size]
        self._texts = self._words = 0
        for segment in self._segments:
            made, own = segment.made, self._own(segment)
            counted = ~made.is_null if own is None else own & ~made.is_null
            self._texts += int(np.count_nonzero(counted))
            self._words += int(made.lengths.sum() if own is None else made.lengths[own].sum())

    @cached_property
    def _gone(self) -> list[Ints]:
        """By segment: the documents in it that are not live."""
        own = [self._own(segment) for segment in self._segments]
        return [np.zeros(0, dtype=np.int64) if one is None else np.flatnonzero(~one) for one in own]

    def _own(self, segment: Segment[Postings]) -> Bools | None:
        return None if self._live is None else self._live[segment.start : segment.stop]

    def __len__(self) -> int:
        """How many positions the column has, nulls included."""
        return self._size

    @property
    def nbytes(self) -> int:
        """About how much memory the index takes."""
        beside = 0 if self._live is None else self._live.nbytes
        return beside + sum(segment.made.nbytes for segment in self._segments)

    def matches(self, query: str, documents: Array | None = None) -> Bools:
        """Which documents (of those given, or all) have any term of the query. No terms match nothing."""
        terms = set(terms_of(query))
        return self._found(documents, lambda postings, own: postings.with_terms(terms, own))

    def fuzzy_matches(self, query: str, edits: int, documents: Array | None = None) -> Bools:
        """Which documents have a word that is at most some edits from one of the query, or has the same term."""
        words = set(words_of(query))
        return self._found(documents, lambda postings, own: postings.with_words(words, edits, own))

    def _found(self, documents: Array | None, find: Callable[[Postings, Array | None], Bools]) -> Bools:
        parts = list(self._parts(documents))
        if len(parts) == 1 and parts[0][1] is None:
            return find(parts[0][0].made, parts[0][2])[: self._size if documents is None else None]
        held = np.zeros(self._segments[-1].stop if documents is None else len(documents), dtype=np.bool_)
        for segment, rows, own in parts:
            where = slice(segment.start, segment.stop) if rows is None else rows
            held[where] = find(segment.made, own)
        return held[: self._size] if documents is None else held

    def _parts(self, documents: Array | None) -> Iterator[tuple[Segment[Postings], Ints | None, Array | None]]:
        """The segments, each with the numbers of the documents that lie in it, and their places there."""
        for segment in self._segments:
            if documents is None or len(self._segments) == 1:
                yield segment, None, documents
                continue
            inside = np.flatnonzero((documents >= segment.start) & (documents < segment.stop))
            if len(inside):
                yield segment, inside, documents[inside] - segment.start

    def scores(self, query: str, documents: Array | None = None) -> Floats:
        """The BM25 score of each document (of those given, or all); 0 where no term is in it. A term counts as
        often as the query repeats it. The statistics are always of the whole column."""
        if documents is not None and 4 * len(documents) > len(self):
            return np.asarray(self.scores(query)[documents])
        out = np.zeros(self._segments[-1].stop if documents is None else len(documents))
        parts = list(self._parts(documents))
        for term, times, having in self._terms(query):
            for segment, numbers, own in parts:
                rows, frequencies, lengths = segment.made.occurrences(term, own)
                if documents is None:
                    rows = rows + segment.start if segment.start else rows
                elif numbers is not None:
                    rows = numbers[rows]
                out[rows] += term_scores(times, self._texts, having, frequencies, lengths / self._average)
        return out[: self._size] if documents is None else out

    @property
    def _average(self) -> float:
        """How many words a text has on average."""
        return self._words / max(self._texts, 1)

    def _terms(self, query: str) -> Iterator[tuple[str, int, int]]:
        """The terms of a query that are in any text, how often each is in the query, and in how many texts."""
        for term, times in Counter(terms_of(query)).items():
            having = sum(
                segment.made.having(term, gone) for segment, gone in zip(self._segments, self._gone, strict=True)
            )
            if having:
                yield term, times, having

    def best(self, query: str, count: int, among: Array | None = None) -> Ints:
        """The documents with the best so many scores above zero, of all or of those given, which ascend, and all
        that tie with the last of them; ascending.

        Terms are followed from the rarest on, in 32 bits, until those that are left cannot bring a document among
        the best that has none of the others. Exact scores then decide.
        """
        if among is not None and _FEW * len(among) < self._size:
            return self._best_of(query, count, among)
        allowed = self._live
        if among is not None:
            allowed = np.zeros(self._segments[-1].stop, dtype=np.bool_)
            allowed[among] = True
        terms = [(most_of_term(times, self._texts, having), term) for term, times, having in self._terms(query)]
        rest = sum(most for most, _ in terms)
        sums = np.zeros(self._segments[-1].stop, dtype=np.float32)
        held: Array = np.zeros(0, dtype=np.int32)
        border = 0.0
        for most, term in sorted(terms, reverse=True):
            held = np.concatenate([held, *self._added(sums, term, most, allowed)])
            rest -= most
            if len(held) >= count:
                border = -float(smallest(-sums[held], count)) * (1 - _ROUNDING)
            if border > rest:
                break
        return self._best_of(query, count, np.sort(held[sums[held] + max(rest, 0.0) >= border]))

    def _added(
        self, sums: npt.NDArray[np.float32], term: str, most: float, allowed: Bools | None
    ) -> Iterator[Array]:
        """Add what a term brings to the sums of documents. Returns those that had nothing before."""
        for segment in self._segments:
            documents, frequencies, lengths = segment.made.occurrences(term, None)
            scores = rough_scores(most, frequencies, lengths, self._average)
            if segment.start:
                documents = documents + segment.start
            if allowed is not None:
                chosen = allowed[documents]
                documents, scores = documents[chosen], scores[chosen]
            before = sums[documents]
            sums[documents] = before + scores
            yield documents[before == 0]

    def _best_of(self, query: str, count: int, documents: Array) -> Ints:
        scores = self.scores(query, documents)
        held = np.flatnonzero(scores > 0)
        if len(held) > count:
            held = held[scores[held] >= -smallest(-scores[held], count)]
        return documents[held].astype(np.int64, copy=False)
