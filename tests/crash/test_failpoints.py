"""Kill it anywhere: whatever is interrupted by SIGKILL, the graph is as before or as after, never in between."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.operations import LEASE, OPERATIONS, kill_at
from tests.crash.view import NOTHING, View, look
from tests.manifest import legacy
from tests.manifest.support import SCHEMA, new_graph
from tests.sampling import sampled
from tests.stores import Store

import omnigraph
from omnigraph import failpoints
from omnigraph.errors import GraphExists, NotAGraph

DONE, NOT_DONE = True, False

INTERRUPTED_CREATIONS = {
    "init.after_claim": NOT_DONE,
    "init.after_table": NOT_DONE,
    "init.after_schema": NOT_DONE,
    "init.before_manifest": NOT_DONE,
    "init.after_manifest": DONE,
}
"""Where `init` is killed, and whether there is a graph afterwards."""

INTERRUPTED_CHANGES = [
    ("publish.before_stage", "publish", NOT_DONE),
    ("publish.before_commit", "publish", NOT_DONE),
    ("publish.after_commit", "publish", DONE),
    ("publish.after_archive", "archive", NOT_DONE),
    ("publish.before_commit", "archive", NOT_DONE),
    ("publish.after_commit", "archive", DONE),
    ("branch_create.before_native", "branch_create", NOT_DONE),
    ("branch_create.after_native", "branch_create", NOT_DONE),
    ("branch_create.before_ref", "branch_create", NOT_DONE),
    ("branch_create.after_ref", "branch_create", DONE),
    ("branch_delete.before_ref", "branch_delete", NOT_DONE),
    ("branch_delete.after_ref", "branch_delete", DONE),
    ("branch_delete.after_tree", "branch_delete", DONE),
    ("tag_create.before_ref", "tag_create", NOT_DONE),
    ("tag_create.after_ref", "tag_create", DONE),
    ("tag_delete.before_ref", "tag_delete", NOT_DONE),
    ("tag_delete.after_ref", "tag_delete", DONE),
]
"""Where a change is killed, and whether it has happened."""

INTERRUPTED_MIGRATIONS = ["migrate.between_steps", "publish.before_commit", "publish.after_commit"]

ON_OBJECT_STORES = [
    ("publish.before_commit", "publish", NOT_DONE),
    ("publish.after_commit", "publish", DONE),
    ("branch_create.before_ref", "branch_create", NOT_DONE),
    ("branch_delete.after_ref", "branch_delete", DONE),
    ("tag_create.after_ref", "tag_create", DONE),
    ("tag_delete.before_ref", "tag_delete", NOT_DONE),
]


def test_every_failpoint_has_a_case() -> None:
    covered = {failpoint for failpoint, *_ in INTERRUPTED_CHANGES}
    assert covered.union(INTERRUPTED_CREATIONS, INTERRUPTED_MIGRATIONS) == failpoints.NAMES


@pytest.mark.parametrize(("failpoint", "operation", "done"), sampled(INTERRUPTED_CHANGES, 5))
def test_a_change_on_a_disk(local_store: Store, failpoint: str, operation: str, done: bool) -> None:
    check_change(local_store, failpoint, operation, done)


@pytest.mark.parametrize(("failpoint", "operation", "done"), sampled(ON_OBJECT_STORES, 1))
def test_a_change_on_an_object_store(s3_store: Store, failpoint: str, operation: str, done: bool) -> None:
    check_change(s3_store, failpoint, operation, done)


def check_change(store: Store, failpoint: str, name: str, done: bool) -> None:
    """Kill a change, look at what is left, and make the same change again."""
    operation = OPERATIONS[name]
    operation.prepare(store)
    old = look(store)
    new = operation.effect(old)
    kill_at(failpoint, name, store)
    left = new if done else old
    assert look(store) == left
    assert look(store, read_only=False) == left
    locks_are_free(store)
    if done:
        operation.make_room(store)
        left = look(store)
    operation.run(store)
    assert look(store) == operation.effect(left)


def locks_are_free(store: Store) -> None:
    """A dead holder's locks are free at once on a disk, and when its leases have run out elsewhere."""
    locks = store.locks(wait=5 * LEASE, time_to_live=LEASE)
    with locks.commit("main"), locks.commit("dev"):
        pass
    with locks.control():
        pass


@pytest.mark.parametrize(("failpoint", "done"), INTERRUPTED_CREATIONS.items())
def test_a_creation_on_a_disk(local_store: Store, tmp_path: Path, failpoint: str, done: bool) -> None:
    check_creation(local_store, failpoint, done, like=look_at_new_graph(tmp_path))
    locks_are_free(local_store)


@pytest.mark.long
def test_a_creation_on_an_object_store(s3_store: Store, tmp_path: Path) -> None:
    check_creation(s3_store, "init.before_manifest", NOT_DONE, like=look_at_new_graph(tmp_path))


def look_at_new_graph(folder: Path) -> View:
    """What a graph looks like that nobody interrupted."""
    place = Store(str(folder / "undisturbed"))
    new_graph(place)
    return look(place)


def check_creation(store: Store, failpoint: str, done: bool, like: View) -> None:
    """Kill a creation; what is left is the whole graph, or something that `init` can make a graph of."""
    kill_at(failpoint, "init", store)
    if done:
        assert look(store) == like
        with pytest.raises(GraphExists):
            omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
    else:
        with pytest.raises(NotAGraph, match="interrupted"):
            omnigraph.open(store.uri, storage_options=store.options)
        assert look(store) == NOTHING
        graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
        assert graph.schema == SCHEMA
    assert look(store) == like
    assert look(store, read_only=False) == like


@pytest.mark.parametrize("failpoint", INTERRUPTED_MIGRATIONS)
def test_a_migration(local_store: Store, failpoint: str) -> None:
    """`tests/manifest/test_migrations.py` kills it between any two steps."""
    legacy.write_graph(Path(local_store.uri), stamp=1)
    before = contents(look(local_store))
    kill_at(failpoint, "migrate", local_store)
    assert contents(look(local_store)) == before
    assert contents(look(local_store, read_only=False)) == before
    locks_are_free(local_store)


def contents(view: View) -> dict[str, object]:
    """A view without manifest versions, which a migration adds to."""
    return {name: (branch.parent, branch.tables) for name, branch in view.branches.items()}
