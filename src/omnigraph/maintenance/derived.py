"""Saving beside the tables what the first query of a process would derive: topologies, and the words of texts."""

from __future__ import annotations

from omnigraph.maintenance.texts import save_texts
from omnigraph.maintenance.topologies import save_topologies
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.settings import ReadSettings


def save_derived(repository: Repository, branch: Branch, settings: ReadSettings) -> None:
    """Save what is worth it of the tables that a branch owns, where that was not done yet."""
    save_topologies(repository, branch, settings)
    save_texts(repository, branch, settings)
