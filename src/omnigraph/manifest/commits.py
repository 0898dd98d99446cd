"""Time travel: finding commits, and the states of the graph that they made."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from itertools import chain, islice

from omnigraph.errors import BranchNotFound, HistoryReclaimed, SnapshotNotFound
from omnigraph.manifest.lineage import Ancestry, history
from omnigraph.manifest.publisher import Manifest
from omnigraph.manifest.refs.branches import Branch, Branches
from omnigraph.manifest.refs.names import is_commit_id
from omnigraph.manifest.refs.tags import Tag, Tags
from omnigraph.manifest.state import Commit, ManifestState


class Commits:
    """The commits of all branches of one graph."""

    def __init__(self, manifest: Manifest, branches: Branches, tags: Tags) -> None:
        self._manifest = manifest
        self._branches = branches
        self._tags = tags

    def of(self, branch: Branch) -> Iterator[Commit]:
        """The history of a branch, newest first. The archive is read only if the caller goes that far back."""
        state = self._manifest.latest(branch.native)
        if state.head is None:
            archived = self._manifest.archive.read()
            head = self._branches.head_among(branch, state.version, archived.values())
            return history(head, Ancestry(archived, iter(())))
        return history(state.head, self.ancestry(branch))

    def ancestry(self, *branches: Branch) -> Ancestry:
        """All commits, to be found by id, with the newest ones of some branches at hand."""
        known = {c.graph_commit_id: c for branch in branches for c in self._manifest.latest(branch.native).commits}
        return Ancestry(known, self._places())

    def _places(self) -> Iterator[dict[str, Commit]]:
        """Where commits lie that are not at hand: the last ones of the archive, the branches, then the rest."""
        pages = self._manifest.archive.pages()
        yield from islice(pages, 1)
        yield self._recent()
        yield from pages

    def find(self, name: str, near: Branch) -> Commit:
        """One commit of any branch, by its id or by a tag; the branch ``near`` is searched first.

        If it is not found and a branch is damaged, the commit may be on that one: ObjectDamaged.
        """
        wanted = name.strip()
        tag = self._tag(wanted)
        if tag is not None:
            wanted, near = tag.graph_commit_id, self._branches.find(tag.branch)
        for commit in chain(self._manifest.latest(near.native).commits, self._tails()):
            if commit.graph_commit_id == wanted:
                return commit
        archived = self._manifest.archive.find(wanted) if wanted.isalnum() else None
        if archived is None:
            raise next(iter(self._branches.damaged()), SnapshotNotFound(_described(wanted)))
        return archived

    def as_of(self, branch: Branch, moment: dt.datetime) -> Commit:
        """The newest commit of a branch that was not made after a moment; SnapshotNotFound if it had none by then.

        Only the branch's own line is followed: a commit that was merged later was on another branch then.
        """
        ancestry, commit = self.ancestry(branch), next(self.of(branch), None)
        while commit is not None and commit.created_at > moment:
            commit = next(iter(ancestry.parents(commit)), None)
        if commit is None:
            raise SnapshotNotFound(f"commit of branch '{branch.name}' from {moment.isoformat()} or before")
        return commit

    def id_of(self, name: str) -> str:
        """The id of a commit that is named by its id or by a tag; it need not exist."""
        wanted = name.strip()
        tag = self._tag(wanted)
        return wanted if tag is None else tag.graph_commit_id

    def _tag(self, name: str) -> Tag | None:
        return None if is_commit_id(name) else self._tags.get(name)

    def state_at(self, commit: Commit) -> tuple[Branch, ManifestState]:
        """The branch that a commit was made on and the state it made; HistoryReclaimed if either is gone."""
        shown = f"commit {commit.graph_commit_id}"
        try:
            branch = self._branches.find(commit.branch)
        except BranchNotFound:
            raise HistoryReclaimed(f"{shown} of the deleted branch '{commit.branch}'") from None
        try:
            if commit.manifest_version > (branch.fork_version or 0):
                state = self._manifest.at(branch.native, commit.manifest_version)
                if state.head is None or state.head.graph_commit_id == commit.graph_commit_id:
                    return branch, state
        except HistoryReclaimed as error:
            raise HistoryReclaimed(f"the state of {shown}", error.remedy) from None
        except SnapshotNotFound:
            pass
        raise HistoryReclaimed(f"{shown} of an earlier branch '{commit.branch}'")

    def require_kept(self, commit: Commit) -> None:
        """Raise HistoryReclaimed unless the state of a commit is on the store, remembered or not."""
        branch, _ = self.state_at(commit)
        if not self._manifest.has(branch.native, commit.manifest_version):
            remedy = self._manifest.remedy(branch.native)
            raise HistoryReclaimed(f"the state of commit {commit.graph_commit_id}", remedy)

    def state_of(self, branch: Branch, version: int) -> ManifestState:
        """The state of a branch at a manifest version; versions from before its fork are the parent's."""
        while branch.parent is not None and branch.fork_version is not None and version < branch.fork_version:
            branch = self._branches.find(branch.parent)
        return self._manifest.at(branch.native, version)

    def _recent(self) -> dict[str, Commit]:
        """The newest commits of every branch, by id: a merged commit is with its branch until it is archived."""
        return {commit.graph_commit_id: commit for commit in self._tails()}

    def _tails(self) -> Iterator[Commit]:
        for branch in self._branches.all():
            with contextlib.suppress(BranchNotFound):  # deleted since it was listed, and archived by now
                yield from self._manifest.latest(branch.native).commits


def _described(name: str) -> str:
    return f"commit {name}" if is_commit_id(name) else f"commit or tag '{name}'"
