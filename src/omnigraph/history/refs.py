"""What callers name a state of a graph by: a branch, a commit id, a tag, a manifest version, or a moment."""

from __future__ import annotations

import datetime as dt

from omnigraph.arguments import text_argument
from omnigraph.errors import BranchNotFound, SnapshotNotFound
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot


def resolve(repository: Repository, branch: Branch, name: str | int | dt.datetime | Snapshot) -> Snapshot:
    """The state behind a name: a number is a manifest version of the branch, a text a branch, commit, tag or
    moment."""
    if isinstance(name, Snapshot):
        return name
    if isinstance(name, dt.datetime) or (isinstance(name, int) and not isinstance(name, bool)):
        return repository.snapshot_at(branch, name)
    text = text_argument("ref", name)
    try:
        return repository.snapshot(repository.branches.find(text))
    except BranchNotFound as no_branch:
        try:
            return repository.snapshot_at(branch, text)
        except SnapshotNotFound:
            raise no_branch from None
