"""What happens to a writer from inside: its disk fails for a while, its files may not grow, it forks."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.faults.disk import Action, Disk, Family, Operation, Rule
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ForkedProcess

Weather = Callable[[], AbstractContextManager[list[str]]]
"""Something that may go wrong while a block runs, never for longer; afterwards the list has what did."""

_FAULTS: dict[Operation | Family, tuple[Action, ...]] = {
    "write": ("short", "short", "ENOSPC", "EIO"),
    "sync": ("EIO",),
    "create": ("ENOSPC", "EMFILE"),
    "rename": ("EIO", "ENOSPC"),
    "link": ("EIO", "ENOSPC"),
    "unlink": ("EIO",),
    "read": ("EIO",),
    "open": ("EMFILE", "EIO"),
    "list": ("EIO", "EMFILE"),
    "mkdir": ("ENOSPC",),
    "room": ("ENOSPC",),
    "descriptor": ("EMFILE",),
    "change": ("EIO", "stall"),
}
FORK_LIVES = 120
"""After how many seconds a forked child ends by itself, if nobody is left who would end it."""


def faulty_disk(store: Store, journal: Path, chance: random.Random) -> Weather:
    """Now and then one operation on a file of the graph fails, or all of a kind do for up to a second."""
    disk = Disk(Path(store.uri), journal)

    @contextmanager
    def weather() -> Iterator[list[str]]:
        struck: list[str] = []
        if chance.random() < 0.5:
            yield struck
            return
        operation = chance.choice(list(_FAULTS))
        action = chance.choice(_FAULTS[operation])
        sticky = action != "stall" and (operation in ("room", "descriptor") or chance.random() < 0.2)
        number = disk.arm(Rule(operation, "**", chance.randint(1, 60), action, 0.3, sticky))
        turn = threading.Lock()

        def clear() -> None:
            with turn:
                if disk.fired(number):
                    struck.append(f"{action} at {operation}{' for a while' if sticky else ''}")
                disk.disarm()

        gone = threading.Timer(chance.uniform(0.01, 1.0), clear)
        if sticky:
            gone.start()
        try:
            yield struck
        finally:
            gone.cancel()
            clear()
            disk.forget()

    return weather


def size_limit(chance: random.Random) -> Weather:
    """Now and then no file may grow above a few thousand bytes: what is written behind that is cut off."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    @contextmanager
    def weather() -> Iterator[list[str]]:
        if chance.random() < 0.5:
            yield []
            return
        resource.setrlimit(resource.RLIMIT_FSIZE, (chance.randint(100, 12000), hard))
        try:
            yield ["file size limit"]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))

    return weather


@contextmanager
def calm() -> Iterator[list[str]]:
    """Nothing goes wrong."""
    yield []


def fork_soon(graph: Graph, store: Store, log: Path, delay: float) -> threading.Thread:
    """Fork in a while, from another thread, so that the writer may hold anything at that moment."""
    warnings.filterwarnings("ignore", "This process.*is multi-threaded", DeprecationWarning)
    descriptor = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def fork() -> None:
        time.sleep(delay)
        if os.fork() == 0:
            _be_forked(graph, store, descriptor)

    thread = threading.Thread(target=fork, name="fork", daemon=True)
    thread.start()
    return thread


def _be_forked(graph: Graph, store: Store, log: int) -> None:
    """In a forked child: whatever is tried with the graph is refused; it lives on until it is killed."""
    signal.alarm(FORK_LIVES)
    _say(log, pid=os.getpid())
    attempts: list[Callable[[], object]] = [
        lambda: graph.mutate('query q() { delete Item where tag = "x" }'),
        lambda: graph.load([], mode="append"),
        lambda: graph.create_branch("forked"),
        lambda: graph.query("query q() { match { $e: Entry } return { $e.tag } }"),
        lambda: omnigraph.open(store.uri, storage_options=store.options),
    ]
    answers = []
    for attempt in attempts:
        try:
            attempt()
            answers.append("it worked")
        except ForkedProcess:
            answers.append("ForkedProcess")
        except BaseException as error:  # noqa: BLE001  whatever it is, the run reports it
            answers.append(f"{type(error).__name__}: {error}")
    _say(log, answers=answers)
    while True:
        time.sleep(1)


def _say(log: int, **what: object) -> None:
    os.write(log, (json.dumps(what) + "\n").encode())
