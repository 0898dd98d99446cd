"""What a graph looks like from outside, for comparing it before and after a crash."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tests.stores import Store

import omnigraph
from omnigraph.errors import GraphNotFound, NotAGraph
from omnigraph.manifest.state import TablePin


@dataclass(frozen=True)
class BranchView:
    """One branch: where it comes from, where it stands, and what its commits say, newest first."""

    parent: str | None
    fork_version: int | None
    manifest_version: int
    tables: dict[str, TablePin]
    history: list[str | None]


@dataclass(frozen=True)
class View:
    """A whole graph. Ids that are new in every run are left out; commits are known by their messages."""

    branches: dict[str, BranchView] = field(default_factory=dict)
    tags: tuple[str, ...] = ()

    def with_commit(self, branch: str, table_key: str, message: str) -> View:
        """The graph after one more commit that moved a table."""
        before = self.branches[branch]
        pin = before.tables[table_key]
        after = replace(
            before,
            manifest_version=before.manifest_version + 1,
            tables={**before.tables, table_key: replace(pin, table_version=pin.table_version + 1)},
            history=[message, *before.history],
        )
        return replace(self, branches={**self.branches, branch: after})

    def with_branch(self, name: str, parent: str = "main") -> View:
        """The graph after a branch was created."""
        origin = self.branches[parent]
        created = replace(origin, parent=parent, fork_version=origin.manifest_version)
        return replace(self, branches={**self.branches, name: created})

    def without_branch(self, name: str) -> View:
        """The graph after a branch was deleted."""
        return replace(self, branches={key: branch for key, branch in self.branches.items() if key != name})

    def with_tags(self, *names: str) -> View:
        """The graph with these tags."""
        return replace(self, tags=names)


NOTHING = View()
"""What there is where no graph is."""


def look(store: Store, *, read_only: bool = True) -> View:
    """Open a graph with nothing cached and look at all of it."""
    try:
        graph = omnigraph.open(store.uri, read_only=read_only, storage_options=store.options)
    except (GraphNotFound, NotAGraph):
        return NOTHING
    branches = {}
    for branch in graph.branches():
        snapshot = graph.snapshot(branch.name)
        history = [commit.message for commit in graph.commits(branch.name, limit=10**6)]
        branches[branch.name] = BranchView(
            branch.parent, branch.fork_version, snapshot.manifest_version, dict(snapshot.tables), history
        )
    return View(branches, tuple(tag.name for tag in graph.tags()))
