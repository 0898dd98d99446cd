"""Branches: create, find, list, delete.

A branch exists if and only if its ref object does. The native Lance branch behind it has the branch's incarnation
in its name, so a branch that is deleted and created again shares nothing with the old one, and what a crash leaves
of either is unreachable.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Set
from typing import TYPE_CHECKING, Final

from omnigraph.errors import (
    BranchExists,
    BranchInUse,
    BranchNotFound,
    BranchOutcomeUnknown,
    BranchProtected,
    BranchTagged,
    InvalidBranchName,
    ObjectDamaged,
    OmniError,
)
from omnigraph.failpoints import hit
from omnigraph.manifest.drafts import branch_of
from omnigraph.manifest.ids import fresh_id
from omnigraph.manifest.publisher import BranchName, Manifest
from omnigraph.manifest.refs.names import can_be_looked_up, check_new_name
from omnigraph.manifest.refs.objects import TRUNK, decode_ref, named_by
from omnigraph.manifest.refs.objects import Branch as Branch
from omnigraph.manifest.refs.objects import encode_ref as encode_ref
from omnigraph.manifest.refs.tags import Tags
from omnigraph.manifest.refs.writes import RefWriter
from omnigraph.manifest.stamp import INTERNAL_SCHEMA_VERSION
from omnigraph.manifest.state import MAIN, Commit, ManifestState
from omnigraph.storage import layout
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables import TableRef, Tables

if TYPE_CHECKING:
    from omnigraph.storage.locks import CommitLock

_UNKNOWN: Final = ""
"""The native branch of one whose ref is damaged."""


class Branches:
    """The branches of one graph."""

    def __init__(self, manifest: Manifest, tables: Tables, objects: ObjectStore, tags: Tags) -> None:
        self._manifest = manifest
        self._tables = tables
        self._objects = objects
        self._tags = tags
        self._writer = RefWriter(objects, tables.address.scheme, BranchOutcomeUnknown)

    def find(self, name: str) -> Branch:
        """The branch of that name; BranchNotFound names the nearest one."""
        trimmed = name.strip()
        if trimmed == MAIN:
            return TRUNK
        found = self._objects.get(layout.branch_ref(trimmed)) if can_be_looked_up(trimmed) else None
        if found is not None:
            return decode_ref(trimmed, found.content)
        legacy = {branch.name: branch for branch in self._without_ref()}
        if trimmed in legacy:
            return legacy[trimmed]
        from difflib import get_close_matches

        close = get_close_matches(trimmed, self.names(), n=1)
        raise BranchNotFound(trimmed, close[0] if close else None)

    def has(self, ref: BranchName) -> bool:
        """Does this incarnation of a branch exist? One created again under the same name is another."""
        if ref.native is None:
            return ref.name == MAIN
        found = self._objects.get(layout.branch_ref(ref.name))
        if found is not None:
            return decode_ref(ref.name, found.content).ref == ref
        return any(branch.ref == ref for branch in self._without_ref())

    def names(self) -> list[str]:
        """The names of all branches, main first, including damaged ones. Costs one listing."""
        return [MAIN, *self._referred(), *(branch.name for branch in self._without_ref())]

    def all(self) -> list[Branch]:
        """All branches whose refs can be read, main first, then by name."""
        return self.listed()[0]

    def damaged(self) -> list[ObjectDamaged]:
        """An error for each ref that cannot be read."""
        return self.listed()[1]

    def listed(self) -> tuple[list[Branch], list[ObjectDamaged]]:
        """The branches whose refs can be read, and an error for each ref that cannot."""
        branches, unreadable = [TRUNK], list[ObjectDamaged]()
        for name in self._referred():
            found = self._objects.get(layout.branch_ref(name))
            try:
                branches += [] if found is None else [decode_ref(name, found.content)]
            except ObjectDamaged as error:
                unreadable.append(error)
        return branches + self._without_ref(), unreadable

    def _referred(self) -> list[str]:
        return named_by(self._objects.list(layout.BRANCH_REFS))

    def _without_ref(self) -> list[Branch]:
        """Branches of a graph that an older release wrote, which had no refs."""
        if self._manifest.latest(None).stamp >= INTERNAL_SCHEMA_VERSION:
            return []
        return legacy_branches(self._tables, set(self._referred()))

    def head_among(self, branch: Branch, version: int, commits: Collection[Commit]) -> Commit | None:
        """The head commit of a branch at a manifest version, found in the archive of an older release's graph.

        It is the newest commit made on the branch by then, or else the parent's head at the fork.
        """
        own = [c for c in commits if c.branch == branch.name and c.manifest_version <= version]
        if own or branch.parent is None:
            return max(own, key=lambda c: (c.manifest_version, c.created_at), default=None)
        return self.head_among(self.find(branch.parent), min(version, branch.fork_version or version), commits)

    def check_create(self, name: str, parent: str) -> tuple[str, Branch]:
        """The trimmed name and the parent of a new branch; raises if it cannot be created."""
        live, trimmed = self.names(), name.strip()
        if trimmed in live and trimmed != MAIN:
            raise BranchExists(self.find(trimmed).name)
        if self._tags.has(trimmed):
            raise InvalidBranchName(trimmed, "there is a tag of that name")
        return check_new_name(name, live), self.find(parent)

    def create(
        self,
        name: str,
        parent: str,
        lock: CommitLock,
        creator: str | None = None,
        incarnation: str | None = None,
        request: str | None = None,
    ) -> Branch:
        """Create a branch at the parent's newest state. The caller holds the control lock.

        The ref is written last: until then there is only a native branch that nothing refers to. A load that
        stages files for the branch before it exists chooses its ``incarnation``. A caller that may have to
        ask again finds its ``request`` in the branch.
        """
        trimmed, origin = self.check_create(name, parent)
        state = self._manifest.latest(origin.native)
        incarnation = incarnation or fresh_id()
        native = native_name(trimmed, incarnation)
        branch = Branch(
            name=trimmed,
            native=native,
            incarnation=incarnation,
            parent=origin.name,
            fork_version=state.version,
            fork_commit=None if state.head is None else state.head.graph_commit_id,
            created_at=dt.datetime.now(dt.UTC),
            creator=creator,
            request=request,
        )
        hit("branch_create.before_native")
        self._tables.fork(TableRef(layout.MANIFEST, origin.native, state.version), native)
        hit("branch_create.after_native")
        self._manifest.note_newest(native, state.version)
        hit("branch_create.before_ref")
        lock.verify()
        key = layout.branch_ref(branch.name)
        if not self._writer.write(branch.name, key, encode_ref(branch), lambda: self.has(branch.ref)):
            raise BranchExists(branch.name)
        hit("branch_create.after_ref")
        return branch

    def check_delete(self, name: str) -> Branch:
        """The branch of a name; raises if it cannot be deleted."""
        try:
            branch = self.find(name)
        except ObjectDamaged:
            branch = Branch(name.strip(), _UNKNOWN)
        if branch.native is None:
            raise BranchProtected(MAIN, "every graph has its main branch")
        descendants = self._descendants(branch)
        if descendants:
            raise BranchInUse(branch.name, descendants)
        tags = [tag.name for tag in self._tags.pinned() if tag.branch == branch.name]
        if tags:
            raise BranchTagged(branch.name, tags)
        return branch

    def _descendants(self, branch: Branch) -> list[str]:
        """The names of branches forked from one, by their refs; for damaged refs, by Lance's fork points."""
        readable, unreadable = self.listed()
        names = [other.name for other in readable if other.parent == branch.name]
        if unreadable and branch.native != _UNKNOWN:
            lost = set(named_by([error.key for error in unreadable]))
            points = self._tables.fork_points(layout.MANIFEST)
            forked = {branch_of(native) for native, point in points.items() if point.branch == branch.native}
            names += sorted(lost & forked)
        return names

    def delete(self, name: str, lock: CommitLock) -> Branch:
        """Remove a branch that no other descends from. The caller holds the control lock.

        The ref is removed first, and with it the branch; its files follow as far as the store allows. The files of
        a branch whose ref is damaged are not known: they stay, and nothing refers to them.
        """
        branch = self.check_delete(name)
        assert branch.native is not None  # noqa: S101  only main has none
        if branch.native == _UNKNOWN:
            lock.verify()
            self._writer.remove(branch.name, layout.branch_ref(branch.name))
            return branch
        state = self._manifest.latest(branch.native)
        own = [
            c for c in state.commits if c.branch == branch.name and c.manifest_version > (branch.fork_version or 0)
        ]
        if own:
            self._manifest.archive.append(own)
        hit("branch_delete.before_ref")
        lock.verify()
        self._writer.remove(branch.name, layout.branch_ref(branch.name))
        hit("branch_delete.after_ref")
        self._reclaim(branch.native, state)
        return branch

    def _reclaim(self, native: str, state: ManifestState) -> None:
        """Remove the files of a deleted branch; those that cannot be removed are unreachable and stay."""
        forked = [pin.location for pin in state.tables.values() if pin.table_branch == native]
        try:
            for location in (*forked, layout.MANIFEST):
                self._tables.drop_branch(location, native)
                hit("branch_delete.after_tree")
            self._manifest.forget(native)
        except OmniError:
            return


def native_name(name: str, incarnation: str) -> str:
    """The Lance branch behind one incarnation of a branch."""
    return f"{name}.{incarnation.lower()}"


def legacy_branches(tables: Tables, known: Set[str]) -> list[Branch]:
    """The branches of a manifest from before refs: every native branch that is not internal."""
    return [
        Branch(name, name, parent=origin.branch or MAIN, fork_version=origin.version)
        for name, origin in tables.fork_points(layout.MANIFEST).items()
        if name not in known and not name.startswith("__")
    ]
