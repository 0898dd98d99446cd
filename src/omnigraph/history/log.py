"""The log: the commits that led to a branch, newest first, with the names that lead to them."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.errors import BranchNotFound, HistoryReclaimed, InvalidArgument, SnapshotNotFound
from omnigraph.history.diff import ChangeFilter, diff
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.refs.names import in_utc
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.retained import Retained, read_retained
from omnigraph.manifest.state import Commit

_CLOCKS: Final = dt.timedelta(hours=1)
"""By how much the clocks of two writers may differ: a commit may be older than its parent."""

Counts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which commits are wanted; None means all of them. ``since`` is included, ``until`` is not."""

    actor: str | None = None
    kind: str | None = None
    since: dt.datetime | None = None
    until: dt.datetime | None = None

    def takes(self, commit: Commit) -> bool:
        """Is the commit wanted?"""
        return (
            self.actor in (None, commit.actor_id)
            and self.kind in (None, commit.kind)
            and (self.since is None or commit.created_at >= self.since)
            and (self.until is None or commit.created_at < self.until)
        )

    def ends_at(self, commit: Commit) -> bool:
        """Is the commit so old that none of its ancestors is wanted?"""
        return self.since is not None and commit.created_at < self.since - _CLOCKS


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A commit, with the branches whose newest commit it is and the tags that name it.

    ``changes`` counts what the commit changed, by table and operation. It is None if that was not counted, or
    cannot be because the state is gone. ``is_reclaimed`` says that the commit's state was cleaned away, or went
    with its branch: the commit can be listed, but not read.
    """

    commit: Commit
    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    changes: Counts | None = None
    is_reclaimed: bool = False

    def as_json(self) -> dict[str, Any]:
        changes = None if self.changes is None else {key: dict(counts) for key, counts in self.changes.items()}
        return {
            **self.commit.as_json(),
            "branches": list(self.branches),
            "tags": list(self.tags),
            "changes": changes,
            "reclaimed": self.is_reclaimed,
        }


def wanted_commits(
    repository: Repository, branch: Branch, wanted: LogFilter, after: str | None = None
) -> Iterator[Commit]:
    """The commits that led to a branch and are wanted, newest first; ``after`` goes on behind a commit or tag."""
    return chosen_commits(repository, repository.commits.of(branch), f"history of '{branch.name}'", wanted, after)


def chosen_commits(
    repository: Repository, history: Iterator[Commit], shown: str, wanted: LogFilter, after: str | None
) -> Iterator[Commit]:
    """Those commits of a history that are wanted. ``shown`` is what messages call the history."""
    last = None if after is None else repository.commits.id_of(after)
    if last is not None and not any(commit.graph_commit_id == last for commit in history):
        raise SnapshotNotFound(f"commit {last} in the {shown}")
    for commit in history:
        if wanted.ends_at(commit):
            return
        if wanted.takes(commit):
            yield commit


def entries(repository: Repository, commits: Iterable[Commit], *, stat: bool) -> list[LogEntry]:
    """Commits with the names that lead to them and, if ``stat`` is set, with the counts of what they changed."""
    heads: dict[str, list[str]] = {}
    branches = {branch.name: branch for branch in repository.branches.all()}
    retained = read_retained(repository.objects)
    for branch in branches.values():
        with contextlib.suppress(BranchNotFound):  # deleted since it was listed
            head = repository.manifest.latest(branch.native).head
            heads.setdefault("" if head is None else head.graph_commit_id, []).append(branch.name)
    tags: dict[str, list[str]] = {}
    for tag in repository.tags.listed()[0]:
        tags.setdefault(tag.graph_commit_id, []).append(tag.name)
    return [
        LogEntry(
            commit,
            tuple(heads.get(commit.graph_commit_id, ())),
            tuple(tags.get(commit.graph_commit_id, ())),
            changes_of(repository, commit) if stat else None,
            _is_reclaimed(commit, branches.get(commit.branch), retained),
        )
        for commit in commits
    ]


def _is_reclaimed(commit: Commit, branch: Branch | None, retained: Retained) -> bool:
    """Is the state of a commit gone, because its branch is or because it was cleaned away?"""
    if branch is None or commit.manifest_version <= (branch.fork_version or 0):
        return True
    return not retained.of(branch.native).has(commit.manifest_version)


def changes_of(repository: Repository, commit: Commit) -> Counts | None:
    """How many entities a commit changed relative to its first parent; None if either state is gone."""
    if not commit.parents:
        return {}
    try:
        branch, state = repository.commits.state_at(commit)
        before = repository.snapshot_at(branch, commit.parents[0])
    except HistoryReclaimed:
        return None
    found = diff(repository.tables, before, repository.snapshot(branch, state), ChangeFilter())
    return {table.table_key: table.counts() for table in found.tables}


def instant(argument: str, value: dt.datetime | str | None) -> dt.datetime | None:
    """A point in time that a caller gave: a datetime, or a date or time in ISO 8601; without a zone, in UTC."""
    if value is None:
        return None
    try:
        found = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
        return in_utc(found)
    except (ValueError, TypeError, AttributeError, OverflowError):
        reason = f"'{value!s:.40}' is no time; write it as 2026-05-01 or 2026-05-01T12:00:00Z"
        raise InvalidArgument(argument, reason) from None
