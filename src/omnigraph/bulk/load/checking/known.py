"""The ids that a task knows: those of one table at a time, indexed once for all checks of the task.

These checks only say that everything is right, which is the rule, and say it fast. If something may be wrong, the
evaluator of every other write finds out what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph.bulk.load.options import Mode
from omnigraph.read.values.columns import Positions
from omnigraph.read.values.exact import ExactIndex
from omnigraph.storage.stage.lookups import MOST_PROBES, PROBE_LIMIT

if TYPE_CHECKING:
    from omnigraph.bulk.load.checking.checks import StagedLoad

_FEW: Final = MOST_PROBES * PROBE_LIMIT
"""So few ids are left to the evaluator, which looks them up among the committed ones if that is faster."""


class KnownIds:
    """Indexes of the ids of one table: of staged rows, and of committed ones if they are needed."""

    def __init__(self, load: StagedLoad) -> None:
        self._load = load
        self._table_key = ""
        self._staged: ExactIndex | None = None
        self._committed: ExactIndex | None = None

    def are_new(self, table_key: str) -> bool:
        """Is each id of the staged rows there once, and in an append not among the committed ones?"""
        staged = self._staged_index(table_key)
        if staged.has_repeats:
            return False
        rows = self._load.snapshot.rows(table_key)
        if self._load.mode is not Mode.APPEND or not rows:
            return True
        if len(staged) <= _FEW:
            return False
        return bool((staged.places(self._committed_ids(table_key)) < 0).all())

    def places(self, table_key: str, ids: pa.ChunkedArray) -> Positions | None:
        """Where rows with these ids are: positions among the staged rows, and behind them among committed ones.

        None if one of them may be missing; also if few of them are not staged.
        """
        load, wanted = self._load, ids.combine_chunks()
        if table_key in load.files:
            staged = self._staged_index(table_key)
            found, count = staged.places(wanted), len(staged)
            lost = np.flatnonzero(found < 0)
        else:
            found, count = np.full(len(wanted), -1, dtype=np.int32), 0
            lost = np.arange(len(wanted))
        if not len(lost):
            return found
        is_replaced = table_key in load.files and load.replaces
        if not load.snapshot.rows(table_key) or len(lost) <= _FEW or is_replaced:
            return None
        late = wanted if len(lost) == len(wanted) else wanted.take(pa.array(lost))
        committed = self._committed_index(table_key).places(late)
        if int(committed.min()) < 0:
            return None
        found[lost] = committed + np.int32(count)
        return found

    def _staged_index(self, table_key: str) -> ExactIndex:
        self._turn_to(table_key)
        if self._staged is None:
            self._staged = ExactIndex(self._load.keys(table_key, ["id"])["id"].combine_chunks())
        return self._staged

    def _committed_index(self, table_key: str) -> ExactIndex:
        self._turn_to(table_key)
        if self._committed is None:
            self._committed = ExactIndex(self._committed_ids(table_key))
        return self._committed

    def _committed_ids(self, table_key: str) -> pa.Array:
        return self._load.base().scan(table_key, ["id"])["id"].combine_chunks()

    def _turn_to(self, table_key: str) -> None:
        """Forget the ids of another table: a task has memory for one."""
        if self._table_key != table_key:
            self._table_key, self._staged, self._committed = table_key, None, None
