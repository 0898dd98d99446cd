"""Changes of a graph that are not published yet, and the state that publishing one makes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from ulid import ULID

from omnigraph.errors import ManifestConflict
from omnigraph.manifest.state import MAIN, Commit, ManifestState, TablePin, Tombstone
from omnigraph.manifest.streams import Batch, marked


@dataclass(frozen=True, slots=True)
class BranchName:
    """A graph branch: its name, and the native Lance branch of the manifest that holds it (None for main)."""

    name: str
    native: str | None


def branch_of(native: str) -> str:
    """The branch that a native one was made for; its name ends with the branch's incarnation."""
    return native.rpartition(".")[0] or native


@dataclass(frozen=True, slots=True)
class CommitDraft:
    """A commit that has not been published. Its id is fixed before anything durable happens. ``batch`` is the
    micro-batch of a stream that it brings, which is done when it is published."""

    kind: str
    graph_commit_id: str = field(default_factory=lambda: str(ULID()))
    actor_id: str | None = None
    message: str | None = None
    merged_parents: tuple[str, ...] = ()
    batch: Batch | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What a publish changes: pins to set, by table key, and tables to hide."""

    pins: Mapping[str, TablePin] = field(default_factory=dict)
    tombstones: tuple[Tombstone, ...] = ()


def initial_state(pins: Mapping[str, TablePin], draft: CommitDraft) -> ManifestState:
    """The first state of a new graph."""
    return apply(ManifestState(version=0), BranchName(MAIN, None), Change(pins), draft)


def check_expected(current: ManifestState, expected: Mapping[str, int]) -> None:
    for table_key, version in expected.items():
        pin = current.tables.get(table_key)
        actual = 0 if pin is None else pin.table_version
        if actual != version:
            raise ManifestConflict(table_key, version, actual)


def apply(current: ManifestState, branch: BranchName, change: Change, draft: CommitDraft) -> ManifestState:
    """The state after a change, with its commit at the head."""
    hidden = {gone.table_key for gone in change.tombstones}
    tables = {key: pin for key, pin in current.tables.items() if key not in hidden}
    tables |= change.pins
    parents = ((current.head.graph_commit_id,) if current.head else ()) + draft.merged_parents
    commit = Commit(
        graph_commit_id=draft.graph_commit_id,
        branch=branch.name,
        manifest_version=current.version + 1,
        parents=parents,
        created_at=dt.datetime.now(dt.UTC),
        kind=draft.kind,
        actor_id=draft.actor_id,
        message=draft.message,
    )
    return ManifestState(
        version=current.version + 1,
        tables=dict(sorted(tables.items())),
        tombstones=(*current.tombstones, *change.tombstones),
        commits=(*current.commits, commit),
        streams=marked(current.streams, branch.native, draft.batch, draft.graph_commit_id),
    )
