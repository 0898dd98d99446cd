"""The positions of ids, for millions of them at a time, by hashes that are computed for whole arrays.

Arrow's `index_in` builds its hash table anew for every call, which for a large table takes longer than the
look-ups. Here the table is built once. A hash only suggests a position: every answer is compared with the id
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.values.columns import Array, Bools, Ints, Positions
from omnigraph.read.values.segments import Segment

Hashes = npt.NDArray[np.uint64]
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_DOWN: Final = np.uint64(29)
_WORD: Final = 8
_MASKS: Final = np.array([(1 << (8 * size)) - 1 for size in range(_WORD)] + [2**64 - 1], dtype=np.uint64)


class IdIndex:
    """Ids by position, sorted by hash, with a directory of where each range of hashes begins."""

    def __init__(self, ids: pa.Array, hash_texts: Callable[[pa.Array], Hashes] | None = None) -> None:
        self._hashed = hashed if hash_texts is None else hash_texts
        hashes = self._hashed(ids)
        order = np.argsort(hashes)
        ordered = hashes[order]
        bits = max(1, len(hashes).bit_length())
        self._shift = np.uint64(64 - bits)
        firsts = np.arange(1 << bits, dtype=np.uint64) << self._shift
        self._directory = np.searchsorted(ordered, firsts).astype(np.int32)
        self._is_exact = bool((ordered[1:] != ordered[:-1]).all())
        if not self._is_exact:
            order = len(hashes) - 1 - np.argsort(hashes[::-1], kind="stable")  # the latest of equal ones first
        self._order: Positions = order.astype(np.int32)
        self._hashes: Hashes = np.append(ordered, np.uint64(2**64 - 1))

    @property
    def nbytes(self) -> int:
        return int(self._directory.nbytes + self._order.nbytes + self._hashes.nbytes)

    def places(self, ids: pa.Array, wanted: pa.Array, live: Bools | None = None) -> Positions:
        """The position of each wanted id among the ids of the index; -1 where there is no such id. An id may have
        several positions, of which one at most is ``live``."""
        found = np.full(len(wanted), -1, dtype=np.int32)
        hashes = self._hashed(wanted)
        at = self._directory[hashes >> self._shift]
        last = len(self._order)
        waiting = np.arange(len(hashes))
        while len(waiting):
            there, asked = self._hashes[at], hashes[waiting]
            hit = np.flatnonzero((there == asked) & (at < last))
            rows = waiting[hit]
            found[rows] = _confirmed(self._order[at[hit]], ids, wanted, rows, live)
            on = (there < asked) & (at < last)
            if not self._is_exact:
                # An id that is not there, or not live, may have the hash of one that is.
                on |= (there == asked) & (at < last) & (found[waiting] < 0)
            waiting, at = waiting[on], at[on] + 1
        return found


def _confirmed(places: Positions, ids: pa.Array, wanted: pa.Array, rows: Ints, live: Bools | None) -> Positions:
    """The places that hold the wanted ids of some rows and are live; -1 instead of the others."""
    if not len(rows):
        return places
    asked = wanted if len(rows) == len(wanted) else wanted.take(pa.array(rows))
    same = pc.equal(ids.take(pa.array(places)), asked)
    held = np.asarray(same.to_numpy(zero_copy_only=False), dtype=np.bool_)
    if live is not None:
        held &= live[places]
    return np.where(held, places, np.int32(-1))


class Ids:
    """The ids of a table by position, in one segment or in several."""

    def __init__(self, segments: Sequence[Segment[IdIndex]]) -> None:
        self.segments = tuple(segments)

    @property
    def nbytes(self) -> int:
        return sum(segment.made.nbytes for segment in self.segments)

    def places(self, ids: pa.Array, wanted: pa.Array, size: int, live: Bools | None) -> Positions:
        """The position of each wanted id in a version that has so many positions; -1 where it has no such id."""
        if len(self.segments) == 1 and self.segments[0].stop == size:
            return self.segments[0].made.places(ids, wanted, live)
        found = np.full(len(wanted), -1, dtype=np.int32)
        live = np.ones(size, dtype=np.bool_) if live is None else live
        for segment in reversed(self.segments):
            missing = np.flatnonzero(found < 0)
            if segment.start >= size or not len(missing):
                continue
            own = np.zeros(segment.stop - segment.start, dtype=np.bool_)
            part = live[segment.start : segment.stop]
            own[: len(part)] = part
            there = ids.slice(segment.start, segment.stop - segment.start)
            places = segment.made.places(there, wanted.take(pa.array(missing)), own)
            found[missing] = np.where(places < 0, -1, places + segment.start)
        return found


def hashed(texts: pa.Array) -> Hashes:
    """A hash of each text, from its bytes, eight at a time."""
    offsets, raw = _buffers(texts)
    sizes, starts = np.diff(offsets), offsets[:-1]
    words = np.ndarray((len(raw) - _WORD + 1,), dtype="<u8", buffer=raw, strides=(1,))
    hashes: Hashes = sizes.astype(np.uint64) * _FACTOR
    for word in range(0, int(sizes.max(initial=0)), _WORD):
        longer = np.flatnonzero(sizes > word)
        left = np.minimum(sizes[longer] - word, _WORD)
        mixed = hashes[longer]
        mixed ^= words[starts[longer] + word] & _MASKS[left]
        mixed *= _FACTOR
        mixed ^= mixed >> _DOWN
        hashes[longer] = mixed
    return hashes


def _buffers(texts: pa.Array) -> tuple[npt.NDArray[np.int64], Array]:
    """Where each text begins and ends among the bytes of all, with room behind the last for a whole word."""
    wide = pa.types.is_large_string(texts.type)
    _, places, content = texts.buffers()
    if not len(texts) or content is None:
        return np.zeros(len(texts) + 1, dtype=np.int64), np.zeros(_WORD, dtype=np.uint8)
    every = np.frombuffer(places, dtype=np.int64 if wide else np.int32)
    offsets = every[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    raw = np.frombuffer(content, dtype=np.uint8)
    end = int(offsets[-1])
    if len(raw) < end + _WORD:
        raw = np.concatenate([raw[:end], np.zeros(_WORD, dtype=np.uint8)])
    return offsets, raw
