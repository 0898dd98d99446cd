"""What callers name a state of a graph by: a branch, a commit id, a tag, or a manifest version."""

from __future__ import annotations

from omnigraph.arguments import text_argument
from omnigraph.errors import BranchNotFound, SnapshotNotFound
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot


def resolve(repository: Repository, branch: Branch, name: str | int | Snapshot) -> Snapshot:
    """The state behind a name: a number is a manifest version of the branch, a text a branch, commit or tag."""
    if isinstance(name, Snapshot):
        return name
    if isinstance(name, int) and not isinstance(name, bool):
        return repository.snapshot_at(branch, name)
    text = text_argument("ref", name)
    try:
        return repository.snapshot(repository.branches.find(text))
    except BranchNotFound as no_branch:
        try:
            return repository.snapshot_at(branch, text)
        except SnapshotNotFound:
            raise no_branch from None
