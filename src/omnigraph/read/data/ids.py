"""The positions of ids, for millions of them at a time, by hashes that are computed for whole arrays.

Arrow's `index_in` builds its hash table anew for every call, which for a large table takes longer than the
look-ups. Here the table is built once. A hash only suggests a position: every answer is compared with the id
itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.values.columns import Array, Positions, filled

Hashes = npt.NDArray[np.uint64]
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_DOWN: Final = np.uint64(29)
_WORD: Final = 8
_MASKS: Final = np.array([(1 << (8 * size)) - 1 for size in range(_WORD)] + [2**64 - 1], dtype=np.uint64)


class IdIndex:
    """The ids of a table by position, sorted by hash, with a directory of where each range of hashes begins."""

    def __init__(self, ids: pa.Array, hash_texts: Callable[[pa.Array], Hashes] | None = None) -> None:
        self._ids = ids
        self._hashed = hashed if hash_texts is None else hash_texts
        hashes = self._hashed(ids)
        order = np.argsort(hashes)
        ordered = hashes[order]
        bits = max(1, len(hashes).bit_length())
        self._shift = np.uint64(64 - bits)
        firsts = np.arange(1 << bits, dtype=np.uint64) << self._shift
        self._directory = np.searchsorted(ordered, firsts).astype(np.int32)
        self._is_exact = bool((ordered[1:] != ordered[:-1]).all())
        self._order: Positions = order.astype(np.int32)
        self._hashes: Hashes = np.append(ordered, np.uint64(2**64 - 1))

    @property
    def nbytes(self) -> int:
        return int(self._directory.nbytes + self._order.nbytes + self._hashes.nbytes)

    def places(self, wanted: pa.Array) -> Positions:
        """The position of each id; -1 where there is no such id."""
        if not self._is_exact:
            return _looked_up(wanted, self._ids)
        found = self._suggested(self._hashed(wanted))
        known = np.flatnonzero(found >= 0)
        same = pc.equal(self._ids.take(pa.array(found[known])), wanted.take(pa.array(known)))
        wrong = known[~np.asarray(same.to_numpy(zero_copy_only=False), dtype=np.bool_)]
        # An id that is not there may have the hash of one that is.
        found[wrong] = -1
        return found

    def _suggested(self, hashes: Hashes) -> Positions:
        """The position whose id has the same hash; -1 where none has."""
        found = np.full(len(hashes), -1, dtype=np.int32)
        last = len(self._order)
        at = self._directory[hashes >> self._shift]
        waiting = np.arange(len(hashes))
        while len(waiting):
            there, asked = self._hashes[at], hashes[waiting]
            hit = (there == asked) & (at < last)
            found[waiting[hit]] = self._order[at[hit]]
            on = (there < asked) & (at < last)
            waiting, at = waiting[on], at[on] + 1
        return found


def _looked_up(wanted: pa.Array, ids: pa.Array) -> Positions:
    return filled(pc.index_in(wanted, value_set=ids), -1).astype(np.int32, copy=False)


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
