"""The graph: what a program holds in its hand."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.errors import HistoryReclaimed, InvalidBranchName, SnapshotNotFound
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.resolve import compile_schema
from omnigraph.lang.source import Source
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.lineage import reachable
from omnigraph.manifest.repository import Repository, create, open_existing
from omnigraph.manifest.stamp import INTERNAL_SCHEMA_VERSION
from omnigraph.manifest.state import MAIN, Commit, ManifestState, TablePin
from omnigraph.storage.address import parse_address


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One immutable state of the whole graph: where each table stands, and the commit that made it so."""

    branch: str
    manifest_version: int
    commit: Commit | None
    tables: Mapping[str, TablePin]
    internal_schema_version: int

    def as_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "manifest_version": self.manifest_version,
            "graph_commit_id": None if self.commit is None else self.commit.graph_commit_id,
            "internal_schema_version": self.internal_schema_version,
            "tables": [pin.as_json() for pin in self.tables.values()],
        }


class Graph:
    """A typed property graph with branches and history. Safe to share between threads."""

    def __init__(self, repository: Repository, *, branch: str = MAIN, actor: str | None = None) -> None:
        self._repository = repository
        self._branch = branch
        self._actor = actor

    def __repr__(self) -> str:
        return f"Graph({str(self._repository.address)!r}, branch={self._branch!r})"

    @property
    def address(self) -> str:
        """Where the graph is."""
        return str(self._repository.address)

    @property
    def schema(self) -> str:
        """The accepted schema, as written."""
        return self._repository.schema_source

    @property
    def catalog(self) -> Catalog:
        """The accepted schema, for looking things up."""
        return self._repository.catalog

    def branch(self, name: str) -> Graph:
        """The same graph, with another default branch."""
        return Graph(self._repository, branch=self._repository.branches.find(name).name, actor=self._actor)

    def branches(self) -> list[Branch]:
        """All branches, main first."""
        return self._repository.branches.all()

    def create_branch(self, name: str, from_: str | None = None, *, actor: str | None = None) -> Branch:
        """Create a branch at the newest state of another one. It costs the same for one table or a thousand."""
        self._repository.require_writable()
        branches, parent = self._repository.branches, from_ or self._branch
        branches.check_create(name, parent)
        with self._repository.locks.control() as lock:
            return branches.create(name, parent, lock, actor or self._actor)

    def delete_branch(self, name: str) -> Branch:
        """Delete a branch that no other descends from. Its commits stay in the histories they were merged into."""
        self._repository.require_writable()
        branches = self._repository.branches
        branch = branches.check_delete(name)
        if branch.name == self._branch:
            raise InvalidBranchName(branch.name, "this handle works on it; use another handle to delete it")
        with self._repository.locks.control() as lock:
            return branches.delete(name, lock)

    def snapshot(self, branch: str | None = None, *, at: str | int | None = None) -> Snapshot:
        """The newest state of a branch, or its state at a commit id or a manifest version."""
        found = self._repository.branches.find(branch or self._branch)
        if at is None:
            return _snapshot(found, self._repository.manifest.latest(found.native))
        if isinstance(at, int):
            owner = self._owner_of(found, at)
            return _snapshot(replace(owner, name=found.name), self._repository.manifest.at(owner.native, at))
        return self._at_commit(self.commit(at))

    def commits(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        kind: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> list[Commit]:
        """The history of a branch, newest first; ``after`` goes on behind a commit of an earlier page."""
        page: list[Commit] = []
        skipping = after is not None
        for commit in self._history(branch or self._branch):
            if skipping:
                skipping = commit.graph_commit_id != after
            elif actor in (None, commit.actor_id) and kind in (None, commit.kind):
                page.append(commit)
                if len(page) >= limit:
                    return page
        if skipping:
            raise SnapshotNotFound(f"commit {after} in the history of '{branch or self._branch}'")
        return page

    def commit(self, graph_commit_id: str) -> Commit:
        """One commit, on whatever branch it was made."""
        wanted = graph_commit_id.strip()
        for branch in (self._repository.branches.find(self._branch), *self._repository.branches.all()):
            for commit in self._repository.manifest.latest(branch.native).commits:
                if commit.graph_commit_id == wanted:
                    return commit
        archived = self._repository.manifest.archive.find(wanted) if wanted.isalnum() else None
        if archived is None:
            raise SnapshotNotFound(f"commit {wanted}")
        return archived

    def _history(self, branch: str) -> Iterator[Commit]:
        """First the commits the manifest holds, then, only if asked for more, the archived ones."""
        state = self._repository.manifest.latest(self._repository.branches.find(branch).native)
        known = {commit.graph_commit_id: commit for commit in state.commits}
        complete = all(parent in known for commit in state.commits for parent in commit.parents)
        if complete and state.stamp >= INTERNAL_SCHEMA_VERSION:
            yield from reachable(state.head, known)
            return
        seen: set[str] = set()
        oldest = state.commits[0] if state.commits else None
        for commit in reachable(state.head, known):
            if commit is oldest:
                break
            seen.add(commit.graph_commit_id)
            yield commit
        everything = {**self._repository.manifest.archive.read(), **known}
        head = state.head or max(
            everything.values(), key=lambda c: (c.manifest_version, c.created_at), default=None
        )
        yield from (c for c in reachable(head, everything) if c.graph_commit_id not in seen)

    def _owner_of(self, branch: Branch, version: int) -> Branch:
        """The branch whose manifest holds a version: versions from before a fork are the parent's."""
        while branch.parent is not None and branch.fork_version is not None and version < branch.fork_version:
            branch = self._repository.branches.find(branch.parent)
        return branch

    def _at_commit(self, commit: Commit) -> Snapshot:
        live = {branch.name: branch for branch in self._repository.branches.all()}
        branch = live.get(commit.branch)
        if branch is None:
            raise HistoryReclaimed(f"commit {commit.graph_commit_id} of the deleted branch '{commit.branch}'")
        state = self._repository.manifest.at(branch.native, commit.manifest_version)
        if state.head is not None and state.head.graph_commit_id != commit.graph_commit_id:
            raise HistoryReclaimed(f"commit {commit.graph_commit_id} of an earlier branch '{commit.branch}'")
        return _snapshot(branch, replace(state, commits=(commit,)))


def _snapshot(branch: Branch, state: ManifestState) -> Snapshot:
    return Snapshot(branch.name, state.version, state.head, state.tables, state.stamp)


def init(
    uri: str | os.PathLike[str],
    schema: str,
    *,
    actor: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    force: bool = False,
) -> Graph:
    """Create a graph with a schema. Refuses a place that holds a graph."""
    return create_graph(uri, Source(schema, "<schema>"), actor=actor, storage_options=storage_options, force=force)


def create_graph(
    uri: str | os.PathLike[str],
    schema: Source,
    *,
    actor: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    force: bool = False,
) -> Graph:
    """Create a graph with a schema whose mistakes are to be shown under the schema's own name."""
    address = parse_address(uri, storage_options)
    compiled = compile_schema(schema.text, schema.name)
    return Graph(create(address, compiled, actor=actor, force=force), actor=actor)


def open(  # noqa: A001  the public name is omnigraph.open
    uri: str | os.PathLike[str],
    *,
    read_only: bool = False,
    actor: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Graph:
    """Open a graph. Read-only never writes to the store."""
    return Graph(open_existing(parse_address(uri, storage_options), read_only=read_only), actor=actor)
