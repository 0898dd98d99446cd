"""What happened to the tables of a branch since they were published; only looks."""

from __future__ import annotations

from contextlib import suppress

from omnigraph.errors import OmniError, SidecarUnreadable
from omnigraph.maintenance.repair.report import (
    Action,
    Classification,
    DriftVersion,
    RowChanges,
    TableRepair,
)
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import ManifestState, TablePin
from omnigraph.recovery.drift import UnknownVersion, unknown_versions
from omnigraph.recovery.sidecar import list_sidecars, read_sidecars
from omnigraph.storage.tables import TableRef, Tables

_ACTIONS = {
    Classification.NO_DRIFT: Action.NO_OP,
    Classification.VERIFIED_MAINTENANCE: Action.HEALED,
    Classification.UNPUBLISHED_WRITE: Action.UNDONE,
    Classification.SUSPICIOUS: Action.REFUSED,
    Classification.UNVERIFIABLE: Action.REFUSED,
}


def look(repository: Repository, branch: Branch, state: ManifestState, *, rows: bool) -> list[TableRepair]:
    """What happened to each table of a state, in the tree that the branch writes to.

    With ``rows`` the changes of rows are counted too, for a person to review; that reads columns of the tables.
    """
    return [_looked_at(repository.tables, pin, branch.native, rows=rows) for pin in state.tables.values()]


def pending_tables(repository: Repository, branch: Branch) -> set[str]:
    """The tables that a write moves which is in flight, or was interrupted and is resolved by the next one."""
    found: set[str] = set()
    for key in list_sidecars(repository.objects):
        with suppress(SidecarUnreadable):
            for sidecar in read_sidecars(repository.objects, key):
                if sidecar.branch == branch.ref:
                    found |= {move.table_key for move in sidecar.moves}
    return found


def published(pin: TablePin, native: str | None) -> TableRef:
    """The published version of a table, in the tree that a branch writes to: its own, if it has forked the table
    or once it will have."""
    return TableRef(pin.location, native or pin.table_branch, pin.table_version)


def _looked_at(tables: Tables, pin: TablePin, native: str | None, *, rows: bool) -> TableRepair:
    ref = published(pin, native)
    try:
        found = unknown_versions(tables, ref)
        kind = _classified(found)
        versions = tuple(_described(tables, ref, each) for each in found)
        head = ref.version + len(found)
        changes = _changes(tables, ref, head) if rows and found else None
        count = None if found or pin.table_branch != native else _right_count(tables, pin)
    except OmniError as error:
        newest = ref.version
        return TableRepair(
            pin.table_key, newest, newest, Classification.UNVERIFIABLE, Action.REFUSED, error=str(error)
        )
    action = Action.HEALED if count is not None else _ACTIONS[kind]
    return TableRepair(pin.table_key, ref.version, head, kind, action, versions, changes, count)


def _classified(found: list[UnknownVersion]) -> Classification:
    """A write of ours that was never published may have been compacted since: undoing it undoes that as well."""
    if not found:
        return Classification.NO_DRIFT
    if all(each.is_own or each.is_maintenance for each in found):
        is_own = any(each.is_own for each in found)
        return Classification.UNPUBLISHED_WRITE if is_own else Classification.VERIFIED_MAINTENANCE
    return Classification.SUSPICIOUS


def _described(tables: Tables, ref: TableRef, unknown: UnknownVersion) -> DriftVersion:
    made_at = tables.made_at(TableRef(ref.location, ref.branch, unknown.version))
    return DriftVersion(unknown.version, unknown.origin.operation, made_at, unknown.operation_id)


def _changes(tables: Tables, ref: TableRef, head: int) -> RowChanges | None:
    """The changes of rows between two versions; None if Lance cannot tell, after an overwrite for example."""
    try:
        delta = tables.delta(TableRef(ref.location, ref.branch, head), ref.version)
    except OmniError:
        return None
    return RowChanges(len(delta.inserted), len(delta.updated), len(delta.deleted))


def _right_count(tables: Tables, pin: TablePin) -> int | None:
    """The number of rows that a published version has, if the stored one is another."""
    count = tables.count(pin.ref)
    return None if count == pin.row_count else count
