"""A set of pairs of positions that answers for whole arrays: which of these pairs are in it?

The pairs lie in a table of slots, each in the first free one from where its hash points to, so that looking one up
takes one or two steps whether it is there or not.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.read.values.columns import Array, Bools
from omnigraph.settings import READ_DEFAULTS, ReadSettings

Keys = npt.NDArray[np.uint64]
_EMPTY: Final = np.uint64(2**64 - 1)
_SHIFT: Final = np.uint64(32)
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_ONE: Final = np.uint64(1)
_FEW: Final = 4_096
_SHARE: Final = 64
"""Up to a few changed pairs, or one for so many slots, lie beside the slots."""


class PairSet:
    """Distinct pairs; at most half of the slots are taken. A few pairs that came or went later lie beside them."""

    def __init__(self, rows: Array, targets: Array, settings: ReadSettings = READ_DEFAULTS) -> None:
        self._block = settings.pair_block
        bits = max(4, int(2 * len(rows)).bit_length())
        self._mask = np.uint64((1 << bits) - 1)
        self._down = np.uint64(64 - bits)
        self._slots: Keys = np.full(1 << bits, _EMPTY)
        pending = _keys(rows, targets)
        places = self._places(pending)
        while len(pending):
            free = self._slots[places] == _EMPTY
            self._slots[places[free]] = pending[free]
            waiting = self._slots[places] != pending
            pending, places = pending[waiting], (places[waiting] + _ONE) & self._mask
        self._more: Keys = np.zeros(0, dtype=np.uint64)
        self._fewer: Keys = self._more

    @property
    def nbytes(self) -> int:
        return self._slots.nbytes + self._more.nbytes + self._fewer.nbytes

    def with_changes(self, more: Keys, fewer: Keys) -> PairSet | None:
        """The set with some pairs more and some fewer, given as sorted numbers; None if it had better be made
        anew, because too much has changed since it was made."""
        changed = PairSet.__new__(PairSet)
        changed._block, changed._mask, changed._down = self._block, self._mask, self._down
        changed._slots = self._slots
        changed._more = np.union1d(_without(self._more, fewer), _without(more, self._fewer))
        changed._fewer = np.union1d(_without(self._fewer, more), _without(fewer, self._more))
        if len(changed._more) + len(changed._fewer) > max(_FEW, len(self._slots) // _SHARE):
            return None
        return changed

    def _places(self, keys: Keys) -> Keys:
        return np.asarray((keys * _FACTOR) >> self._down)

    def contains(self, rows: Array, targets: Array) -> Bools:
        """For each pair: is it in the set?"""
        found = np.empty(len(rows), dtype=np.bool_)
        for low in range(0, len(rows), self._block):
            block = slice(low, min(low + self._block, len(rows)))
            self._look_up(_keys(rows[block], targets[block]), found[block])
        return found

    def _look_up(self, keys: Keys, found: Bools) -> None:
        places = self._places(keys)
        seen = self._slots.take(places)
        np.equal(seen, keys, out=found)
        further = np.flatnonzero(~found & (seen != _EMPTY))
        places = places[further]
        while len(further):
            places = (places + _ONE) & self._mask
            seen, wanted = self._slots.take(places), keys[further]
            found[further] = seen == wanted
            on = (seen != wanted) & (seen != _EMPTY)
            further, places = further[on], places[on]
        if len(self._fewer):
            held = np.flatnonzero(found)
            found[held] = ~_among(keys[held], self._fewer)
        if len(self._more):
            missing = np.flatnonzero(~found)
            found[missing] = _among(keys[missing], self._more)


def _among(keys: Keys, few: Keys) -> Bools:
    """Which of the keys are among a few sorted ones?"""
    places = np.minimum(np.searchsorted(few, keys), len(few) - 1)
    return np.asarray(few[places] == keys)


def _without(keys: Keys, others: Keys) -> Keys:
    return keys if not len(others) or not len(keys) else keys[~_among(keys, others)]


def _keys(rows: Array, targets: Array) -> Keys:
    keys: Keys = rows.astype(np.uint64)
    keys <<= _SHIFT
    keys |= targets.astype(np.uint64)
    return keys
