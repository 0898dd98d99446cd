"""Which words of a vocabulary are spelled almost like a given one.

The distance counts letters that are inserted, deleted or replaced, and neighbours that have changed places
(optimal string alignment). It is computed for all words of one length at a time, one letter after the other, and
only where the distance can still be small enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from omnigraph.read.values.columns import Array, Bools, Positions

Distances = npt.NDArray[np.uint8]

_NOBODY: Final = np.empty(0, dtype=np.int32)


class _SameLength(NamedTuple):
    """The words of one length: their numbers, and their letters with one row for each place in the word."""

    numbers: Positions
    letters: Array


class Spelling:
    """A vocabulary by length of word. A word's number is its place in the vocabulary."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        lengths = np.fromiter(map(len, vocabulary), dtype=np.int64, count=len(vocabulary))
        order = np.argsort(lengths, kind="stable")
        joined = "".join([vocabulary[number] for number in order.tolist()])
        points = np.frombuffer(joined.encode("utf-32-le"), dtype=np.uint32)
        points = points.astype(np.min_scalar_type(int(points.max(initial=0))))
        numbers = order.astype(np.int32)
        self._by_length: dict[int, _SameLength] = {}
        word = letter = 0
        for length, count in zip(*(part.tolist() for part in np.unique(lengths, return_counts=True)), strict=True):
            block = points[letter : letter + length * count].reshape(count, length)
            self._by_length[length] = _SameLength(numbers[word : word + count], np.ascontiguousarray(block.T))
            word += count
            letter += length * count

    @property
    def nbytes(self) -> int:
        return sum(part.numbers.nbytes + part.letters.nbytes for part in self._by_length.values())

    def near(self, word: str, edits: int) -> Positions:
        """The numbers of the words that are at most some edits from a word."""
        found = [
            part.numbers[_within(word, part.letters, edits)]
            for length, part in self._by_length.items()
            if abs(length - len(word)) <= edits
        ]
        return np.concatenate(found) if found else _NOBODY


def _within(word: str, letters: Array, edits: int) -> Bools:
    """Which of the words whose letters are given are at most some edits from a word.

    This is the usual table of distances between beginnings, with one row per letter of the word and all candidates
    side by side. Cells off the diagonal by more than the edits are too far, whatever is in them. Candidates that
    are too far already are left out of what follows.
    """
    length, count = letters.shape
    if edits >= max(length, len(word)):
        return np.ones(count, dtype=np.bool_)
    far = edits + 1
    alive = np.arange(count)
    before = above = _first_row(length, count, far)
    for row, letter in enumerate(map(ord, word), start=1):
        here = np.full_like(above, far)
        if row <= edits:
            here[0] = row
        last = ord(word[row - 2]) if row > 1 else None
        for column in range(max(1, row - edits), min(length, row + edits) + 1):
            best = here[column]
            np.minimum(above[column], here[column - 1], out=best)
            best += 1
            np.minimum(best, above[column - 1] + (letters[column - 1] != letter), out=best)
            if last is not None and column > 1:
                swapped = (letters[column - 1] == last) & (letters[column - 2] == letter)
                np.minimum(best, before[column - 2] + 1, out=best, where=swapped)
        hopeful = here.min(axis=0) <= edits
        if 2 * np.count_nonzero(hopeful) < len(alive):
            alive, letters = alive[hopeful], letters[:, hopeful]
            above, here = above[:, hopeful], here[:, hopeful]
        before, above = above, here
    near = np.zeros(count, dtype=np.bool_)
    near[alive[above[length] <= edits]] = True
    return near


def _first_row(length: int, count: int, far: int) -> Distances:
    """The distances of nothing to the beginnings of each candidate."""
    distances = np.minimum(np.arange(length + 1), far).astype(np.uint8)
    return np.repeat(distances[:, None], count, axis=1)
