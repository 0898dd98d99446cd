"""Exact vector search: a vector property as a matrix, and distances to a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.values.columns import Array, Bools, Floats, Ints
from omnigraph.read.values.parallel import in_parallel, parts_of
from omnigraph.read.values.segments import Segment
from omnigraph.read.values.sorting import smallest
from omnigraph.settings import READ_DEFAULTS, ReadSettings

Matrix = npt.NDArray[np.float32]
Metric = Literal["cosine", "l2"]
_ROUNDING: Final = 1e-5
"""How far a sum of products in 32 bits may be off, relative to the lengths of the vectors."""
_CACHED: Final = 1 << 17
"""So many numbers stay in the cache of a processor."""
_MANY: Final = 1 << 22
"""So many numbers are worth fetching in several threads."""
_FEW: Final = 4
"""Vectors are compared one by one if they are fewer than one in so many."""


class VectorBlock:
    """Vectors as a matrix with a row for each, zeros where there is none."""

    def __init__(self, arrow: pa.Array) -> None:
        width = arrow.type.list_size
        flat = arrow.flatten() if not arrow.null_count else pc.fill_null(arrow, [0.0] * width).flatten()
        self.matrix: Matrix = np.asarray(flat.to_numpy(zero_copy_only=False), dtype=np.float32).reshape(-1, width)
        self.valid: Bools | None = None
        if arrow.null_count:
            self.valid = np.asarray(pc.is_valid(arrow).to_numpy(zero_copy_only=False), dtype=np.bool_)

    @property
    def nbytes(self) -> int:
        return int(self.matrix.nbytes + len(self.matrix) * 9)

    @cached_property
    def norms(self) -> Matrix:
        """The length of each vector."""
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", self.matrix, self.matrix)))

    def distances(self, query: Floats, metric: Metric, block: int, positions: Array | None = None) -> Floats:
        """The distance of each vector (or of those at positions) to the query; NaN where there is none."""
        rows = self.matrix if positions is None else self.matrix[positions]
        measure = _euclidean if metric == "l2" else _cosine
        out = measure(rows, query, block)
        if self.valid is not None:
            out[~(self.valid if positions is None else self.valid[positions])] = np.nan
        return out

    def rough(self, query: Floats, metric: Metric, positions: Array | None = None) -> Matrix:
        """Numbers that order the vectors (or those at positions) as their distances do but for rounding; infinite
        where there is none."""
        some: slice | Array = slice(None) if positions is None else positions
        vector = query.astype(np.float32)
        scores = self.matrix @ vector if positions is None else self._products(vector, positions)
        norms = self.norms[some]
        if metric == "l2":
            scores = norms * norms - 2 * scores
        else:
            scores /= -np.where(norms == 0, np.float32(1), norms)
        if self.valid is not None:
            scores[~self.valid[some]] = np.inf
        return np.asarray(scores)

    def _products(self, vector: Matrix, positions: Array) -> Matrix:
        """The products of a vector with those at positions, which are fetched so few at a time that they stay in
        the processor's cache."""
        out = np.empty(len(positions), dtype=np.float32)
        width = self.matrix.shape[1]
        together = max(1, _CACHED // width)

        def work(start: int, stop: int) -> None:
            fetched = np.empty((min(together, stop - start), width), dtype=np.float32)
            for low in range(start, stop, together):
                some = positions[low : min(low + together, stop)]
                rows = self.matrix.take(some, axis=0, out=fetched[: len(some)], mode="clip")
                np.dot(rows, vector, out=out[low : low + len(some)])

        parts = parts_of(len(positions) * width, _MANY)
        bounds = [len(positions) * part // parts for part in range(parts + 1)]
        in_parallel(work, pairwise(bounds))
        return out


class VectorColumn:
    """The vectors of a property by position, in one block or in several."""

    def __init__(self, arrow: pa.Array, settings: ReadSettings = READ_DEFAULTS) -> None:
        self._segments: tuple[Segment[VectorBlock], ...] = (Segment(0, len(arrow), VectorBlock(arrow)),)
        self._size = len(arrow)
        self._live: Bools | None = None
        self._block = settings.vector_block

    @classmethod
    def over(
        cls, segments: Sequence[Segment[VectorBlock]], size: int, live: Bools | None, settings: ReadSettings
    ) -> VectorColumn:
        """The vectors in blocks, up to a position; ``live`` tells which positions have rows."""
        column = cls.__new__(cls)
        column._segments = tuple(segment for segment in segments if segment.start < size)
        column._size, column._live, column._block = size, live, settings.vector_block
        return column

    @property
    def nbytes(self) -> int:
        return sum(segment.made.nbytes for segment in self._segments)

    def between(self, low: int, high: int) -> tuple[Matrix, Bools | None]:
        """The vectors between two positions, and which of them there are; None if all are."""
        parts = [part for part in self._segments if part.start < high and low < part.stop]
        cuts = [
            (part.made, slice(max(low, part.start) - part.start, min(high, part.stop) - part.start))
            for part in parts
        ]
        rows = [made.matrix[cut] for made, cut in cuts]
        matrix = rows[0] if len(rows) == 1 else np.concatenate(rows)
        if all(made.valid is None for made, _ in cuts):
            return matrix, None
        valid = [np.ones(len(own), dtype=np.bool_) for own in rows]
        for own, (made, cut) in zip(valid, cuts, strict=True):
            if made.valid is not None:
                own[:] = made.valid[cut]
        return matrix, np.concatenate(valid)

    def distances(self, query: Floats, metric: Metric, positions: Array | None = None) -> Floats:
        """The distance of each vector (or of those at positions) to the query; NaN where there is none."""
        if len(self._segments) == 1 and (positions is not None or self._segments[0].stop == self._size):
            return self._segments[0].made.distances(query, metric, self._block, positions)
        if positions is None:
            parts = [part.made.distances(query, metric, self._block) for part in self._segments]
            return np.concatenate([np.zeros(0), *parts])[: self._size]
        out = np.full(len(positions), np.nan)
        for part in self._segments:
            inside = np.flatnonzero((positions >= part.start) & (positions < part.stop))
            if len(inside):
                own = positions[inside] - part.start
                out[inside] = part.made.distances(query, metric, self._block, own)
        return out

    def nearest(self, query: Floats, metric: Metric, count: int, among: Array | None = None) -> Ints:
        """Positions of all that can be among the ``count`` nearest, of all vectors or of those at some positions,
        which ascend, by a fast pass in 32 bits. They include every tie, and everything that rounding could have
        moved across the border: exact distances decide."""
        places = among if among is not None or self._live is None else np.flatnonzero(self._live)
        if count >= (self._size if places is None else len(places)):
            return np.arange(self._size) if places is None else places
        if places is not None and _FEW * len(places) < self._size:
            scores = np.concatenate([part.made.rough(query, metric, own) for part, own in self._own(places)])
            return places[self._best(scores, query, metric, count)]
        allowed = self._live
        if among is not None:
            allowed = np.zeros(self._size, dtype=np.bool_)
            allowed[among] = True
        parts = [part.made.rough(query, metric) for part in self._segments]
        scores = (parts[0] if len(parts) == 1 else np.concatenate(parts))[: self._size]
        if allowed is not None:
            scores = np.where(allowed, scores, np.float32(np.inf))
        chosen = self._best(scores, query, metric, count)
        return chosen if allowed is None else chosen[allowed[chosen]]

    def _own(self, places: Ints) -> Iterator[tuple[Segment[VectorBlock], Ints]]:
        """The segments, each with those of the places, which ascend, that lie in it, counted from its start."""
        for part in self._segments:
            low, high = np.searchsorted(places, (part.start, part.stop))
            yield part, places[low:high] - part.start

    def _best(self, scores: Matrix, query: Floats, metric: Metric, count: int) -> Ints:
        """The numbers of the smallest scores, and of all that rounding could have kept from being among them."""
        rounding = _ROUNDING * float(np.sqrt(query @ query))
        if metric == "l2":
            longest = max(float(part.made.norms.max(initial=0)) for part in self._segments)
            rounding = _ROUNDING * (longest**2 + float(query @ query))
        border = float(smallest(scores, count)) if count else -np.inf
        return np.flatnonzero(scores <= border + 2 * rounding)


def _euclidean(rows: Matrix, query: Floats, block: int) -> Floats:
    """In 64 bits, block by block, so that close vectors keep their small distances."""
    out = np.empty(len(rows), dtype=np.float64)
    for low in range(0, len(rows), block):
        difference = rows[low : low + block] - query
        out[low : low + block] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    return out


def _cosine(rows: Matrix, query: Floats, block: int) -> Floats:
    """1 minus the cosine; a vector of zeros is at distance 1 from everything."""
    length = float(np.sqrt(query @ query))
    out = np.ones(len(rows), dtype=np.float64)
    if length == 0:
        return out
    for low in range(0, len(rows), block):
        some = slice(low, low + block)
        wide = rows[some].astype(np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        with np.errstate(invalid="ignore", divide="ignore"):
            # A matrix product would round equal rows differently, and then ties would not be ties.
            cosine = np.einsum("ij,j->i", wide, query) / (lengths * length)
        out[some] = np.where(lengths == 0, 1.0, 1.0 - cosine)
    return out
