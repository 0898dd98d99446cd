"""Small things that are put right besides tables: hints, sidecars of deleted branches, locks of dead processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.errors import ObjectDamaged, SidecarUnreadable
from omnigraph.maintenance.repair.report import Action, Cure
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.heal import heal
from omnigraph.recovery.sidecar import list_sidecars, read_sidecar
from omnigraph.storage import layout
from omnigraph.storage.control.sealed import number, unseal
from omnigraph.storage.tables import TableRef


def curable(repository: Repository, branch: Branch) -> Iterator[Cure]:
    """What would be put right; nothing is written."""
    yield from _hint(repository, branch)
    yield from _orphaned_sidecars(repository)


def cure(repository: Repository, branch: Branch) -> list[Cure]:
    """Put right what can be."""
    found = list(curable(repository, branch))
    for each in found:
        if each.file == layout.head_hint(branch.native):
            version = repository.manifest.latest(branch.native).version
            repository.manifest.note_newest(branch.native, version)
    for name in sorted(_orphans(repository).values()):
        heal(repository, name)
    return [replace(each, action=Action.HEALED) for each in found]


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
            sidecar = read_sidecar(repository.objects, key)
        except SidecarUnreadable:
            continue
        if sidecar is not None and not repository.branches.has(sidecar.branch):
            found[key] = sidecar.branch.name
    return found
