"""The operations that are killed: how each begins, what it does, and what the graph is like if it was done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.crash.view import View
from tests.manifest.support import create_branch, delete_branch, move, new_graph, publish_unlocked
from tests.processes import see_killed
from tests.stores import Store

from omnigraph.manifest.publisher import COMMIT_TAIL, CommitDraft
from omnigraph.manifest.repository import Repository, open_existing

PERSON = "node:Person"
LEASE = 1.0
"""How long a dead holder's lease lasts on object stores here, in seconds."""


def connect(store: Store) -> Repository:
    """A graph opened for writing, whose leases on object stores are short."""
    repository = open_existing(store.address, read_only=False)
    return replace(repository, locks=store.locks(time_to_live=LEASE))


def commit_to(repository: Repository, branch: str, message: str) -> None:
    """Publish a change of one table, as writers do."""
    ref = repository.branches.find(branch).ref
    change, expected = move(repository.manifest.latest(ref.native), PERSON)
    with repository.locks.commit(branch) as lock:
        repository.manifest.publish(ref, change, expected, CommitDraft("load", message=message), lock)


def a_graph(store: Store) -> None:
    new_graph(store)


def a_graph_about_to_archive(store: Store) -> None:
    graph = new_graph(store)
    while len(graph.manifest.latest(None).commits) < COMMIT_TAIL:
        publish_unlocked(graph, PERSON)


def a_branch_with_a_commit(store: Store) -> None:
    graph = new_graph(store)
    create_branch(graph, "dev")
    commit_to(graph, "dev", "on dev")


def publish(store: Store) -> None:
    commit_to(connect(store), "main", "victim")


def branch_create(store: Store) -> None:
    create_branch(connect(store), "dev")


def branch_delete(store: Store) -> None:
    delete_branch(connect(store), "dev")


def a_graph_with_a_tag(store: Store) -> None:
    new_graph(store)
    tag_create(store)


def tag_create(store: Store) -> None:
    graph = connect(store)
    commit = graph.manifest.latest(None).head
    assert commit is not None
    with graph.locks.control() as lock:
        graph.tags.create("v1", commit, graph.branches.names(), lock)


def tag_delete(store: Store) -> None:
    graph = connect(store)
    with graph.locks.control() as lock:
        graph.tags.delete("v1", lock)


def migrate(store: Store) -> None:
    open_existing(store.address, read_only=False)


def nothing(store: Store) -> None:
    """Leave the place as it is."""


@dataclass(frozen=True)
class Operation:
    """A change of a graph: what it starts from, what it does, what it does to a view, and how to do it again."""

    prepare: Callable[[Store], None]
    run: Callable[[Store], None]
    effect: Callable[[View], View]
    make_room: Callable[[Store], None]


OPERATIONS = {
    "publish": Operation(a_graph, publish, lambda view: view.with_commit("main", PERSON, "victim"), nothing),
    "archive": Operation(
        a_graph_about_to_archive, publish, lambda view: view.with_commit("main", PERSON, "victim"), nothing
    ),
    "branch_create": Operation(a_graph, branch_create, lambda view: view.with_branch("dev"), branch_delete),
    "branch_delete": Operation(
        a_branch_with_a_commit, branch_delete, lambda view: view.without_branch("dev"), branch_create
    ),
    "tag_create": Operation(a_graph, tag_create, lambda view: view.with_tags("v1"), tag_delete),
    "tag_delete": Operation(a_graph_with_a_tag, tag_delete, lambda view: view.with_tags(), tag_create),
}

_VICTIMS = {name: operation.run for name, operation in OPERATIONS.items()} | {"init": a_graph, "migrate": migrate}


def kill_at(failpoint: str, operation: str, store: Store) -> None:
    """Run an operation in a process of its own and see it die at a failpoint."""
    see_killed(failpoint, _VICTIMS[operation], store)
