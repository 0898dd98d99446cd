"""What the processes of a race do: each publishes its changes and reports how they ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from tests.manifest.support import TRUNK, move, publish, schema
from tests.processes import ready, say
from tests.stores import Store

from omnigraph.errors import GraphExists, ManifestConflict, PublishContention
from omnigraph.lang.schema.resolve import compile_schema
from omnigraph.manifest.publisher import CommitDraft
from omnigraph.manifest.repository import Repository, create, open_existing

SHARED = "node:T0"


@dataclass
class Report:
    """How one process's changes ended, each by its commit id."""

    acknowledged: dict[str, list[str]] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)

    def count(self, table_key: str, graph_commit_id: str) -> None:
        self.acknowledged.setdefault(table_key, []).append(graph_commit_id)

    def count_loss(self, why: str) -> None:
        self.lost[why] = self.lost.get(why, 0) + 1


def with_lock(store: Store, number: int, changes: int) -> None:
    """Every other change goes to the table all share, and is lost if that table moved meanwhile."""
    _race(store, number, changes, _publish_locked)


def without_lock(store: Store, number: int, changes: int) -> None:
    """The same, with nothing but the compare-and-swap between the processes."""
    _race(store, number, changes, _publish_unlocked)


def creating(store: Store, number: int) -> None:
    """All create a graph in the same place."""
    ready()
    try:
        create(store.address, compile_schema(schema(2), "test.pg"), actor=f"racer-{number}")
    except GraphExists:
        say("there is one")
    else:
        say("created")


def on_own_branch(store: Store, branch: str, changes: int) -> None:
    """Each process has a branch to itself, and enough to say to need the archive that all of them share."""
    repository = open_existing(store.address, read_only=False)
    ref = repository.branches.find(branch).ref
    published = []
    ready()
    for _ in range(changes):
        head = publish(repository, SHARED, branch=ref).head
        published.append("" if head is None else head.graph_commit_id)
    say(json.dumps(published))


def _race(
    store: Store, number: int, changes: int, attempt: Callable[[Repository, str, CommitDraft], None]
) -> None:
    repository = open_existing(store.address, read_only=False)
    report = Report()
    ready()
    for change in range(changes):
        table_key = SHARED if change % 2 else f"node:T{number + 1}"
        draft = CommitDraft("load", actor_id=f"racer-{number}")
        try:
            attempt(repository, table_key, draft)
        except ManifestConflict as conflict:
            report.count_loss(f"{conflict.kind} {conflict.table_key}")
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
