"""An exact index of texts: where each of them is, by open addressing on 64-bit hashes.

A text is packed into words of eight bytes, filled up with a byte that UTF-8 never has, so that two texts are equal
if and only if their words are. A slot of the table has half of a hash and a position. Whatever has the hash of a
wanted text is compared with it before it counts as found. Texts are read in blocks that fit caches.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.values.arrays import to_arrow
from omnigraph.read.values.columns import Bools, Ints, Positions
from omnigraph.records import dataclass

Words = npt.NDArray[np.uint64]
_WORD: Final = 8
WIDEST: Final = 64
"""So many bytes of a text are packed; longer texts are compared as texts."""
_BLOCK: Final = 1 << 15
_BY_WORDS: Final = 1024
"""So many bytes of a text are brought into its hash by words; the rest of a very long one by a checksum."""
_EARLY: Final = 3
"""After so many slots nearly all texts of a block are found. The others of all blocks go on together."""
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(2**32 - 1)
_EMPTY: Final = np.uint64(2**64 - 1)
_FILL: Final = ~np.array([(1 << (8 * size)) - 1 for size in range(_WORD)] + [2**64 - 1], dtype=np.uint64)
"""What the bytes behind the end of a text are set to, by the number of its bytes in the word."""
_TRIES: Final = 8
"""A good hash needs 1.5 tries per text. After so many, the texts that still have no slot are searched as texts."""


def mixed(words: Words) -> Words:
    """A hash of each row of words."""
    hashes: Words = words[:, 0] * _FACTOR
    hashes ^= hashes >> _HALF
    for column in range(1, words.shape[1]):
        hashes ^= words[:, column]
        hashes *= _FACTOR
        hashes ^= hashes >> _HALF
    return hashes


def hashed(texts: pa.Array) -> Words:
    """A hash of each text."""
    hashes = np.zeros(len(texts), dtype=np.uint64)
    TextBytes.of(texts).mix(0, len(texts), hashes, 0)
    return hashes


class ExactIndex:
    """Texts by position. One text may be at several positions; nulls are at none."""

    def __init__(self, texts: pa.Array, mix: Callable[[Words], Words] = mixed) -> None:
        self._mix = mix
        packed = TextBytes.of(texts)
        self._widest = packed.longest
        self._words = np.empty((len(texts), max(1, -(-min(packed.longest, WIDEST) // _WORD))), dtype=np.uint64)
        hashes = np.empty(len(texts), dtype=np.uint64)
        for start in range(0, len(texts), _BLOCK):
            stop = min(len(texts), start + _BLOCK)
            packed.pack(start, stop, self._words[start:stop])
            hashes[start:stop] = self._hashed(packed, start, stop, self._words[start:stop])
        self._long_at = (
            np.flatnonzero(packed.sizes >= WIDEST) if packed.longest > WIDEST else np.zeros(0, np.int64)
        )
        self._long = texts.take(to_arrow(self._long_at))
        self.has_repeats = False
        bits = max(1, (2 * len(texts)).bit_length())
        self._mask = np.int64((1 << bits) - 1)
        self._slots = np.full(1 << bits, _EMPTY, dtype=np.uint64)
        rest = self._fill(hashes, _valid(texts))
        self._rest = rest.astype(np.int32)
        self._rest_texts = texts.take(to_arrow(rest))
        self.has_repeats |= pc.count_distinct(self._rest_texts).as_py() < len(rest)

    def __len__(self) -> int:
        return len(self._words)

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        texts = self._long.nbytes + self._rest_texts.nbytes
        return int(self._words.nbytes + self._slots.nbytes + self._long_at.nbytes + self._rest.nbytes + texts)

    def places(self, wanted: pa.Array, live: Bools | None = None) -> Positions:
        """A position of each text, one that is ``live`` if that is given; -1 where there is none."""
        found = np.full(len(wanted), -1, dtype=np.int32)
        packed, valid = TextBytes.of(wanted), _valid(wanted)
        late: list[_Search] = []
        for start in range(0, len(wanted), _BLOCK):
            rows = np.arange(start, min(len(wanted), start + _BLOCK))
            words = np.empty((len(rows), self._words.shape[1]), dtype=np.uint64)
            packed.pack(start, start + len(rows), words)
            hashes = self._hashed(packed, start, start + len(rows), words)
            search = _Search(rows, words, hashes.astype(np.int64) & self._mask, hashes >> _HALF)
            for _ in range(_EARLY):
                search = self._step(search, packed, wanted, live, found)
            late.append(search)
        search = _Search.together(late)
        for _ in range(_EARLY, self._reach):
            search = self._step(search, packed, wanted, live, found)
        if valid is not None:
            found[~valid] = -1
        if len(self._rest):
            self._find_in_rest(wanted, live, found)
        return found

    def _hashed(self, packed: TextBytes, start: int, stop: int, words: Words) -> Words:
        hashes = self._mix(words)
        if packed.longest > WIDEST and self._widest > WIDEST:
            packed.mix(start, stop, hashes, WIDEST)
        return hashes

    def _fill(self, hashes: Words, valid: Bools | None) -> Ints:
        """Give each text the first free slot from that of its hash on; the positions that got none in so many
        tries, because many texts are equal, or many hashes."""
        self._reach = 0
        positions = np.arange(len(hashes), dtype=np.uint64) if valid is None else np.flatnonzero(valid)
        own = hashes if valid is None else hashes[valid]
        entries = own & ~_LOW | positions.astype(np.uint64)
        at = own.astype(np.int64) & self._mask
        tries = _TRIES * len(entries) + _BLOCK
        while len(entries) and tries > 0:
            tries -= len(entries)
            self._reach += 1
            free = self._slots[at] == _EMPTY
            self._slots[at[free]] = entries[free]
            there = self._slots[at]
            lost = np.flatnonzero(there != entries)
            there, entries = there[lost], entries[lost]
            self.has_repeats = self.has_repeats or self._any_equal(there, entries)
            at = at[lost] + 1 & self._mask
        return (entries & _LOW).astype(np.int64)

    def _any_equal(self, there: Words, entries: Words) -> bool:
        """Does any text equal the one in the slot that it came by?"""
        alike = np.flatnonzero(there >> _HALF == entries >> _HALF)
        if not len(alike):
            return False
        places, others = ((each[alike] & _LOW).astype(np.int64) for each in (there, entries))
        same = np.flatnonzero((self._words[places] == self._words[others]).all(axis=1))
        if self._widest <= WIDEST or not len(same):
            return bool(len(same))
        is_long = np.isin(places[same], self._long_at)
        longs = self._long_texts(places[same][is_long]), self._long_texts(others[same][is_long])
        return bool((~is_long).any()) or bool(pc.any(pc.equal(*longs)).as_py())

    def _long_texts(self, places: Ints) -> pa.Array:
        """The texts at positions of long ones; null for another position."""
        at = np.searchsorted(self._long_at, places)
        at[at == len(self._long_at)] = 0
        return self._long.take(to_arrow(at, self._long_at[at] != places))

    def _step(
        self, search: _Search, packed: TextBytes, wanted: pa.Array, live: Bools | None, found: Positions
    ) -> _Search:
        """Look into one slot for each text; those that go on to the next slot."""
        if not len(search.rows):
            return search
        entries = self._slots[search.at]
        goes_on = entries != _EMPTY
        hit = np.flatnonzero((entries >> _HALF == search.halves) & goes_on)
        places = (entries[hit] & _LOW).astype(np.int64)
        same = self._confirmed(places, search, hit)
        if packed.longest > self._words.shape[1] * _WORD or self._widest > WIDEST:
            self._compare_long(same, places, search.rows[hit], packed, wanted)
        if live is not None:
            same &= live[places]
        held = np.flatnonzero(same)
        found[search.rows[hit[held]]] = places[held]
        goes_on[hit[held]] = False
        return search.next(np.flatnonzero(goes_on), self._mask)

    def _confirmed(self, places: Ints, search: _Search, hit: Ints) -> Bools:
        """Which of the places have the same words as the texts that are looked up?"""
        there = self._words.take(places, axis=0, mode="clip")
        wanted = search.words.take(hit, axis=0, mode="clip")
        same: Bools = there[:, 0] == wanted[:, 0]
        for column in range(1, there.shape[1]):
            same &= there[:, column] == wanted[:, column]
        return same

    def _compare_long(self, same: Bools, places: Ints, rows: Ints, packed: TextBytes, wanted: pa.Array) -> None:
        """Where only the beginnings of two texts were compared, compare all of them."""
        sizes = packed.sizes[rows]
        if self._widest <= WIDEST:
            same &= sizes <= self._words.shape[1] * _WORD
            return
        doubtful = np.flatnonzero(same & (sizes >= WIDEST))
        if len(doubtful):
            texts = wanted.take(to_arrow(rows[doubtful])).cast(self._long.type)
            equal = pc.fill_null(pc.equal(self._long_texts(places[doubtful]), texts), False)
            same[doubtful] = equal.to_numpy(zero_copy_only=False)

    def _find_in_rest(self, wanted: pa.Array, live: Bools | None, found: Positions) -> None:
        missing = np.flatnonzero(found < 0)
        rest, texts = self._rest, self._rest_texts
        if live is not None:
            rest, texts = rest[live[rest]], texts.filter(to_arrow(live[rest]))
        at = pc.index_in(wanted.take(to_arrow(missing)).cast(texts.type), value_set=texts, skip_nulls=True)
        there = np.flatnonzero(at.is_valid().to_numpy(zero_copy_only=False))
        found[missing[there]] = rest[at.drop_null().to_numpy()]


@dataclass(frozen=True, slots=True)
class _Search:
    """Texts that are not found yet: their rows and words, the slots to look into, and halves of their hashes."""

    rows: Ints
    words: Words
    at: Ints
    halves: Words

    def next(self, kept: Ints, mask: np.int64) -> _Search:
        """Some of the texts, one slot further."""
        return _Search(self.rows[kept], self.words.take(kept, axis=0), self.at[kept] + 1 & mask, self.halves[kept])

    @classmethod
    def together(cls, parts: Sequence[_Search]) -> _Search:
        if not parts:
            none = np.zeros(0, dtype=np.int64)
            return cls(none, np.zeros((0, 1), dtype=np.uint64), none, none.astype(np.uint64))
        columns = ((part.rows, part.words, part.at, part.halves) for part in parts)
        return cls(*map(np.concatenate, zip(*columns, strict=True)))


@dataclass(frozen=True, slots=True)
class TextBytes:
    """The bytes of texts: where each text begins, how many bytes it has, and the word that begins at each byte."""

    starts: npt.NDArray[np.signedinteger]
    sizes: npt.NDArray[np.signedinteger]
    longest: int
    content: npt.NDArray[np.uint8]
    words: Words

    @classmethod
    def of(cls, texts: pa.Array) -> TextBytes:
        wide = pa.types.is_large_string(texts.type)
        _, places, content = texts.buffers()
        if not len(texts) or content is None:
            none = np.zeros(len(texts), dtype=np.int64)
            return cls(none, none, 0, np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.uint64))
        every: npt.NDArray[np.signedinteger] = np.frombuffer(places, dtype=np.int64 if wide else np.int32)
        offsets = every[texts.offset : texts.offset + len(texts) + 1]
        raw = np.frombuffer(content, dtype=np.uint8)
        end = int(offsets[-1])
        if len(raw) < end + _WORD:
            raw = np.concatenate([raw[offsets[0] : end], np.zeros(_WORD, dtype=np.uint8)])
            offsets = offsets - offsets[0]
        sizes = offsets[1:] - offsets[:-1]
        words = np.ndarray((len(raw) - _WORD + 1,), dtype="<u8", buffer=raw, strides=(1,))
        return cls(offsets[:-1], sizes, int(sizes.max(initial=0)), raw, words)

    def pack(self, start: int, stop: int, into: Words) -> None:
        """Write the words of some texts, as many as ``into`` has columns for."""
        starts, sizes = self.starts[start:stop].astype(np.int64), self.sizes[start:stop]
        last = len(self.words) - 1
        for column in range(into.shape[1]):
            left = np.clip(sizes - _WORD * column, 0, _WORD)
            np.bitwise_or(self.words[np.minimum(starts, last)], _FILL[left], out=into[:, column])
            starts += _WORD

    def mix(self, start: int, stop: int, hashes: Words, at: int) -> None:
        """Bring the bytes of some texts, from the byte ``at`` on, into their hashes."""
        starts, sizes = self.starts[start:stop], self.sizes[start:stop]
        longer = np.flatnonzero(sizes > at)
        while len(longer) and at < _BY_WORDS:
            left = np.minimum(sizes[longer] - at, _WORD)
            words = self.words[starts[longer].astype(np.int64) + at] | _FILL[left]
            hashes[longer] = mixed(np.stack([hashes[longer], words], axis=1))
            at += _WORD
            longer = longer[sizes[longer] > at]
        if len(longer):
            ends = zip(starts[longer].tolist(), sizes[longer].tolist(), strict=True)
            sums = [zlib.crc32(self.content[begin + at : begin + size].tobytes()) for begin, size in ends]
            hashes[longer] = mixed(np.stack([hashes[longer], np.array(sums, dtype=np.uint64)], axis=1))


def _valid(texts: pa.Array) -> Bools | None:
    """Which texts are not null; None if all are."""
    if not texts.null_count:
        return None
    valid: Bools = texts.is_valid().to_numpy(zero_copy_only=False)
    return valid
