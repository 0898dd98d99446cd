"""The manifest against the tables: versions that are missing or unknown, numbers of rows, columns, small files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from omnigraph.errors import BranchNotFound, HistoryReclaimed, ObjectDamaged, OmniError, SidecarUnreadable
from omnigraph.formats.columns import table_schema
from omnigraph.maintenance.doctor.examination import RESTORE, Examination, ExaminedBranch, ExaminedTable
from omnigraph.maintenance.doctor.report import Finding, Severity
from omnigraph.maintenance.repair.drift import look
from omnigraph.maintenance.repair.report import Action, Classification, TableRepair
from omnigraph.recovery.sidecar import list_sidecars, read_sidecars
from omnigraph.storage.stage.compaction import ROWS_PER_FILE
from omnigraph.storage.unavailable import translated

SMALL_FILES: Final = 100
"""So many files of a table with few rows each make reads slower."""

DELETED_ROWS: Final = 10_000
DELETED_SHARE: Final = 0.5
"""So many deleted rows, if they are so large a part of all, are worth being removed from the files."""


def check_drift(exam: Examination) -> Iterator[Finding]:
    """Is every table at the version that the manifest names? A write in flight is no drift."""
    for number, examined in enumerate(exam.branches):
        exam.progress("drift", number, len(exam.branches))
        found = [t for t in _drifted(exam, examined) if t.action is not Action.NO_OP and t.versions]
        if found and not _is_written(exam, examined):
            yield from (_drift(examined.branch.name, table) for table in found)


def _drifted(exam: Examination, examined: ExaminedBranch) -> list[TableRepair]:
    return look(exam.repository, examined.branch, examined.state, rows=False)


def _is_written(exam: Examination, examined: ExaminedBranch) -> bool:
    """Is a write to the branch in flight, or was one published since the state was read?

    A writer removes its sidecar after it has published, so the sidecars are looked at before the newest state.
    """
    repository, branch = exam.repository, examined.branch
    for key in list_sidecars(repository.objects):
        try:
            sidecars = read_sidecars(repository.objects, key)
        except SidecarUnreadable:
            continue
        if any(sidecar.branch == branch.ref for sidecar in sidecars):
            return True
    try:
        return repository.manifest.latest(branch.native).version != examined.state.version
    except BranchNotFound:
        return True


def _drift(branch: str, table: TableRepair) -> Finding:
    made = ", ".join(version.operation or "unknown" for version in table.versions)
    where = (
        f"{table.table_key} is at version {table.lance_head_version}, and the graph names {table.table_version}"
    )
    look_at = f"run `omnigraph repair --branch {branch}` to see what happened"
    match table.classification:
        case Classification.UNPUBLISHED_WRITE:
            return Finding(
                "unpublished_write",
                Severity.WARNING,
                f"{where}: a write of OmniGraph's was interrupted, and its sidecar is lost",
                f"nothing: the next write to it undoes that, or `omnigraph repair --confirm --branch {branch}`",
                branch,
                table.table_key,
            )
        case Classification.VERIFIED_MAINTENANCE:
            return Finding(
                "table_drift",
                Severity.ERROR,
                f"{where}: Lance itself has rearranged its rows ({made}); writes to it are refused",
                f"run `omnigraph repair --confirm --branch {branch}`",
                branch,
                table.table_key,
            )
        case _:
            return Finding(
                "table_drift",
                Severity.ERROR,
                f"{where}: Lance itself has changed it ({made}); writes to it are refused",
                f"{look_at}, then `omnigraph repair --confirm --force --branch {branch}`",
                branch,
                table.table_key,
            )


def check_counts(exam: Examination) -> Iterator[Finding]:
    """Can every pinned version be opened, and does it have the rows and the columns that the graph says?"""
    for table in exam.pinned("counts"):
        yield from _counted(exam, table)


def _counted(exam: Examination, table: ExaminedTable) -> Iterator[Finding]:
    tables, pin = exam.repository.tables, table.pin
    found = partial(Finding, branch=table.shown, table_key=table.table_key)
    try:
        handle = tables.open(pin.ref)
        rows = tables.count(pin.ref)
    except HistoryReclaimed as error:
        exam.unreadable.add(pin.ref)
        yield found("version_missing", Severity.ERROR, str(error), RESTORE)
        return
    except OmniError as error:
        exam.unreadable.add(pin.ref)
        file = error.key if isinstance(error, ObjectDamaged) else None
        yield found("version_damaged", Severity.ERROR, str(error), RESTORE, file=file)
        return
    if rows != pin.row_count:
        yield found(
            "row_count",
            Severity.ERROR,
            f"{table.table_key} has {rows} rows, and the graph says {pin.row_count}",
            f"run `omnigraph repair --confirm --branch {table.shown}`",
        )
    if table.entity is None:
        return
    wanted = {field.name: field.type for field in table_schema(table.entity)}
    present = {field.name: field.type for field in handle.schema}
    wrong = sorted(n for n in {*wanted, *present} if str(wanted.get(n)) != str(present.get(n)))
    if wrong:
        exam.unreadable.add(pin.ref)
        yield found(
            "columns",
            Severity.ERROR,
            f"{table.table_key} has other columns than the schema says: {', '.join(wrong)}",
            RESTORE,
        )


def check_fragments(exam: Examination) -> Iterator[Finding]:
    """Does a table have so many small files, or deleted rows, that reads become slow?"""
    for table in exam.heads("fragments"):
        if table.pin.ref in exam.unreadable:
            continue
        tables = exam.repository.tables
        with translated(tables.shown(table.pin.location)):
            fragments = [fragment.metadata for fragment in tables.open(table.pin.ref).get_fragments()]
        optimize = f"run `omnigraph optimize --branch {table.shown}`"
        small = sum(fragment.physical_rows < ROWS_PER_FILE // 2 for fragment in fragments)
        if small >= SMALL_FILES:
            yield Finding(
                "small_files",
                Severity.WARNING,
                f"{table.table_key} has {small} files with few rows each",
                optimize,
                table.shown,
                table.table_key,
                count=small,
            )
        deleted, stored = sum(f.num_deletions for f in fragments), sum(f.physical_rows for f in fragments)
        if deleted >= DELETED_ROWS and deleted >= DELETED_SHARE * stored:
            yield Finding(
                "deleted_rows",
                Severity.WARNING,
                f"{deleted} of the {stored} rows in the files of {table.table_key} are deleted",
                optimize,
                table.shown,
                table.table_key,
                count=deleted,
            )
