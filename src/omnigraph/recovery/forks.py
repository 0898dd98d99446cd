"""Branches that a load creates for itself: deleted if the load fails, so that it leaves everything or nothing."""

from __future__ import annotations

from contextlib import suppress

from omnigraph.errors import OmniError
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.sidecar import is_pending


def discard_branch(repository: Repository, branch: Branch) -> None:
    """Delete the branch of a load that failed.

    It stays if another writer has written to it, or if a write to it is interrupted and recovery may finish it.
    """
    with suppress(OmniError), repository.locks.control() as lock:
        is_untouched = repository.manifest.latest(branch.native).version == branch.fork_version
        if is_untouched and is_pending(repository.objects, branch.ref) is False:
            repository.branches.delete(branch.name, lock)
