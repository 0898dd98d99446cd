"""`repair`: publish table versions that were made with Lance directly, which the manifest does not know.

Writers refuse such a table (TableDrift), because they cannot know whether the version is meant. Versions that only
rearranged rows are published as they are; versions that changed rows have to be inspected first, and forced. No
data is rewritten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from omnigraph.errors import OmniError
from omnigraph.manifest.publisher import Change, CommitDraft
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import ManifestState, TablePin
from omnigraph.recovery.heal import heal_branch
from omnigraph.storage.tables import TableRef, Tables

REPAIR_ACTOR: Final = "omnigraph:repair"
FORCED_ACTOR: Final = "omnigraph:repair:force"
_MAINTENANCE: Final = frozenset({"Rewrite", "ReserveFragments"})


class Classification(StrEnum):
    """What made the versions that the manifest does not know."""

    NO_DRIFT = "no_drift"
    VERIFIED_MAINTENANCE = "verified_maintenance"
    SUSPICIOUS = "suspicious"
    UNVERIFIABLE = "unverifiable"


class Action(StrEnum):
    """What a repair did with a table, or would do."""

    NO_OP = "no_op"
    PREVIEW = "preview"
    HEALED = "healed"
    FORCED = "forced"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class TableRepair:
    """One table: its published version, its newest version, and the Lance operations between the two."""

    table_key: str
    table_version: int
    lance_head_version: int
    classification: Classification
    action: Action
    operations: tuple[str, ...] = ()
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "table_version": self.table_version,
            "lance_head_version": self.lance_head_version,
            "classification": self.classification.value,
            "action": self.action.value,
            "operations": list(self.operations),
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair found and did. ``manifest_version`` is the one it published, None if it published none."""

    branch: str
    manifest_version: int | None
    tables: tuple[TableRepair, ...]

    @property
    def refused(self) -> bool:
        """Is there a table left that has to be inspected, and forced?"""
        return any(table.action is Action.REFUSED for table in self.tables)

    def as_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "graph_manifest_version": self.manifest_version,
            "tables": [table.as_json() for table in self.tables],
        }


def preview(repository: Repository, branch: Branch) -> RepairReport:
    """What a repair of a branch would do; nothing is written."""
    state = repository.manifest.latest(branch.native)
    found = _look(repository.tables, branch, state)
    shown = (replace(t, action=Action.PREVIEW) if t.action is not Action.NO_OP else t for t in found)
    return RepairReport(branch.name, None, tuple(shown))


def repair(repository: Repository, branch: Branch, *, force: bool) -> RepairReport:
    """Publish the newest versions of rearranged tables, and with ``force`` of changed ones, as one commit.

    Interrupted writes are healed first.
    """
    repository.require_writable()
    with repository.locks.commit(branch.name) as lock:
        heal_branch(repository, branch.name, lock)
        state = repository.manifest.latest(branch.native)
        found = [_decided(table, force=force) for table in _look(repository.tables, branch, state)]
        taken = [table for table in found if table.action in (Action.HEALED, Action.FORCED)]
        if not taken:
            return RepairReport(branch.name, None, tuple(found))
        pins = {
            table.table_key: _adopted(repository.tables, state.tables[table.table_key], table) for table in taken
        }
        forced = any(table.action is Action.FORCED for table in taken)
        draft = CommitDraft("repair", actor_id=FORCED_ACTOR if forced else REPAIR_ACTOR)
        expected = {table.table_key: table.table_version for table in taken}
        published = repository.manifest.publish(branch.ref, Change(pins), expected, draft, lock)
    return RepairReport(branch.name, published.version, tuple(found))


def _look(tables: Tables, branch: Branch, state: ManifestState) -> list[TableRepair]:
    """The tables that a branch owns, each with what happened to it since it was published."""
    return [_classified(tables, pin) for pin in state.tables.values() if pin.table_branch == branch.native]


def _classified(tables: Tables, pin: TablePin) -> TableRepair:
    head = pin.table_version
    operations: list[str] = []
    try:
        while tables.moved(TableRef(pin.location, pin.table_branch, head)):
            head += 1
            operations.append(tables.operation_name(TableRef(pin.location, pin.table_branch, head)))
    except OmniError as error:
        return TableRepair(
            pin.table_key,
            pin.table_version,
            head,
            Classification.UNVERIFIABLE,
            Action.REFUSED,
            tuple(operations),
            str(error),
        )
    if not operations:
        return TableRepair(pin.table_key, head, head, Classification.NO_DRIFT, Action.NO_OP)
    verified = _MAINTENANCE.issuperset(operations)
    kind = Classification.VERIFIED_MAINTENANCE if verified else Classification.SUSPICIOUS
    action = Action.HEALED if verified else Action.REFUSED
    return TableRepair(pin.table_key, pin.table_version, head, kind, action, tuple(operations))


def _decided(table: TableRepair, *, force: bool) -> TableRepair:
    if force and table.classification is Classification.SUSPICIOUS:
        return replace(table, action=Action.FORCED)
    return table


def _adopted(tables: Tables, pin: TablePin, table: TableRepair) -> TablePin:
    """The pin of a table at its newest version, after its files were verified."""
    head = TableRef(pin.location, pin.table_branch, table.lance_head_version)
    tables.verified(head)
    return replace(
        pin,
        table_version=head.version,
        row_count=tables.count(head),
        checksum=tables.version_checksum(head),
    )
