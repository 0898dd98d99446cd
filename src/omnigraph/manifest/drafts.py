"""Changes of the manifest before they are published, and the state that publishing one makes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import field

from omnigraph.errors import ManifestConflict
from omnigraph.manifest.ids import fresh_id
from omnigraph.manifest.state import MAIN, Commit, ManifestState, TablePin, Tombstone
from omnigraph.manifest.streams import Batch, marked
from omnigraph.records import dataclass


@dataclass(frozen=True, slots=True)
class BranchName:
    """A graph branch: its name, and the native Lance branch of the manifest that holds it (None for main)."""

    name: str
    native: str | None


def branch_of(native: str) -> str:
    """The name of the branch behind a native one, which has the incarnation appended."""
    return native.rpartition(".")[0] or native


@dataclass(frozen=True, slots=True)
class CommitDraft:
    """A commit that is not published yet; its id is fixed before anything is written. ``batch`` is the stream's
    micro-batch that publishing it marks as done."""

    kind: str
    graph_commit_id: str = field(default_factory=fresh_id)
    actor_id: str | None = None
    message: str | None = None
    merged_parents: tuple[str, ...] = ()
    batch: Batch | None = None


@dataclass(frozen=True, slots=True)
class SchemaMove:
    """A change of the schema: the digest of the new one, and what happens to tables without moving their rows.

    ``added`` are pins under new keys: of new tables, and of tables whose type was renamed. ``removed`` are pins of
    keys under which there is no table afterwards. ``renamed`` has the new keys of tables that move as well.
    """

    digest: str
    added: tuple[TablePin, ...] = ()
    removed: tuple[TablePin, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """What a publish changes: new pins by table key, tables to remove from the graph, and the accepted schema.

    ``removed`` are keys under which there is no table any more, because its type was dropped or renamed;
    ``schema`` is the digest of the new schema, None if it stays.
    """

    pins: Mapping[str, TablePin] = field(default_factory=dict)
    tombstones: tuple[Tombstone, ...] = ()
    removed: tuple[str, ...] = ()
    schema: str | None = None


def initial_state(pins: Mapping[str, TablePin], draft: CommitDraft) -> ManifestState:
    """The first state of a new graph."""
    return apply(ManifestState(version=0), BranchName(MAIN, None), Change(pins), draft)


def check_expected(current: ManifestState, expected: Mapping[str, int]) -> None:
    """Raise ManifestConflict if a table is not at its expected version."""
    for table_key, version in expected.items():
        pin = current.tables.get(table_key)
        actual = 0 if pin is None else pin.table_version
        if actual != version:
            raise ManifestConflict(table_key, version, actual)


def apply(current: ManifestState, branch: BranchName, change: Change, draft: CommitDraft) -> ManifestState:
    """The state after a change, with its commit at the head."""
    hidden = {gone.table_key for gone in change.tombstones} | set(change.removed)
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
        schema=change.schema or current.schema,
    )
