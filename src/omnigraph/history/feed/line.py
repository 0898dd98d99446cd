"""The line of a branch: its states one after another, along first parents, from the first commit to the head.

Every commit publishes the next version of its branch's manifest, and a branch goes on counting where it was
forked. So the commits after any version are found by their version numbers; neither the archive nor any other
branch is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.errors import ChangeFeedGap, HistoryReclaimed, InvalidArgument, SnapshotNotFound
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit, ManifestState


@dataclass(frozen=True, slots=True)
class Step:
    """A commit of a line, with the states before and after it. The first commit of a graph has none before it."""

    commit: Commit
    before: Snapshot | None
    after: Snapshot


class BranchLine:
    """The states of one branch with those that it inherits. ``cursor`` is the one to name if they are gone."""

    def __init__(self, repository: Repository, branch: Branch, cursor: str | None = None) -> None:
        self._repository = repository
        self._cursor = cursor
        self._owners = [branch]
        self.branch = branch

    def head(self) -> ManifestState:
        """The newest state."""
        return self._repository.manifest.latest(self.branch.native)

    def state(self, version: int) -> ManifestState:
        """The state at a manifest version; ChangeFeedGap if it was removed from the store."""
        try:
            return self._repository.manifest.at(self._owner(version).native, version)
        except (HistoryReclaimed, SnapshotNotFound):
            raise self._gap(version) from None

    def step(self, version: int) -> Step | None:
        """The commit that made a version; None for a version that only marks a batch of a stream as done."""
        after = self.state(version)
        commit = after.head
        if commit is None:  # a manifest from before commits were kept in it
            raise self._gap(version)
        if commit.manifest_version != version:
            return None
        before = self._snapshot(self.state(version - 1)) if commit.parents else None
        return Step(commit, before, self._snapshot(after))

    def position_of(self, graph_commit_id: str) -> int:
        """The version that a commit of this line made; InvalidArgument if the commit is on none of its states."""
        commit = self._repository.commits.find(graph_commit_id, self.branch)
        version = commit.manifest_version
        if self._owner(version).name == commit.branch and version <= self.head().version:
            head = self.state(version).head
            if head is not None and head.graph_commit_id == commit.graph_commit_id:
                return version
        reason = f"commit {commit.graph_commit_id} is not among the first parents of '{self.branch.name}'"
        raise InvalidArgument("start", reason)

    def reclaimed(self, commit: Commit) -> ChangeFeedGap:
        """The error for a commit whose tables cannot be read any more."""
        return ChangeFeedGap(self.branch.name, self._cursor, commit.graph_commit_id)

    def _snapshot(self, state: ManifestState) -> Snapshot:
        return self._repository.snapshot(self._owner(state.version), state)

    def _owner(self, version: int) -> Branch:
        """The branch on which a version was made."""
        for owner in self._ancestry():
            if version > (owner.fork_version or 0):
                return owner
        return self._owners[-1]

    def _ancestry(self) -> Iterator[Branch]:
        """The branch, its parent and so on; each is looked up once."""
        yield from self._owners
        while (parent := self._owners[-1].parent) is not None:
            self._owners.append(self._repository.branches.find(parent))
            yield self._owners[-1]

    def _gap(self, version: int) -> ChangeFeedGap:
        """The error for a version that is gone; its commit is looked for in the newest commits and the archive."""
        archived = self._repository.manifest.archive.read(f"manifest_version = {version}").values()
        owner = self._owner(version).name
        lost = [c for c in self.head().commits if c.manifest_version == version]
        lost += [c for c in archived if c.branch == owner]
        return ChangeFeedGap(self.branch.name, self._cursor, lost[0].graph_commit_id if lost else None)
