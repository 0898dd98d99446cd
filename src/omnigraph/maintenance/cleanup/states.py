"""The states that stay, and the table versions and schemas that they name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from omnigraph.errors import HistoryReclaimed
from omnigraph.maintenance.cleanup.bases import merge_states
from omnigraph.maintenance.cleanup.retention import Retention
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.retained import Retained, RetainedStates
from omnigraph.manifest.state import Commit, ManifestState
from omnigraph.storage.control.contents import Entry

Pins = dict[str | None, set[int]]
"""Versions of one table by the native branch that holds them."""


@dataclass(slots=True)
class BranchStates:
    """The states of one branch that stay: all versions from the oldest to the newest, and some older ones."""

    branch: Branch
    oldest: int
    newest: int
    oldest_commit: str | None = None
    older: set[int] = field(default_factory=set)

    def has(self, version: int) -> bool:
        """Does the state of a version stay?"""
        return version >= self.oldest or version in self.older


@dataclass(slots=True)
class Needed:
    """What stays: states by native branch, and the table versions and schemas that they name."""

    states: dict[str | None, BranchStates] = field(default_factory=dict)
    pins: dict[str, Pins] = field(default_factory=dict)
    current: dict[str, Pins] = field(default_factory=dict)
    """Those of the pins that the newest states have."""
    table_keys: dict[str, str] = field(default_factory=dict)
    schemas: set[str] = field(default_factory=set)

    def add(self, state: ManifestState, *, is_newest: bool) -> None:
        """Keep what a state names."""
        for pin in state.tables.values():
            self.table_keys.setdefault(pin.location, pin.table_key)
            for pins in (self.pins, self.current) if is_newest else (self.pins,):
                pins.setdefault(pin.location, {}).setdefault(pin.table_branch, set()).add(pin.table_version)
        if state.schema is not None:
            self.schemas.add(state.schema)

    @property
    def retained(self) -> Retained:
        """What is left of each branch, for those who ask for more."""
        return Retained(
            {
                native or "main": RetainedStates(states.oldest, states.oldest_commit, frozenset(states.older))
                for native, states in self.states.items()
            }
        )


def survey(
    repository: Repository,
    policy: Retention,
    now: dt.datetime,
    versions: Mapping[str | None, Mapping[int, Entry]],
) -> Needed:
    """Find out which states stay, and read each of them once.

    ``versions`` has the files of the manifest's versions by native branch. Raises if a branch, a tag or a state
    cannot be read: nothing is known then about what it needs.
    """
    needed = Needed()
    branches = _live(repository)
    for branch in branches:
        newest = repository.manifest.latest(branch.native)
        files = versions.get(branch.native, {})
        oldest = min(newest.version, *_recent(files, newest.version, now - policy.window))
        oldest = min(oldest, _counted(repository, branch, newest, policy.keep or 0))
        oldest = max(oldest, _unbroken(files, newest.version))
        needed.states[branch.native] = BranchStates(branch, oldest, newest.version)
    for native, version in _older(repository, branches):
        states = needed.states[native]
        if not states.has(version):
            states.older.add(version)
    for native, states in needed.states.items():
        for version in sorted({*states.older, *range(states.oldest, states.newest + 1)}):
            _add(repository, needed, native, version)
    return needed


def follow(repository: Repository, needed: Needed) -> None:
    """Keep what was published, branched or tagged since the survey, and forget branches that were deleted.

    The caller holds the control lock, so that nothing is published or tagged meanwhile.
    """
    branches = _live(repository)
    for native in needed.states.keys() - {branch.native for branch in branches}:
        del needed.states[native]
    for branch in branches:
        newest = repository.manifest.latest(branch.native)
        states = needed.states.get(branch.native)
        if states is None:
            first = newest.version if branch.fork_version is None else branch.fork_version
            states = needed.states[branch.native] = BranchStates(branch, first, first - 1)
        for version in range(states.newest + 1, newest.version + 1):
            states.newest = version
            _add(repository, needed, branch.native, version)
    for native, version in {*_tagged(repository), *_fork_points(branches)}:
        states = needed.states[native]
        if not states.has(version):
            states.older.add(version)
            _add(repository, needed, native, version)


def _live(repository: Repository) -> list[Branch]:
    """All branches; ObjectDamaged if one cannot be read."""
    branches, unreadable = repository.branches.listed()
    if unreadable:
        raise unreadable[0]
    return branches


def _add(repository: Repository, needed: Needed, native: str | None, version: int) -> None:
    """Keep what one state names; one that is gone already is none of those that stay."""
    states = needed.states[native]
    if version in states.older and not repository.manifest.has(native, version):
        states.older.discard(version)
        return
    state = repository.manifest.at(native, version)
    needed.add(state, is_newest=version == states.newest)
    if version == states.oldest and state.head is not None:
        states.oldest_commit = state.head.graph_commit_id


def _recent(files: Mapping[int, Entry], newest: int, since: dt.datetime) -> Iterator[int]:
    """The versions that were the newest at some time since then: those whose next one was written later."""
    yield newest
    ordered = sorted(files)
    for version, following in pairwise(ordered):
        if files[following].modified > since:
            yield version


def _unbroken(files: Collection[int], newest: int) -> int:
    """The oldest version from which on none is missing. What lies before a gap is left of an earlier cleanup."""
    while newest - 1 in files:
        newest -= 1
    return newest


def _counted(repository: Repository, branch: Branch, newest: ManifestState, keep: int) -> int:
    """The version of the oldest one of a branch's newest commits, so many of them."""
    ancestry = repository.commits.ancestry(branch)
    commit, oldest = newest.head, newest.version
    for _ in range(keep):
        if commit is None or commit.branch != branch.name or commit.manifest_version <= (branch.fork_version or 0):
            break
        oldest = min(oldest, commit.manifest_version)
        commit = ancestry.find(commit.parents[0]) if commit.parents else None
    return oldest


def _older(repository: Repository, branches: Collection[Branch]) -> Iterator[tuple[str | None, int]]:
    """The states that stay whatever their age: those of tags, fork points and the bases of merges."""
    yield from _tagged(repository)
    yield from _fork_points(branches)
    newest = {branch.name: repository.manifest.latest(branch.native).head for branch in branches}
    heads = {name: head for name, head in newest.items() if head is not None}
    natives = {branch.name: branch.native for branch in branches}

    def is_readable(commit: Commit) -> bool:
        try:
            repository.commits.require_kept(commit)
        except HistoryReclaimed:
            return False
        return True

    for commit in merge_states(heads, branches, repository.commits.ancestry(*branches), is_readable):
        if is_readable(commit):
            yield natives[commit.branch], commit.manifest_version


def _tagged(repository: Repository) -> Iterator[tuple[str | None, int]]:
    for tag in repository.tags.pinned():
        yield repository.branches.find(tag.branch).native, tag.manifest_version


def _fork_points(branches: Collection[Branch]) -> Iterator[tuple[str | None, int]]:
    natives = {branch.name: branch.native for branch in branches}
    for branch in branches:
        if branch.parent in natives and branch.fork_version is not None:
            yield natives[branch.parent], branch.fork_version
