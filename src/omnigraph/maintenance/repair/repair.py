"""`repair`: deal with table versions that the manifest does not know.

Writers refuse such a table (TableDrift) if they cannot know whether the version is meant. Versions that only
rearranged rows are published as they are. Versions of an OmniGraph writer that never published them are undone.
Versions that changed rows otherwise have to be inspected first, and forced. No data is rewritten, and everything
that is published is one commit.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Final

from omnigraph.maintenance.repair.cures import curable, cure
from omnigraph.maintenance.repair.drift import look, pending_tables, published
from omnigraph.maintenance.repair.report import Action, Classification, RepairReport, TableRepair
from omnigraph.manifest.publisher import Change, CommitDraft
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import TablePin
from omnigraph.recovery.drift import unknown_versions
from omnigraph.recovery.heal import heal_branch
from omnigraph.recovery.late import bring_back
from omnigraph.storage.locks import CommitLock
from omnigraph.storage.tables import TableRef, Tables

REPAIR_ACTOR: Final = "omnigraph:repair"
FORCED_ACTOR: Final = "omnigraph:repair:force"
_TAKEN: Final = (Action.HEALED, Action.UNDONE, Action.FORCED)


def preview(repository: Repository, branch: Branch) -> RepairReport:
    """What a repair of a branch would do; nothing is written."""
    state = repository.manifest.latest(branch.native)
    found = look(repository, branch, state, rows=True)
    pending = pending_tables(repository, branch)
    shown = (_previewed(table, pending) for table in found)
    return RepairReport(branch.name, None, tuple(shown), tuple(curable(repository, branch)))


def repair(repository: Repository, branch: Branch, *, force: bool) -> RepairReport:
    """Publish the newest versions of rearranged tables, and with ``force`` of changed ones; undo writes that were
    never published; correct stored numbers of rows. All that is one commit.

    Interrupted writes are healed first.
    """
    repository.require_writable()
    cures = cure(repository, branch, force=force)
    with repository.locks.commit(branch.name) as lock:
        heal_branch(repository, branch.name, lock)
        state = repository.manifest.latest(branch.native)
        found = [_decided(table, force=force) for table in look(repository, branch, state, rows=True)]
        taken = [table for table in found if table.action in _TAKEN]
        if not taken:
            return RepairReport(branch.name, None, tuple(found), tuple(cures))
        pins = {
            table.table_key: _repaired(repository.tables, branch, state.tables[table.table_key], table, lock)
            for table in taken
        }
        forced = any(table.action is Action.FORCED for table in taken)
        draft = CommitDraft("repair", actor_id=FORCED_ACTOR if forced else REPAIR_ACTOR, message=_message(taken))
        expected = {table.table_key: table.table_version for table in taken}
        done = repository.manifest.publish(branch.ref, Change(pins), expected, draft, lock)
    return RepairReport(branch.name, done.version, tuple(found), tuple(cures))


def _previewed(table: TableRepair, pending: Set[str]) -> TableRepair:
    if table.action is Action.NO_OP:
        return table
    if table.table_key in pending:
        return replace(table, action=Action.PREVIEW, classification=Classification.PENDING_WRITE)
    return replace(table, action=Action.PREVIEW)


def _decided(table: TableRepair, *, force: bool) -> TableRepair:
    if force and table.classification is Classification.SUSPICIOUS:
        return replace(table, action=Action.FORCED)
    return table


def _message(taken: list[TableRepair]) -> str:
    return "; ".join(f"{table.table_key}: {table.action.value}" for table in taken)


def _repaired(tables: Tables, branch: Branch, pin: TablePin, table: TableRepair, lock: CommitLock) -> TablePin:
    """The pin of a table after its repair: at its newest version, whose files were verified, or at one that brings
    the published content back."""
    if table.row_count is not None:
        return replace(pin, row_count=table.row_count)
    before = published(pin, branch.native)
    head = TableRef(before.location, before.branch, table.lance_head_version)
    if table.action is Action.UNDONE:
        found = unknown_versions(tables, before)
        owner = next(each.operation_id for each in found if each.operation_id is not None)
        head = bring_back(tables, before, found, owner, lock)
    else:
        tables.verified(head)
    return replace(
        pin,
        table_version=head.version,
        table_branch=head.branch,
        row_count=tables.count(head),
        checksum=tables.version_checksum(head),
    )
