"""Branches: create, find, list, delete.

A branch is there if and only if its ref object is. The native Lance branch behind it carries the branch's
incarnation in its name, so a branch that is deleted and created again shares nothing with the old one, and what a
crash leaves of either is unreachable.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ulid import ULID

from omnigraph.errors import (
    BranchExists,
    BranchInUse,
    BranchNotFound,
    BranchProtected,
    OmniError,
    StorageUnavailable,
)
from omnigraph.failpoints import hit
from omnigraph.manifest.names import can_be_looked_up, check_new_name
from omnigraph.manifest.publisher import BranchName, Manifest
from omnigraph.manifest.stamp import INTERNAL_SCHEMA_VERSION
from omnigraph.manifest.state import MAIN, Commit, ManifestState
from omnigraph.storage import layout
from omnigraph.storage.locks import CommitLock
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables import TableRef, Tables


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of a graph and where it comes from."""

    name: str
    native: str | None
    incarnation: str | None = None
    parent: str | None = None
    fork_version: int | None = None
    fork_commit: str | None = None
    created_at: dt.datetime | None = None
    creator: str | None = None

    @property
    def ref(self) -> BranchName:
        """What the manifest needs to know of it."""
        return BranchName(self.name, self.native)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "parent": self.parent,
            "fork_manifest_version": self.fork_version,
            "fork_commit_id": self.fork_commit,
            "created_at": None if self.created_at is None else self.created_at.isoformat().replace("+00:00", "Z"),
            "creator": self.creator,
            "incarnation": self.incarnation,
        }


TRUNK = Branch(MAIN, None)


