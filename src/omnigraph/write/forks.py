"""Branches that are made for a load: taken back if the load fails, so that it happens completely or not at all."""

from __future__ import annotations

from contextlib import suppress

from omnigraph.errors import OmniError
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.sidecar import is_pending


def take_back(repository: Repository, branch: Branch) -> None:
    """Delete a branch that was made for a load which then failed, unless somebody has written to it, or a write to
    it is not over: an interrupted commit is for recovery to finish. One that cannot be deleted stays, empty."""
    with suppress(OmniError), repository.locks.control() as lock:
        is_untouched = repository.manifest.latest(branch.native).version == branch.fork_version
        if is_untouched and is_pending(repository.objects, branch.ref) is False:
            repository.branches.delete(branch.name, lock)
