"""Processes that work until they are killed, and what the graph must be like after so many of their steps.

Step n is the same in every run, so the number of acknowledged steps says all there is to know.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

from tests.crash.operations import PERSON, commit_to, connect
from tests.crash.view import View
from tests.manifest.support import create_branch, delete_branch, new_graph
from tests.processes import children, ready, say, start_together
from tests.stores import Store

from omnigraph.manifest.repository import Repository


def step(graph: Repository, number: int) -> None:
    """Publish on main, create a branch, publish on it, delete it, and so on."""
    branch = f"walk/{number // 4}"
    match number % 4:
        case 0:
            commit_to(graph, "main", f"step {number}")
        case 1:
            create_branch(graph, branch)
        case 2:
            commit_to(graph, branch, f"step {number}")
        case 3:
            delete_branch(graph, branch)


def stepped(view: View, number: int) -> View:
    """What the graph is like after that step."""
    branch = f"walk/{number // 4}"
    match number % 4:
        case 0:
            return view.with_commit("main", PERSON, f"step {number}")
        case 1:
            return view.with_branch(branch)
        case 2:
            return view.with_commit(branch, PERSON, f"step {number}")
        case _:
            return view.without_branch(branch)


def changes(store: Store, start: int) -> None:
    """Step on through one graph."""
    graph = connect(store)
    ready()
    for number in count(start):
        step(graph, number)
        say(number)


def creations(store: Store, start: int) -> None:
    """Create one graph after the other."""
    ready()
    for number in count(start):
        new_graph(Store(f"{store.uri}/{number}", store.options))
        say(number)


_WALKS: dict[str, Callable[[Store, int], None]] = {"changes": changes, "creations": creations}


def kill_after(seconds: float, walk: str, store: Store, start: int) -> int:
    """Let a walker work for a while and kill it; how many steps it has acknowledged."""
    with children((_WALKS[walk], store, start)) as (walker,):
        start_together([walker])
        time.sleep(seconds)
        walker.kill()
        return len(walker.heard())
