"""The ids that tasks know: those of a table are indexed once for all tasks of a process that need them.

These checks only say that everything is right, which is the rule, and say it fast. If something may be wrong, the
evaluator of every other write finds out what.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from omnigraph.bulk.load.checking.numbered import NumberedIds
from omnigraph.bulk.load.options import Mode
from omnigraph.read.values.columns import Ints, Positions
from omnigraph.read.values.exact import ExactIndex
from omnigraph.storage.stage.lookups import MOST_PROBES, PROBE_LIMIT

if TYPE_CHECKING:
    from omnigraph.bulk.load.checking.checks import StagedLoad

_FEW: Final = MOST_PROBES * PROBE_LIMIT
"""So few ids are left to the evaluator, which looks them up among the committed ones if that is faster."""

IdIndex = NumberedIds | ExactIndex


class SharedIds:
    """The indexes of a load's ids, for all tasks of this process. One lives as long as a task uses it.

    Tasks that are sent to another process begin without any.
    """

    def __init__(self, load: StagedLoad) -> None:
        self.load = load
        self._indexes: WeakValueDictionary[tuple[str, bool], IdIndex] = WeakValueDictionary()
        self._making: dict[tuple[str, bool], threading.Lock] = {}

    def __reduce__(self) -> tuple[type[SharedIds], tuple[StagedLoad]]:
        return SharedIds, (self.load,)

    def staged(self, table_key: str) -> IdIndex:
        """The ids of the staged rows of a table that are loaded."""
        return self._index(table_key, is_staged=True)

    def committed(self, table_key: str) -> IdIndex:
        """The ids of the committed rows of a table."""
        return self._index(table_key, is_staged=False)

    def committed_ids(self, table_key: str) -> pa.ChunkedArray:
        """The ids of the committed rows of a table, as they are."""
        return self.load.base().scan(table_key, ["id"])["id"]

    def _index(self, table_key: str, *, is_staged: bool) -> IdIndex:
        name = (table_key, is_staged)
        with self._making.setdefault(name, threading.Lock()):
            found = self._indexes.get(name)
            if found is None:
                found = self._indexed(table_key) if is_staged else _indexed(self.committed_ids(table_key))
                self._indexes[name] = found
            return found

    def _indexed(self, table_key: str) -> IdIndex:
        numbered = NumberedIds.of(self._pieces(table_key))
        return numbered or ExactIndex(self.load.keys(table_key, ["id"])["id"].combine_chunks())

    def _pieces(self, table_key: str) -> Iterator[pa.Array]:
        for file in self.load.files[table_key]:
            yield self.load.keys(table_key, ["id"], [file])["id"].combine_chunks()


def _indexed(ids: pa.ChunkedArray) -> IdIndex:
    return NumberedIds.of(ids.chunks) or ExactIndex(ids.combine_chunks())


class KnownIds:
    """The ids of one table at a time, as a task needs them."""

    def __init__(self, shared: SharedIds) -> None:
        self._shared = shared
        self._table_key = ""
        self._staged: IdIndex | None = None
        self._committed: IdIndex | None = None

    def are_new(self, table_key: str) -> bool:
        """Is each id of the staged rows there once, and in an append not among the committed ones?"""
        staged, load = self.staged(table_key), self._shared.load
        if staged.has_repeats:
            return False
        if load.mode is not Mode.APPEND or not load.snapshot.rows(table_key):
            return True
        if len(staged) <= _FEW:
            return False
        return all(int(staged.places(ids).max(initial=-1)) < 0 for ids in self._committed_ids(table_key))

    def _committed_ids(self, table_key: str) -> list[pa.Array]:
        return list(self._shared.committed_ids(table_key).chunks)

    def staged(self, table_key: str) -> IdIndex:
        """The index of the staged rows of a table."""
        self._turn_to(table_key)
        if self._staged is None:
            self._staged = self._shared.staged(table_key)
        return self._staged

    def committed(self, table_key: str) -> IdIndex:
        """The index of the committed rows of a table."""
        self._turn_to(table_key)
        if self._committed is None:
            self._committed = self._shared.committed(table_key)
        return self._committed

    def lookup(self, table_key: str) -> IdLookup:
        """A look-up of ids of a table that come piece by piece."""
        return IdLookup(self, self._shared.load, table_key)

    def _turn_to(self, table_key: str) -> None:
        """Forget the ids of another table: a task has memory for one."""
        if self._table_key != table_key:
            self._table_key, self._staged, self._committed = table_key, None, None


class IdLookup:
    """Where rows with some ids are: positions among the staged rows, and behind them among committed ones.

    Of ids that are not staged a few may wait until there are enough of them for an index of the committed ones.
    """

    def __init__(self, known: KnownIds, load: StagedLoad, table_key: str) -> None:
        self._known = known
        self._table_key = table_key
        self._staged = known.staged(table_key) if table_key in load.files else None
        is_replaced = self._staged is not None and load.replaces
        self._has_committed = bool(load.snapshot.rows(table_key)) and not is_replaced
        self._lost = 0
        self._waiting: list[tuple[Positions, Ints, pa.Array]] = []

    @property
    def is_waiting(self) -> bool:
        """Are ids of earlier pieces not found yet? Their positions are filled in by a later piece."""
        return bool(self._waiting)

    def places(self, wanted: pa.Array) -> Positions | None:
        """The positions of a piece; None if one of its ids, or of those that wait, may be missing."""
        if self._staged is not None:
            found = self._staged.places(wanted)
        else:
            found = np.full(len(wanted), -1, dtype=np.int32)
        lost = np.flatnonzero(found < 0)
        if not len(lost):
            return found
        if not self._has_committed:
            return None
        late = wanted if len(lost) == len(wanted) else wanted.take(pa.array(lost))
        self._waiting.append((found, lost, late))
        self._lost += len(lost)
        return found if self._lost <= _FEW or self._find_waiting() else None

    def _find_waiting(self) -> bool:
        """Look for the ids that wait among the committed ones; are all of them there?"""
        committed = self._known.committed(self._table_key)
        count = np.int32(0 if self._staged is None else len(self._staged))
        while self._waiting:
            found, rows, texts = self._waiting.pop()
            places = committed.places(texts)
            if int(places.min()) < 0:
                return False
            found[rows] = places + count
        return True
