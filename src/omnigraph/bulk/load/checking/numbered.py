"""An exact index of ids that are numbers behind a common beginning, such as ``person-17`` or the keys of integers.

The number of an id is its place in a table of positions, so nothing is hashed, and no text has to be kept: an id
is there if it begins like the others and its number is in the table. Digits are read eight at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.read.values.columns import Bools, Ints, Positions
from omnigraph.read.values.exact import TextBytes, Words
from omnigraph.records import dataclass

_WORD: Final = 8
_WORD_BITS: Final = np.uint64(64)
_LONGEST_STEM: Final = 64
_MOST_DIGITS: Final = 2 * _WORD
_BLOCK: Final = 1 << 14
_SPARSE: Final = 4
"""A table has a place for up to so many numbers per id; ids with larger gaps are not indexed here, …"""
_SPARE: Final = 1 << 16
"""… but so many places more do no harm."""
_DIGITS: Final = b"0123456789"
_ZEROS: Final = np.uint64(0x3030303030303030)
_ABOVE: Final = np.uint64(0x4646464646464646)
_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_JOINED: Final = (
    (np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(2561), np.uint64(8)),
    (np.uint64(0x00FF00FF00FF00FF), np.uint64(6553601), np.uint64(16)),
    (np.uint64(0x0000FFFF0000FFFF), np.uint64(42949672960001), np.uint64(32)),
)
"""How single digits become numbers of two digits, those become numbers of four, and those one of eight."""
_POWERS: Final = 10 ** np.arange(_WORD + 1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Form:
    """How ids look: their stem, and how many digits follow it if they are filled up with zeros; 0 if they are not.

    In one form no two texts are the same number.
    """

    stem: bytes
    padded: int

    @classmethod
    def of(cls, text: str) -> _Form:
        encoded = text.encode()
        stem = encoded.rstrip(_DIGITS)
        digits = encoded[len(stem) :]
        return cls(stem, len(digits) if digits.startswith(b"0") and len(digits) > 1 else 0)

    def numbers(self, texts: TextBytes, start: int, stop: int) -> Ints:
        """The numbers of some texts; -1 for those of another form."""
        starts, sizes = texts.starts[start:stop].astype(np.int64), texts.sizes[start:stop] - len(self.stem)
        fits = (sizes > 0) & (sizes <= _MOST_DIGITS)
        if self.padded:
            fits &= sizes == self.padded
        last = len(texts.words) - 1
        for at in range(0, len(self.stem), _WORD):
            fits &= _begins(texts.words[np.minimum(starts + at, last)], self.stem[at : at + _WORD])
        starts = np.minimum(starts + len(self.stem), last)
        first, follow = texts.words[starts], np.clip(sizes, 0, _WORD)
        if not self.padded:
            fits &= (first & np.uint64(0xFF) != np.uint64(ord("0"))) | (sizes == 1)
        numbers = _number(first, follow, fits)
        if int(sizes.max(initial=0)) > _WORD:
            more = np.clip(sizes - _WORD, 0, _WORD)
            numbers *= _POWERS[more]
            numbers += _number(texts.words[np.minimum(starts + _WORD, last)], more, fits)
        numbers[~fits] = -1
        return numbers


def _begins(words: Words, beginning: bytes) -> Bools:
    """Which words begin with some bytes?"""
    mask = np.uint64((1 << (8 * len(beginning))) - 1)
    same: Bools = (words & mask) == np.uint64(int.from_bytes(beginning, "little"))
    return same


def _number(words: Words, digits: npt.NDArray[np.signedinteger], fits: Bools) -> Ints:
    """The number that the first digits of each word are; words that have others than digits do not fit."""
    bits = digits.astype(np.uint64) << np.uint64(3)
    words = words << (_WORD_BITS - bits)
    words |= _ZEROS >> bits
    fits &= ((words + _ABOVE) | (words - _ZEROS)) & _HIGH_BITS == 0
    for mask, factor, shift in _JOINED:
        words &= mask
        words *= factor
        words >>= shift
    return words.view(np.int64)


class NumberedIds:
    """Ids by position, all of which have one form. An id may be at several positions."""

    def __init__(self, form: _Form, least: int, table: Positions, size: int) -> None:
        self._form = form
        self._least = least
        self._table = table
        self._size = size
        self.has_repeats = int(np.count_nonzero(table >= 0)) < size

    @classmethod
    def of(cls, pieces: Iterable[pa.Array]) -> NumberedIds | None:
        """The index of ids that come in pieces; None if some have another form than the first, or large gaps."""
        form: _Form | None = None
        parts: list[Ints] = []
        for piece in pieces:
            if piece.null_count:
                return None
            if len(piece) and form is None:
                form = _Form.of(piece[0].as_py())
            if form is None or len(form.stem) > _LONGEST_STEM:
                if len(piece):
                    return None
                continue
            numbers = _numbers(form, piece)
            if int(numbers.min(initial=0)) < 0:
                return None
            parts.append(numbers)
        if form is None:
            return None
        return cls._filled(form, parts)

    @classmethod
    def _filled(cls, form: _Form, parts: list[Ints]) -> NumberedIds | None:
        some = [part for part in parts if len(part)]
        least, most = min(int(part.min()) for part in some), max(int(part.max()) for part in some)
        size = sum(map(len, some))
        if most - least >= _SPARSE * size + _SPARE:
            return None
        table = np.full(most - least + 1, -1, dtype=np.int32)
        before = 0
        for part in some:
            table[part - least] = np.arange(before, before + len(part), dtype=np.int32)
            before += len(part)
        return cls(form, least, table, size)

    def __len__(self) -> int:
        return self._size

    def places(self, wanted: pa.Array) -> Positions:
        """A position of each id; -1 where there is none."""
        found = np.empty(len(wanted), dtype=np.int32)
        texts = TextBytes.of(wanted)
        for start in range(0, len(wanted), _BLOCK):
            stop = min(len(wanted), start + _BLOCK)
            numbers = self._form.numbers(texts, start, stop)
            numbers -= self._least
            known = numbers.view(np.uint64) < np.uint64(len(self._table))
            found[start:stop] = np.where(known, self._table.take(numbers, mode="clip"), np.int32(-1))
        if wanted.null_count:
            found[wanted.is_null().to_numpy(zero_copy_only=False)] = -1
        return found


def _numbers(form: _Form, piece: pa.Array) -> Ints:
    texts = TextBytes.of(piece)
    numbers = np.empty(len(piece), dtype=np.int64)
    for start in range(0, len(piece), _BLOCK):
        stop = min(len(piece), start + _BLOCK)
        numbers[start:stop] = form.numbers(texts, start, stop)
    return numbers
