"""A graph whose tables have enough small files to fold, and writes that fold them."""

from __future__ import annotations

from tests.recovery.scenes import WRITES, Contents, Write, edge, new_graph, person
from tests.recovery.victims import connect
from tests.stores import Store

from omnigraph import Graph, Settings, WriteSettings
from omnigraph.manifest.repository import Repository

EAGER = Settings(write=WriteSettings(fold_files=2))
"""Two files of a size are folded."""


def eager(repository: Repository) -> Graph:
    """A graph whose writers fold two files of a size already."""
    return Graph(repository, settings=EAGER)


def worn_graph(store: Store) -> Graph:
    """A graph with several files of one row in two of its tables, on both branches."""
    graph = new_graph(store)
    for branch in ("main", "dev"):
        graph.load([person("Dot", 1), edge("LivesIn", "Bo", "Paris", id="bo")], mode="append", branch=branch)
        graph.load([person("Fox", 2)], mode="append", branch=branch)
    return eager(graph._repository)


def _hire(graph: Graph, branch: str) -> object:
    return graph.load([person("Eve", 3)], mode="merge", branch=branch, actor="victim")


def _with_eve(contents: Contents) -> Contents:
    people = [row for row in contents["node:Person"] if row[0] != "Eve"]
    return {**contents, "node:Person": sorted([*people, ("Eve", 3)])}


FOLDING_WRITES = {
    "one table": Write(_hire, _with_eve, 1, "load"),
    "two tables": WRITES["merge"],
}
"""Writes that fold files of each table that they change; the second also shrinks a file that it folds."""


def fold(store: Store, name: str, branch: str) -> None:
    """In a child: one of the writes, which folds."""
    FOLDING_WRITES[name].run(eager(connect(store)._repository), branch)
