"""Sidecars: what a writer is about to commit, written to the store before the first table moves.

A sidecar exists exactly while its write is in flight. A process that holds the branch's commit lock and finds one
knows that its writer is dead, and has everything needed to finish the write or to undo it. Writes that are
committed in a row share one object, in their order.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from omnigraph.errors import ObjectDamaged, OmniError, SidecarUnreadable
from omnigraph.failpoints import hit
from omnigraph.manifest.cleanups import Cleanups
from omnigraph.manifest.drafts import SchemaMove
from omnigraph.manifest.publisher import BranchName, Change, CommitDraft
from omnigraph.manifest.state import TablePin, Tombstone
from omnigraph.manifest.streams import Batch
from omnigraph.records import dataclass
from omnigraph.storage import layout
from omnigraph.storage.control.sealed import number, optional_text, seal, text, texts, unseal
from omnigraph.storage.objects import ObjectStore

SIDECAR_VERSION: Final = 1
ROW_VERSION: Final = 2
"""The version of an object that has the sidecars of several writes."""


@dataclass(frozen=True, slots=True)
class TableMove:
    """One table that a write moves: its pin before and after, and the ids of the transactions that move it.

    The first transaction is the change; the others rearrange files, and the write is whole without them. A change
    of the schema may give the table another key.
    """

    before: TablePin
    after: TablePin
    transaction_ids: tuple[str, ...]

    @property
    def table_key(self) -> str:
        """The key of the table before the write."""
        return self.before.table_key


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A write in flight. A change of the schema also names the new schema, and keys of tables that come or go."""

    operation_id: str
    writer: str
    branch: BranchName
    draft: CommitDraft
    moves: tuple[TableMove, ...]
    tombstones: tuple[Tombstone, ...] = ()
    started_at: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    schema: SchemaMove | None = None
    row: str | None = None
    """The operation whose object this sidecar lies in, if several writes share one."""

    @property
    def key(self) -> str:
        """The object that has the sidecar."""
        return f"{layout.SIDECARS}/{self.row or self.operation_id}.json"

    @property
    def change(self) -> Change:
        """The change of the manifest that publishes the write."""
        pins = {move.after.table_key: move.after for move in self.moves}
        if self.schema is None:
            return Change(pins, self.tombstones)
        pins |= {pin.table_key: pin for pin in self.schema.added}
        removed = [pin.table_key for pin in self.schema.removed]
        return Change(pins, self.tombstones, tuple(removed) + tuple(self.schema.renamed), self.schema.digest)

    @property
    def expected(self) -> dict[str, int]:
        """The versions at which the write found its tables: publishing requires that they still are."""
        pins = [move.before for move in self.moves]
        if self.schema is not None:
            pins += self.schema.removed
        return {pin.table_key: pin.table_version for pin in pins}


def write_sidecars(objects: ObjectStore, sidecars: Sequence[Sidecar]) -> None:
    """Phase A of one write, or of all writes of a row. If it fails, nothing was written."""
    hit("recovery.sidecar_write")
    objects.put(sidecars[0].key, _encode(sidecars))


def delete_sidecars(objects: ObjectStore, key: str) -> None:
    """Phase D: the writes of an object are over."""
    hit("recovery.sidecar_delete")
    objects.discard(key)


def end_sidecar(objects: ObjectStore, sidecar: Sidecar) -> None:
    """One write is over: its sidecar is taken out of its object, and the object is removed with the last one."""
    left = [] if sidecar.row is None else read_sidecars(objects, sidecar.key)
    left = [each for each in left if each.operation_id != sidecar.operation_id]
    if left:
        hit("recovery.sidecar_delete")
        objects.put(sidecar.key, _encode(left))
    else:
        delete_sidecars(objects, sidecar.key)


def list_sidecars(objects: ObjectStore, cleanups: Cleanups | None = None) -> list[str]:
    """The keys of the objects of all sidecars, oldest first. Empty when nothing is in flight. The mark of the last
    cleanup lies beside them, and is noted in passing."""
    hit("recovery.sidecar_list")
    keys = objects.list(layout.SIDECARS)
    if cleanups is not None:
        cleanups.note(keys)
    return [key for key in keys if key.endswith(".json")]


