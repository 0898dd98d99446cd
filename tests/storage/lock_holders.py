"""What child processes do with locks. Kept apart so that they start without the test tools."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager

from tests.processes import hear, ready, say
from tests.stores import Store, present

from omnigraph.errors import LockLost
from omnigraph.storage import locks as storage_locks
from omnigraph.storage.locking.leases import TIME_TO_LIVE
from omnigraph.storage.locks import CommitLock, Locks

GRAPH = "(graph)"
"""What stands for the whole graph where a branch is asked for."""

SHORT_LIVED = 0.5
"""How long a lease lives that is meant to run out, in seconds."""


def taken(locks: Locks, branch: str) -> AbstractContextManager[CommitLock]:
    """The commit lock of a branch, or the control lock."""
    return locks.control() if branch == GRAPH else locks.commit(branch)


def hold(store: Store, branch: str, time_to_live: float = TIME_TO_LIVE) -> None:
    """In a child: take a lock, say so, and keep it until told to release; on the way verify it when asked."""
    with taken(store.locks(time_to_live=time_to_live), branch) as lock:
        say("held")
        while hear() == "verify":
            try:
                lock.verify()
            except LockLost as error:
                say(error)
            else:
                say("still held")
    say("released")


def linger(store: Store, time_to_live: float, seconds: float | None) -> None:
    """In a child: end a write to a contended branch, after which the lock is kept for so many seconds, or as long
    as it is by default; then wait to be killed, or end."""
    if seconds is not None:
        vars(storage_locks)["LINGERING"] = seconds
    locks = store.locks(time_to_live=time_to_live)
    write_contended(locks)
    say("written")
    if seconds is not None:
        hear()


def write_contended(locks: Locks, known: object = "the newest state") -> CommitLock:
    """Hold the lock of a branch on which a race was lost, as a write does, and leave what is known of it."""
    locks.note_contention("main")
    with locks.turn("main") as lock:
        lock.settled = known
    return lock


def count_under_lock(store: Store, branch: str, times: int) -> None:
    """In a child: add one to a counter in two steps, which only a lock makes one."""
    objects, locks = store.objects(), store.locks()
    ready()
    for _ in range(times):
        with taken(locks, branch) as lock:
            count = int(present(objects, "counter").content)
            lock.verify()
            objects.put("counter", b"%d" % (count + 1))


def be_interrupted(store: Store) -> None:
    """In a child: wait for a lock that another thread holds, until Ctrl-C comes; then wait for it again."""
    locks = store.locks()
    taking, give_back = threading.Event(), threading.Event()

    def keep() -> None:
        with locks.commit("main"):
            taking.set()
            give_back.wait()

    keeper = threading.Thread(target=keep)
    keeper.start()
    taking.wait()
    say("waiting")
    try:
        with locks.commit("main"):
            say("not expected")
    except KeyboardInterrupt:
        give_back.set()
    keeper.join()
    with locks.commit("main"):
        say("held")
