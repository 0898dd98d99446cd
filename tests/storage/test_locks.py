"""Who may commit: one writer per branch, across threads and processes, and nobody after its holder is dead."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.processes import children, start_together
from tests.storage.lock_holders import GRAPH, SHORT_LIVED, be_interrupted, count_under_lock, hold, taken
from tests.storage.rows import ages, populated
from tests.storage.threads import PATIENCE, at_once, meanwhile
from tests.stores import Store, present

from omnigraph.errors import LockTimeout
from omnigraph.storage.locks import Locks

IMPATIENT = 0.05


class TestExclusion:
    @pytest.mark.parametrize(
        ("held", "wanted"), [("main", "main"), ("main", GRAPH), (GRAPH, "main"), (GRAPH, GRAPH)]
    )
    def test_one_keeps_the_other_out(self, store: Store, held: str, wanted: str) -> None:
        with taken(store.locks(), held):
            for locks in (store.locks(wait=IMPATIENT), store.locks(wait=0)):
                with pytest.raises(LockTimeout), taken(locks, wanted):
                    pytest.fail("two hold it")
        with taken(store.locks(), wanted):
            pass

    def test_writers_of_two_branches_work_at_the_same_time(self, store: Store) -> None:
        locks, both = store.locks(), threading.Barrier(2)

        def write(number: int) -> None:
            with locks.commit(f"branch/{number}"):
                both.wait(PATIENCE)

        at_once(write, threads=2)

    def test_a_lock_is_free_again_after_an_error(self, store: Store) -> None:
        locks = store.locks(wait=PATIENCE)
        for branch in ("main", GRAPH):
            with pytest.raises(ZeroDivisionError), taken(locks, branch):
                1 / 0  # noqa: B018
            with taken(locks, branch):
                pass

    def test_a_lock_that_could_not_be_had_leaves_nothing_behind(self, store: Store) -> None:
        with store.locks().commit("main"):
            for wanted in ("main", GRAPH):
                with pytest.raises(LockTimeout), taken(store.locks(wait=IMPATIENT), wanted):
                    pass
            with store.locks().commit("other"):
                pass
        with store.locks().control():
            pass

    def test_who_holds_a_lock_is_still_the_holder(self, store: Store) -> None:
        for branch in ("main", GRAPH):
            with taken(store.locks(), branch) as lock:
                lock.verify()

    def test_readers_never_wait(self, store: Store) -> None:
        tables, objects = store.tables(), store.objects()
        ref = populated(tables, {"ada": 36})
        objects.put("a", b"x")
        with store.locks().control():
            assert store.objects().get("a")
            assert store.objects().list("") != []
            assert store.tables().newest(ref.location) == ref.version
            assert ages(store.tables().scan(ref)) == {"ada": 36}


class TestThreads:
    def test_first_come_first_served(self, store: Store) -> None:
        locks, served = store.locks(), list[int]()

        def serve(number: int) -> None:
            with locks.commit("main"):
                served.append(number)

        with ThreadPoolExecutor(5) as pool, locks.commit("main"):
            for number in range(5):
                pool.submit(serve, number)
                wait_for_queue(locks, number + 1)
        assert served == [0, 1, 2, 3, 4]

    def test_threads_that_start_together_lose_nothing(self, store: Store) -> None:
        """Also when none of them has used the lock before."""
        locks, count = store.locks(), [0]

        def add(_: int) -> None:
            for _ in range(3):
                with locks.commit("main"):
                    before = count[0]
                    time.sleep(0)
                    count[0] = before + 1

        at_once(add)
        assert count == [24]

    def test_who_gives_up_is_not_served(self, store: Store) -> None:
        locks = store.locks(wait=IMPATIENT)
        with locks.commit("main"):
            refused = at_once(lambda _: gives_up(locks), threads=3)
        assert refused == [True] * 3
        with locks.commit("main"):
            pass

    def test_who_is_interrupted_is_not_served(self, local_store: Store) -> None:
        with children((be_interrupted, local_store)) as (child,):
            assert child.hear() == "waiting"
            time.sleep(IMPATIENT)
            os.kill(child.pid, signal.SIGINT)
            assert child.hear() == "held"

    def test_whoever_wants_the_graph_is_not_starved_by_writers(self, store: Store) -> None:
        """Two writers hand over to each other, each leaving when the other has come: the graph is never free."""
        locks, entries, turnstile = store.locks(), [0, 0], threading.Condition()

        def write(me: int, other: int) -> None:
            with locks.commit(f"branch/{me}"), turnstile:
                entries[me] = entered = max(entries) + 1
                turnstile.notify_all()
                turnstile.wait_for(lambda: entries[other] > entered, timeout=0.2)

        with meanwhile(lambda _: write(0, 1)), meanwhile(lambda _: write(1, 0)):
            for _ in range(3):
                with locks.control():
                    pass


class TestProcesses:
    @pytest.mark.parametrize("branch", ["main", GRAPH])
    def test_they_lose_nothing(self, shared_store: Store, branch: str) -> None:
        objects = shared_store.objects()
        objects.put("counter", b"0")
        with children(*[(count_under_lock, shared_store, branch, 5) for _ in range(3)]) as counters:
            start_together(counters)
            for child in counters:
                child.join()
        assert present(objects, "counter").content == b"15"

    @pytest.mark.parametrize("branch", ["main", GRAPH])
    def test_a_killed_holder_holds_nothing(self, shared_store: Store, branch: str) -> None:
        with children((hold, shared_store, branch, SHORT_LIVED)) as (child,):
            assert child.hear() == "held"
            with pytest.raises(LockTimeout), taken(shared_store.locks(wait=0), branch):
                pytest.fail("two hold it")
            child.kill()
        for wanted in ("main", GRAPH):
            with taken(shared_store.locks(wait=PATIENCE), wanted) as lock:
                lock.verify()


class TestMessages:
    def test_a_timeout_names_the_lock_and_its_holder(self, shared_store: Store) -> None:
        with children((hold, shared_store, "review/1")) as (child,):
            assert child.hear() == "held"
            with pytest.raises(LockTimeout) as caught, shared_store.locks(wait=IMPATIENT).commit("review/1"):
                pass
        error = caught.value
        assert (error.lock, error.seconds) == ("review/1", IMPATIENT)
        assert str(error.holder).startswith(f"{socket.gethostname()}:{child.pid}")
        assert "'review/1'" in str(error)

    def test_a_timeout_of_the_graph_names_the_graph(self, shared_store: Store) -> None:
        with children((hold, shared_store, GRAPH)) as (child,):
            assert child.hear() == "held"
            with pytest.raises(LockTimeout) as caught, shared_store.locks(wait=IMPATIENT).commit("main"):
                pass
        assert caught.value.lock == "graph"
        assert str(caught.value.holder).startswith(f"{socket.gethostname()}:{child.pid}")

    def test_whoever_shares_the_graph_is_not_named_one_by_one(self, shared_store: Store) -> None:
        with shared_store.locks().control():
            pass
        impatient = shared_store.locks(wait=IMPATIENT)
        with shared_store.locks().commit("main"), pytest.raises(LockTimeout) as caught, impatient.control():
            pass
        assert (caught.value.lock, caught.value.holder) == ("graph", "writers that share it")

    def test_a_thread_of_this_process_is_called_so(self, store: Store) -> None:
        locks = store.locks(wait=IMPATIENT)
        with locks.commit("main"), pytest.raises(LockTimeout) as caught, locks.commit("main"):
            pass
        assert (caught.value.lock, caught.value.holder) == ("main", "another thread of this process")


def wait_for_queue(locks: Locks, length: int) -> None:
    """Wait until so many threads stand in line."""
    deadline = time.monotonic() + PATIENCE
    while sum(len(turns._queue) for turns in locks._turns.values()) < length:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def gives_up(locks: Locks) -> bool:
    """Try to take a lock that is held, in a thread of its own."""
    try:
        with locks.commit("main"):
            return False
    except LockTimeout:
        return True


class TestJobs:
    def test_a_job_is_alive_while_it_holds_its_lock(self, store: Store) -> None:
        locks = store.locks(time_to_live=SHORT_LIVED)
        assert not locks.is_alive("j")
        with store.locks(time_to_live=SHORT_LIVED).job("j") as lock:
            assert locks.is_alive("j")
            with pytest.raises(LockTimeout), locks.abandoned("j"):
                pytest.fail("it lives")
            lock.verify()
        assert not locks.is_alive("j")
        with locks.abandoned("j"):
            pass
        assert not [key for key in store.objects().list("__locks") if "job" in key]
