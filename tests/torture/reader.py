"""A reader that looks at whole snapshots all the time while others write, and again at some of them later."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Final

from tests.stores import Store
from tests.torture.check import TagState, tags
from tests.torture.steps import BRANCHES, GRACE

import omnigraph
from omnigraph.errors import HistoryReclaimed, OmniError
from omnigraph.manifest.snapshot import Snapshot

HELD: Final = 20
"""How many snapshots the reader holds on to."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A snapshot, what was in it, and since when it has been looked at."""

    snapshot: Snapshot
    content: dict[str, TagState]
    since: float


class Reader(threading.Thread):
    """Checks every snapshot it sees, without ever waiting for a writer."""

    def __init__(self, store: Store) -> None:
        super().__init__(name="reader", daemon=True)
        self._graph = omnigraph.open(store.uri, read_only=True, storage_options=store.options)
        self._enough = threading.Event()
        self._seen: dict[str, int] = {}
        self._held: deque[_Held] = deque(maxlen=HELD)
        self.snapshots = 0
        self.reclaimed = 0
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._enough.wait(0.1):
                for branch in self._graph.branches():
                    self._look(branch.name)
                self._look_again()
        except BaseException as error:  # noqa: BLE001  whatever it is, the run reports it
            self.problem = error

    def _look(self, branch: str) -> None:
        try:
            snapshot = self._graph.snapshot(branch)
            assert snapshot.manifest_version >= self._seen.get(branch, 0), f"a snapshot of {branch} went back"
            self._seen[branch] = snapshot.manifest_version
            started = time.monotonic()
            found = tags(self._graph, snapshot)
            self.snapshots += 1
            if branch in BRANCHES and random.random() < 0.03:
                self._held.append(_Held(snapshot, found, started))
        except OmniError:
            if branch in BRANCHES or branch in {other.name for other in self._graph.branches()}:
                raise

    def _look_again(self) -> None:
        """An old snapshot is what it was, or after the grace period has perhaps been cleaned up."""
        if not self._held:
            return
        held = random.choice(self._held)
        try:
            assert tags(self._graph, held.snapshot) == held.content, "an old snapshot has changed"
            self.snapshots += 1
        except HistoryReclaimed:
            if time.monotonic() - held.since < GRACE:
                raise
            self._held.remove(held)
            self.reclaimed += 1

    def stop(self) -> None:
        """End after the snapshot that is being read."""
        self._enough.set()
        self.join()

    def finding(self) -> int:
        """How many snapshots there were. What was wrong with one is raised."""
        if self.problem is not None:
            raise self.problem
        return self.snapshots