class Branches:
    """The branches of one graph."""

    def __init__(self, manifest: Manifest, tables: Tables, objects: ObjectStore) -> None:
        self._manifest = manifest
        self._tables = tables
        self._objects = objects

    def find(self, name: str) -> Branch:
        """The branch of that name; BranchNotFound names the nearest one."""
        trimmed = name.strip()
        if trimmed == MAIN:
            return TRUNK
        found = self._objects.get(layout.branch_ref(trimmed)) if can_be_looked_up(trimmed) else None
        if found is not None:
            return self._decode(trimmed, found.content)
        legacy = {branch.name: branch for branch in self._without_ref()}
        if trimmed in legacy:
            return legacy[trimmed]
        close = get_close_matches(trimmed, self.names(), n=1)
        raise BranchNotFound(trimmed, close[0] if close else None)

    def names(self) -> list[str]:
        """The names of all branches, main first. One listing, however many there are."""
        refs = [_name_of(key) for key in self._objects.list(layout.BRANCH_REFS)]
        return [MAIN, *refs, *(branch.name for branch in self._without_ref())]

    def all(self) -> list[Branch]:
        """All branches, main first, then by name."""
        branches = [TRUNK]
        for key in self._objects.list(layout.BRANCH_REFS):
            found = self._objects.get(key)
            if found is not None:
                branches.append(self._decode(_name_of(key), found.content))
        return branches + self._without_ref()

    def _without_ref(self) -> list[Branch]:
        """Branches of an older release, which had no refs; none in a manifest of this one."""
        if self._manifest.latest(None).stamp >= INTERNAL_SCHEMA_VERSION:
            return []
        refs = {_name_of(key) for key in self._objects.list(layout.BRANCH_REFS)}
        return legacy_branches(self._tables, refs)

    def head_among(self, branch: Branch, version: int, commits: Collection[Commit]) -> Commit | None:
        """The commit a branch was at when its manifest was at a version, where the manifest itself does not say.

        It is the newest one made on the branch, or else the one its parent was at when they parted.
        """
        own = [c for c in commits if c.branch == branch.name and c.manifest_version <= version]
        if own or branch.parent is None:
            return max(own, key=lambda c: (c.manifest_version, c.created_at), default=None)
        return self.head_among(self.find(branch.parent), min(version, branch.fork_version or version), commits)

    def _decode(self, name: str, content: bytes) -> Branch:
        try:
            stored: Mapping[str, Any] = json.loads(content)
            return Branch(
                name,
                stored["native"],
                stored["incarnation"],
                stored["parent"],
                stored["fork_version"],
                stored["fork_commit"],
                None if stored["created_at"] is None else dt.datetime.fromisoformat(stored["created_at"]),
                stored["creator"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise StorageUnavailable(
                layout.branch_ref(name), f"the branch's ref cannot be read: {error}"
            ) from error

    def check_create(self, name: str, parent: str) -> tuple[str, Branch]:
        """The trimmed name and the parent of a branch that may be created; raises whatever is in the way."""
        live, trimmed = self.names(), name.strip()
        if trimmed in live and trimmed != MAIN:
            raise BranchExists(trimmed)
        return check_new_name(name, live), self.find(parent)

    def create(
        self,
        name: str,
        parent: str,
        lock: CommitLock,
        creator: str | None = None,
        incarnation: str | None = None,
    ) -> Branch:
        """A new branch at the parent's newest state. The caller holds the control lock.

        The ref is written last: until then there is only a native branch that nothing refers to. Whoever staged
        files for the branch before it exists has chosen its ``incarnation``.
        """
        trimmed, origin = self.check_create(name, parent)
        state = self._manifest.latest(origin.native)
        incarnation = incarnation or str(ULID())
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
        )
        hit("branch_create.before_native")
        self._tables.fork(TableRef(layout.MANIFEST, origin.native, state.version), native)
        hit("branch_create.after_native")
        self._manifest.note_newest(native, state.version)
        hit("branch_create.before_ref")
        lock.verify()
        if self._objects.put_if_absent(layout.branch_ref(trimmed), encode_ref(branch)) is None:
            raise BranchExists(trimmed)
        hit("branch_create.after_ref")
        return branch

    def check_delete(self, name: str) -> Branch:
        """A branch that may be deleted; raises whatever is in the way."""
        branch = self.find(name)
        if branch.native is None:
            raise BranchProtected(MAIN, "every graph has its main branch")
        descendants = [other.name for other in self.all() if other.parent == branch.name]
        if descendants:
            raise BranchInUse(branch.name, descendants)
        return branch

    def delete(self, name: str, lock: CommitLock) -> Branch:
        """Remove a branch that no other descends from. The caller holds the control lock.

        The ref goes first, and with it the branch; its files follow as far as the store allows.
        """
        branch = self.check_delete(name)
        assert branch.native is not None  # noqa: S101  only main has none
        state = self._manifest.latest(branch.native)
        own = [
            c for c in state.commits if c.branch == branch.name and c.manifest_version > (branch.fork_version or 0)
        ]
        if own:
            self._manifest.archive.append(own)
        hit("branch_delete.before_ref")
        lock.verify()
        self._objects.delete(layout.branch_ref(branch.name))
        hit("branch_delete.after_ref")
        self._reclaim(branch.native, state)
        return branch

    def _reclaim(self, native: str, state: ManifestState) -> None:
        """Remove the files of a branch that is gone; what cannot be removed now is unreachable and waits."""
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


def _name_of(key: str) -> str:
    """The branch whose ref has this key."""
    return key.removeprefix(layout.BRANCH_REFS + "/").removesuffix(".json")


def legacy_branches(tables: Tables, known: Set[str]) -> list[Branch]:
    """The branches of a manifest from before refs: every native branch that is not internal."""
    return [
        Branch(name, name, parent=origin.branch or MAIN, fork_version=origin.version)
        for name, origin in tables.fork_points(layout.MANIFEST).items()
        if name not in known and not name.startswith("__")
    ]


def encode_ref(branch: Branch) -> bytes:
    """The content of a branch's ref object."""
    stored = {
        "native": branch.native,
        "incarnation": branch.incarnation,
        "parent": branch.parent,
        "fork_version": branch.fork_version,
        "fork_commit": branch.fork_commit,
        "created_at": None if branch.created_at is None else branch.created_at.isoformat(),
        "creator": branch.creator,
    }
    return json.dumps(stored, indent=1).encode()
