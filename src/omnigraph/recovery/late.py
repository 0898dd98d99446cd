"""Versions that writers of OmniGraph made and never published, with no sidecar that says so: they are undone.

A request of a dead writer may reach the store after its write was undone; a sidecar may be lost, by a power cut or
because it was deleted. Such a version is recognised by the operation that its transaction names, or by its
transaction id, which the audit log has. Tables that recovery has fenced cannot get a late one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

from omnigraph.failpoints import hit
from omnigraph.manifest.publisher import BranchName, Change, CommitDraft
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import TablePin
from omnigraph.recovery.audit import AuditLog, Recovery
from omnigraph.recovery.classify import at, restoring
from omnigraph.recovery.drift import UnknownVersion, unknown_versions
from omnigraph.recovery.heal import RECOVERY_ACTOR, recovery_commit_id
from omnigraph.storage.locks import CommitLock
from omnigraph.storage.tables import TableRef, Tables

LATE = "LateVersionUndone"
LOST = "UnpublishedVersionUndone"


def undo_late_version(
    repository: Repository, branch: BranchName, pin: TablePin, tree: str | None, lock: CommitLock
) -> bool:
    """Undo the versions after the published one, if writers of OmniGraph made all of them; False if not.

    ``tree`` is the native branch in which the table has moved. The caller holds the branch's lock and has healed
    it, so no living writer is about to publish them. The published content is restored as the newest version,
    which is then published. After a crash that can be repeated.
    """
    tables, audit = repository.tables, AuditLog(repository.tables)
    published = TableRef(pin.location, tree, pin.table_version)
    found = unknown_versions(tables, published)
    owners = [_owner(audit, each, branch) for each in found]
    known = owners[0] if owners else None
    if known is None or None in owners:
        return False
    restored = bring_back(tables, published, found, known.operation_id, lock)
    operation = f"{known.operation_id}:late:{pin.table_key}:{pin.table_version}"
    message = f"undo unpublished versions of {known.writer_kind} {known.operation_id}"
    draft = CommitDraft("recovery", recovery_commit_id(operation), RECOVERY_ACTOR, message)
    after = replace(
        pin,
        table_version=restored.version,
        table_branch=tree,
        checksum=tables.version_checksum(restored),
    )
    repository.manifest.publish(
        branch, Change({pin.table_key: after}), {pin.table_key: pin.table_version}, draft, lock
    )
    hit("recovery.after_publish")
    audit.record(
        replace(
            known,
            operation_id=operation,
            graph_commit_id=draft.graph_commit_id,
            table_outcomes={pin.table_key: known.recovery_kind},
            recovered_at=dt.datetime.now(dt.UTC),
        )
    )
    return True


def bring_back(
    tables: Tables, published: TableRef, found: Sequence[UnknownVersion], operation_id: str, lock: CommitLock
) -> TableRef:
    """Restore the published content as the newest version, unless an earlier attempt that died has done so."""
    head = at(published, found[-1].version)
    if found[-1].origin.restored == published.version:
        return head
    lock.verify()
    restored = tables.restore(published, head.version, restoring(operation_id))
    hit("recovery.after_restore")
    return restored


def _owner(audit: AuditLog, unknown: UnknownVersion, branch: BranchName) -> Recovery | None:
    """The write that made a version, as the start of the audit row about it; None if OmniGraph did not make it."""
    transaction, operation = unknown.origin.transaction_id, unknown.operation_id
    known = None if transaction is None else audit.of_transaction(transaction)
    if known is None and operation is not None:
        known = audit.find(operation)
    when = dt.datetime.now(dt.UTC)
    if known is not None:
        return Recovery(
            known.operation_id, LATE, known.writer_kind, known.recovery_for_actor, branch.name, None, {}, when
        )
    if operation is None:
        return None
    return Recovery(operation, LOST, "a lost write", None, branch.name, None, {}, when)
