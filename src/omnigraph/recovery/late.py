"""Late versions: a request of a dead writer that reached the store after its write was undone.

Tables that recovery has fenced cannot get one. In others it is recognised by its transaction id, which the audit
log has.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from omnigraph.failpoints import hit
from omnigraph.manifest.publisher import BranchName, Change, CommitDraft
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import TablePin
from omnigraph.recovery.audit import AuditLog, Recovery
from omnigraph.recovery.classify import at, is_fence, restoring
from omnigraph.recovery.heal import RECOVERY_ACTOR, recovery_commit_id
from omnigraph.storage.locks import CommitLock
from omnigraph.storage.tables import TableRef


def undo_late_version(
    repository: Repository, branch: BranchName, pin: TablePin, tree: str | None, lock: CommitLock
) -> bool:
    """Undo the version after the published one, if a writer made it whose write was recovered; False if not.

    ``tree`` is the native branch in which the table has moved. The published content is restored as the newest
    version, which is then published. After a crash that can be repeated.
    """
    tables, audit = repository.tables, AuditLog(repository.tables)
    published = TableRef(pin.location, tree, pin.table_version)
    late = at(published, published.version + 1)
    transaction = tables.transaction_id(late)
    known = None if transaction is None else audit.of_transaction(transaction)
    if known is None:
        return False
    restored = at(published, late.version + 1)
    if not tables.moved(late):
        lock.verify()
        restored = tables.restore(published, late.version, restoring(known.operation_id))
        hit("recovery.after_restore")
    elif not is_fence(restored, known.operation_id, tables):
        return False
    operation = f"{known.operation_id}:late:{pin.table_key}"
    message = f"undo a late request of {known.writer_kind} {known.operation_id}"
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
        Recovery(
            operation,
            "LateVersionUndone",
            known.writer_kind,
            known.recovery_for_actor,
            branch.name,
            draft.graph_commit_id,
            {pin.table_key: "LateVersionUndone"},
            dt.datetime.now(dt.UTC),
        )
    )
    return True
