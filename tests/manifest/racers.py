"""What the processes of a race do: each publishes its changes and reports how they ended."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field

from omnigraph.errors import ManifestConflict, PublishContention
from omnigraph.manifest.publisher import CommitDraft
from omnigraph.manifest.repository import Repository, open_existing
from tests.manifest.support import TRUNK, move
from tests.processes import ready, say
from tests.stores import Store

SHARED = "node:T0"


@dataclass
class Report:
    """How one process's changes ended, each by its commit id."""

    acknowledged: dict[str, list[str]] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)

    def count(self, table_key: str, graph_commit_id: str) -> None:
        self.acknowledged.setdefault(table_key, []).append(graph_commit_id)

    def count_loss(self, table_key: str) -> None:
        self.lost[table_key] = self.lost.get(table_key, 0) + 1


def with_lock(store: Store, number: int, changes: int) -> None:
    """Every other change goes to the table all share, and is lost if that table moved meanwhile."""
    _race(store, number, changes, _publish_locked)


def without_lock(store: Store, number: int, changes: int) -> None:
    """The same, with nothing but the compare-and-swap between the processes."""
    _race(store, number, changes, _publish_unlocked)


def _race(
    store: Store, number: int, changes: int, publish: Callable[[Repository, str, CommitDraft], None]
) -> None:
    repository = open_existing(store.address, read_only=False)
    report = Report()
    ready()
    for change in range(changes):
        table_key = SHARED if change % 2 else f"node:T{number + 1}"
        draft = CommitDraft("load", actor_id=f"racer-{number}")
        try:
            publish(repository, table_key, draft)
        except ManifestConflict as conflict:
            assert (conflict.kind, conflict.table_key) == ("ExpectedVersionMismatch", table_key)
            report.count_loss(table_key)
        else:
            report.count(table_key, draft.graph_commit_id)
    say(json.dumps(asdict(report)))


def _publish_locked(repository: Repository, table_key: str, draft: CommitDraft) -> None:
    change, expected = move(repository.manifest.latest(None), table_key)
    with repository.locks.commit("main") as lock:
        repository.manifest.publish(TRUNK, change, expected, draft, lock)


def _publish_unlocked(repository: Repository, table_key: str, draft: CommitDraft) -> None:
    """Contention asks to try again, so it is tried again, with the same commit."""
    change, expected = move(repository.manifest.latest(None), table_key)
    while True:
        try:
            repository.manifest.publish(TRUNK, change, expected, draft)
        except PublishContention:
            continue
        return
