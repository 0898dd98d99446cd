"""What child processes do that fork: locks across a fork, and graphs across one."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable

from tests.processes import hear, say
from tests.storage.lock_holders import taken
from tests.stores import Store

from omnigraph.errors import OmniError

ADD = "query add($name: String) { insert Person { name: $name } }"
ALL = "query everybody() { match { $p: Person } return { $p.name } }"


def forked(work: Callable[[], object]) -> int:
    """Fork a child that says what comes of some work, and lives until the test is over; its id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        try:
            say(work())
        except OmniError as error:
            say(f"{type(error).__name__}: {error}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stdin.read()
        os._exit(0)
    return pid


def fork_and_release(store: Store, branch: str) -> None:
    """Take a lock, fork a child that lives on, and release the lock."""
    with taken(store.locks(), branch):
        forked(lambda: "alive")
    say("released")
    hear()


def fork_and_be_killed(store: Store, branch: str) -> None:
    """Take a lock, fork a child that lives on, and keep the lock until killed."""
    with taken(store.locks(), branch):
        say(f"forked {forked(lambda: 'alive')}")
        hear()


def fork_and_leave_in_the_child(store: Store, branch: str) -> None:
    """Take a lock and fork; the child leaves the block in which the lock is held, and its parent does not."""
    with taken(store.locks(), branch) as lock:
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            lock.verify()
            say("the child is gone")
            hear()
            return
    os._exit(0)


def fork_while_a_thread_holds(store: Store) -> None:
    """Fork while another thread has its turn; the child asks for the same lock."""
    locks, held = store.locks(), threading.Event()

    def keep() -> None:
        with locks.commit("main"):
            held.set()
            threading.Event().wait()

    threading.Thread(target=keep, daemon=True).start()
    held.wait()

    def ask() -> str:
        with locks.commit("main"):
            return "held twice"

    forked(ask)
    hear()


def fork_and_use(store: Store, parent: str, child: str) -> None:
    """Do something with a graph, fork, and do something in the child."""
    import omnigraph

    def do(what: str, graph: omnigraph.Graph | None) -> object:
        if graph is None or "opens" in what:
            graph = omnigraph.open(store.uri, storage_options=store.options)
        if "writes" in what:
            graph.mutate(ADD, {"name": f"of {os.getpid()}"})
        if "reads" in what:
            return len(graph.query(ALL))
        return graph.address

    graph = omnigraph.open(store.uri, storage_options=store.options) if parent != "nothing" else None
    do(parent, graph) if graph is not None else None
    forked(lambda: do(child, graph))
    hear()