def read_sidecars(objects: ObjectStore, key: str) -> list[Sidecar]:
    """The sidecars of one object, in the order of their writes; none if it was removed meanwhile,
    SidecarUnreadable if it is damaged or of a newer release."""
    found = objects.get(key)
    if found is None:
        return []
    try:
        stored = unseal(key, found.content)
        version = stored["version"]
    except ObjectDamaged as error:
        raise SidecarUnreadable(key, f"it is damaged ({error.reason})") from error
    except KeyError as error:
        raise SidecarUnreadable(key, "it is damaged (it has no version)") from error
    if version not in (SIDECAR_VERSION, ROW_VERSION):
        is_newer = isinstance(version, int) and version > ROW_VERSION
        raise SidecarUnreadable(
            key, f"its version {version!r:.20} is neither {SIDECAR_VERSION} nor {ROW_VERSION}", is_newer
        )
    try:
        if version == SIDECAR_VERSION:
            sidecars = [_decode(stored, None)]
        else:
            sidecars = [_decode(each, text(stored["row"])) for each in stored["writes"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SidecarUnreadable(key, f"it is damaged ({error})") from error
    if not sidecars or any(sidecar.key != key for sidecar in sidecars):
        raise SidecarUnreadable(key, "it is another write's")
    return sidecars


def _encode(sidecars: Sequence[Sidecar]) -> bytes:
    if sidecars[0].row is None:
        return seal({"version": SIDECAR_VERSION, **_stored(sidecars[0])})
    writes = [_stored(sidecar) for sidecar in sidecars]
    return seal({"version": ROW_VERSION, "row": sidecars[0].row, "writes": writes})


def _stored(sidecar: Sidecar) -> dict[str, Any]:
    return {
        "operation_id": sidecar.operation_id,
        "writer": sidecar.writer,
        "branch": sidecar.branch.name,
        "native": sidecar.branch.native,
        "started_at": sidecar.started_at.isoformat(),
        "commit": {
            "graph_commit_id": sidecar.draft.graph_commit_id,
            "kind": sidecar.draft.kind,
            "actor_id": sidecar.draft.actor_id,
            "message": sidecar.draft.message,
            "merged_parents": list(sidecar.draft.merged_parents),
            "batch": None if sidecar.draft.batch is None else sidecar.draft.batch.as_json(),
        },
        "tables": [
            {
                "before": move.before.as_json(),
                "after": move.after.as_json(),
                "transaction_ids": list(move.transaction_ids),
            }
            for move in sidecar.moves
        ],
        "tombstones": [
            {"table_key": t.table_key, "location": t.location, "table_version": t.table_version}
            for t in sidecar.tombstones
        ],
        "schema": None if sidecar.schema is None else _schema_json(sidecar.schema),
    }


def _decode(stored: Mapping[str, Any], row: str | None) -> Sidecar:
    commit = stored["commit"]
    return Sidecar(
        operation_id=text(stored["operation_id"]),
        writer=text(stored["writer"]),
        branch=BranchName(text(stored["branch"]), optional_text(stored["native"])),
        draft=CommitDraft(
            text(commit["kind"]),
            text(commit["graph_commit_id"]),
            _writable(commit["actor_id"]),
            _writable(commit["message"]),
            texts(commit["merged_parents"]),
            _batch(commit.get("batch")),
        ),
        moves=tuple(
            TableMove(_pin(entry["before"]), _pin(entry["after"]), texts(entry["transaction_ids"]))
            for entry in stored["tables"]
        ),
        tombstones=tuple(
            Tombstone(text(t["table_key"]), optional_text(t["location"]), number(t["table_version"]))
            for t in stored["tombstones"]
        ),
        started_at=dt.datetime.fromisoformat(stored["started_at"]),
        schema=_schema(stored.get("schema")),
        row=row,
    )


def _schema_json(schema: SchemaMove) -> dict[str, Any]:
    return {
        "digest": schema.digest,
        "added": [pin.as_json() for pin in schema.added],
        "removed": [pin.as_json() for pin in schema.removed],
        "renamed": dict(schema.renamed),
    }


def _schema(stored: Mapping[str, Any] | None) -> SchemaMove | None:
    """The change of the schema; sidecars of older releases have none."""
    if stored is None:
        return None
    return SchemaMove(
        text(stored["digest"]),
        tuple(_pin(pin) for pin in stored["added"]),
        tuple(_pin(pin) for pin in stored["removed"]),
        {text(old): text(new) for old, new in stored["renamed"].items()},
    )


def _batch(stored: Mapping[str, Any] | None) -> Batch | None:
    """The micro-batch of a commit; sidecars of older releases have none."""
    if stored is None:
        return None
    return Batch(text(stored["stream"]), number(stored["number"]), optional_text(stored["query"]))


def _pin(stored: Mapping[str, Any]) -> TablePin:
    return TablePin(
        text(stored["table_key"]),
        text(stored["location"]),
        number(stored["table_version"]),
        optional_text(stored["table_branch"]),
        number(stored["row_count"]),
    )


def _writable(value: object) -> str | None:
    """A text that can be published. Older releases accepted actors and messages that UTF-8 cannot encode."""
    return None if value is None else text(value).encode(errors="replace").decode()


def is_pending(objects: ObjectStore, branch: BranchName) -> bool | None:
    """Is a write to a branch in flight or interrupted? None if a sidecar cannot be listed or read."""
    try:
        found = [sidecar for key in list_sidecars(objects) for sidecar in read_sidecars(objects, key)]
    except OmniError:
        return None
    return any(sidecar.branch == branch for sidecar in found)
