"""What is put right besides tables: hints that lead nowhere, sidecars of deleted branches, damaged sidecars."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace

from omnigraph.errors import ObjectDamaged, SidecarUnreadable
from omnigraph.maintenance.repair.report import Action, Cure
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.audit import AuditLog, Recovery
from omnigraph.recovery.heal import heal
from omnigraph.recovery.sidecar import delete_sidecars, list_sidecars, read_sidecars
from omnigraph.storage import layout
from omnigraph.storage.control.sealed import number, unseal
from omnigraph.storage.tables import TableRef


def curable(repository: Repository, branch: Branch) -> Iterator[Cure]:
    """What would be put right; nothing is written."""
    yield from _hint(repository, branch)
    yield from _orphaned_sidecars(repository)
    for key in _damaged(repository):
        yield Cure("sidecar_damaged", key, Action.PREVIEW, "it cannot be read; --force gives its write up")


def cure(repository: Repository, branch: Branch, *, force: bool) -> list[Cure]:
    """Put right what can be; with ``force`` the writes are given up whose sidecars are damaged."""
    found = list(curable(repository, branch))
    if force:
        _give_up(repository, branch)
    for each in found:
        if each.file == layout.head_hint(branch.native):
            version = repository.manifest.latest(branch.native).version
            repository.manifest.note_newest(branch.native, version)
    for name in sorted(_orphans(repository).values()):
        heal(repository, name)
    return [replace(each, action=Action.HEALED) for each in found]


def _damaged(repository: Repository) -> list[str]:
    """The sidecars that are damaged; one of a newer release is not."""
    found: list[str] = []
    for key in list_sidecars(repository.objects):
        try:
            read_sidecars(repository.objects, key)
        except SidecarUnreadable as error:
            found += [] if error.is_newer else [key]
    return found


def _give_up(repository: Repository, branch: Branch) -> None:
    """Remove damaged sidecars while no writer can be alive. What their writes have left in tables was never
    published; it is known by its transactions, and is undone as drift."""
    if not _damaged(repository):
        return
    with repository.locks.control() as lock:
        for key in _damaged(repository):
            operation = key.rpartition("/")[2].removesuffix(".json")
            lock.verify()
            now = dt.datetime.now(dt.UTC)
            given_up = Recovery(operation, "GivenUp", "unknown", None, branch.name, None, {}, now)
            AuditLog(repository.tables).record(given_up)
            delete_sidecars(repository.objects, key)


def _hint(repository: Repository, branch: Branch) -> Iterator[Cure]:
    key = layout.head_hint(branch.native)
    found = repository.objects.get(key)
    if found is None:
        return
    try:
        hinted = number(unseal(key, found.content)["version"])
    except (ObjectDamaged, ValueError, KeyError):
        yield Cure("hint_damaged", key, Action.PREVIEW, "the hint to the newest manifest cannot be read")
        return
    if not repository.tables.exists(TableRef(layout.MANIFEST, branch.native, hinted)):
        yield Cure(
            "hint_stale", key, Action.PREVIEW, f"the hint names manifest version {hinted}, which is not there"
        )


def _orphaned_sidecars(repository: Repository) -> Iterator[Cure]:
    for key, branch in _orphans(repository).items():
        yield Cure("sidecar_orphaned", key, Action.PREVIEW, f"its branch '{branch}' was deleted")


def _orphans(repository: Repository) -> dict[str, str]:
    """The sidecars of writes to branches that are gone, with the names of the branches."""
    found: dict[str, str] = {}
    for key in list_sidecars(repository.objects):
        try:
            sidecars = read_sidecars(repository.objects, key)
        except SidecarUnreadable:
            continue
        if sidecars and not repository.branches.has(sidecars[0].branch):
            found[key] = sidecars[0].branch.name
    return found
