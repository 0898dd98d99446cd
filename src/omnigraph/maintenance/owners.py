"""Which branch owns a table. Maintenance changes only tables that a branch has forked, or created."""

from __future__ import annotations

from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import MAIN


def owner(repository: Repository, native: str | None) -> str:
    """The branch that owns the tables of a native branch."""
    if native is None:
        return MAIN
    return next((branch.name for branch in repository.branches.all() if branch.native == native), native)
