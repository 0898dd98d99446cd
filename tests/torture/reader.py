"""A reader that looks at whole snapshots all the time while others write."""

from __future__ import annotations

import threading

from tests.stores import Store
from tests.torture.check import tags
from tests.torture.steps import BRANCHES

import omnigraph
from omnigraph.errors import OmniError


class Reader(threading.Thread):
    """Checks every snapshot it sees, without ever waiting for a writer."""

    def __init__(self, store: Store) -> None:
        super().__init__(name="reader", daemon=True)
        self._graph = omnigraph.open(store.uri, read_only=True, storage_options=store.options)
        self._enough = threading.Event()
        self._seen: dict[str, int] = {}
        self.snapshots = 0
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._enough.wait(0.1):
                for branch in self._graph.branches():
                    self._look(branch.name)
        except BaseException as error:  # noqa: BLE001  whatever it is, the run reports it
            self.problem = error

    def _look(self, branch: str) -> None:
        try:
            snapshot = self._graph.snapshot(branch)
            assert snapshot.manifest_version >= self._seen.get(branch, 0), f"a snapshot of {branch} went back"
            self._seen[branch] = snapshot.manifest_version
            tags(self._graph, snapshot)
            self.snapshots += 1
        except OmniError:
            if branch in BRANCHES or branch in {other.name for other in self._graph.branches()}:
                raise

    def finish(self) -> int:
        """Stop; how many snapshots there were. What was wrong with one is raised."""
        self._enough.set()
        self.join()
        if self.problem is not None:
            raise self.problem
        return self.snapshots
