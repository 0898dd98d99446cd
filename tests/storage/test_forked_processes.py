"""Processes that fork: no lock is kept by a child, and what would hang in a child is refused at once."""

from __future__ import annotations

import os
import signal

import pytest
from tests.processes import children
from tests.storage.forkers import (
    fork_and_be_killed,
    fork_and_leave_in_the_child,
    fork_and_release,
    fork_and_use,
    fork_while_a_thread_holds,
)
from tests.storage.lock_holders import GRAPH, taken
from tests.stores import Store

import omnigraph
from omnigraph.errors import LockTimeout

SCHEMA = "node Person { name: String @key }"


@pytest.mark.parametrize("branch", ["main", GRAPH])
def test_a_child_does_not_keep_what_its_parent_released(local_store: Store, branch: str) -> None:
    with children((fork_and_release, local_store, branch)) as (parent,):
        assert {parent.hear(), parent.hear()} == {"alive", "released"}
        with taken(local_store.locks(wait=0), branch):
            pass


@pytest.mark.parametrize("branch", ["main", GRAPH])
def test_a_child_does_not_keep_what_its_dead_parent_held(local_store: Store, branch: str) -> None:
    with children((fork_and_be_killed, local_store, branch)) as (parent,):
        said = {parent.hear(), parent.hear()} - {"alive"}
        pid = int(said.pop().removeprefix("forked "))
        try:
            parent.kill()
            with taken(local_store.locks(wait=0), branch):
                os.kill(pid, 0)
        finally:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("branch", ["main", GRAPH])
def test_a_child_does_not_release_what_its_parent_holds(shared_store: Store, branch: str) -> None:
    with children((fork_and_leave_in_the_child, shared_store, branch)) as (parent,):
        assert parent.hear() == "the child is gone"
        with pytest.raises(LockTimeout), taken(shared_store.locks(wait=0), branch):
            pytest.fail("two hold it")


def test_a_turn_that_another_thread_had_at_the_fork_does_not_hang_the_child(local_store: Store) -> None:
    with children((fork_while_a_thread_holds, local_store)) as (parent,):
        assert parent.hear().startswith("ForkedProcess: ")


@pytest.mark.parametrize("parent", ["opens", "writes and reads"])
@pytest.mark.parametrize("child", ["reads", "writes", "opens and reads", "opens and writes"])
def test_what_would_hang_in_a_child_is_refused_at_once(local_store: Store, parent: str, child: str) -> None:
    omnigraph.init(local_store.uri, SCHEMA)
    with children((fork_and_use, local_store, parent, child)) as (process,):
        said = process.hear()
        assert said.startswith("ForkedProcess: process ")
        assert f"forked from process {process.pid} " in said


def test_a_child_may_use_a_graph_if_its_parent_had_not(local_store: Store) -> None:
    omnigraph.init(local_store.uri, SCHEMA)
    with children((fork_and_use, local_store, "nothing", "opens and writes and reads")) as (process,):
        assert process.hear() == "1"
