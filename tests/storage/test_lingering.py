"""A process keeps the lock of a contended branch for a moment, for its own next write."""

from __future__ import annotations

import pytest
from tests.processes import children
from tests.storage.lock_holders import GRAPH, SHORT_LIVED, linger, taken, write_contended
from tests.storage.test_locks import gives_up
from tests.storage.threads import PATIENCE
from tests.stores import Store

import omnigraph
from omnigraph.errors import LockTimeout
from omnigraph.storage.locking.leases import TIME_TO_LIVE
from omnigraph.storage.locks import CommitLock

LONG = 60.0
"""So many seconds no test takes: what happens by then did not happen because the time was over."""


@pytest.fixture
def kept_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.storage.locks.LINGERING", LONG)


@pytest.mark.usefixtures("kept_long")
class TestWhileItIsKept:
    def test_the_next_write_begins_where_the_last_one_ended(self, store: Store) -> None:
        locks = store.locks()
        first = write_contended(locks, "a state")
        assert gives_up(store.locks(wait=0))
        with locks.turn("main") as again:
            assert (again is first, again.settled) == (True, "a state")
            again.verify()
            again.settled = None

    def test_what_comes_after_another_kind_of_work_knows_nothing(self, store: Store) -> None:
        """`commit` is for work that is no write: it forgets what the write before knew, and releases the lock."""
        locks = store.locks()
        write_contended(locks)
        with locks.commit("main") as lock:
            assert lock.settled is None
        assert not gives_up(store.locks(wait=0))

    def test_what_was_left_to_the_next_write_is_done_before_the_release(self, store: Store) -> None:
        locks, done = store.locks(), list[str]()
        lock = write_contended(locks)
        lock._deferred.append(lambda: done.append("sidecar away"))
        assert done == []
        locks.let_go()
        assert done == ["sidecar away"]
        assert not gives_up(store.locks(wait=0))

    def test_the_write_that_tries_without_it_does_not_give_it_up(self, store: Store) -> None:
        """While its process keeps the lock it cannot find out whether others want it."""
        locks = store.locks()
        write_contended(locks)
        while locks.is_contended("main"):
            pass
        with locks.turn_or_answer("main", "an offer") as lock:
            assert lock is not None
        assert gives_up(store.locks(wait=0))
        assert locks.is_contended("main")
        locks.let_go()

    def test_letting_go_leaves_a_lock_that_a_thread_has(self, store: Store) -> None:
        locks = store.locks()
        write_contended(locks)
        with locks.turn("main") as lock:
            locks.let_go()
            assert gives_up(store.locks(wait=0))
            lock.settled = None

    def test_it_is_released_when_the_graph_is_closed(self, shared_store: Store) -> None:
        graph = omnigraph.init(
            shared_store.uri, "node P { name: String @key }", storage_options=shared_store.options or None
        )
        graph._opened.locks.note_contention("main")
        graph.mutate('query q() { insert P { name: "a" } }')
        assert gives_up(shared_store.locks(wait=0))
        graph.close()
        assert not gives_up(shared_store.locks(wait=0))


class TestWhatIsNotKept:
    @pytest.mark.usefixtures("kept_long")
    def test_a_branch_on_which_the_write_that_tries_was_alone(self, store: Store) -> None:
        locks = store.locks()
        write_contended(locks, None)
        while locks.is_contended("main"):
            pass
        with locks.turn_or_answer("main", "an offer") as lock:
            assert lock is not None
            lock.settled = "a state"
        assert not gives_up(store.locks(wait=0))
        assert not locks.is_contended("main")

    def test_a_branch_without_contention(self, store: Store) -> None:
        with store.locks().turn("main") as lock:
            lock.settled = "a state"
        assert not gives_up(store.locks(wait=0))

    @pytest.mark.usefixtures("kept_long")
    def test_a_lock_whose_holder_knows_nothing_for_certain(self, store: Store) -> None:
        write_contended(store.locks(), None)
        assert not gives_up(store.locks(wait=0))

    @pytest.mark.usefixtures("kept_long")
    def test_a_lock_after_an_error(self, store: Store) -> None:
        locks = store.locks()
        locks.note_contention("main")
        with pytest.raises(ZeroDivisionError), locks.turn("main") as lock:
            fail_knowing(lock)
        assert not gives_up(store.locks(wait=0))


def fail_knowing(lock: CommitLock) -> None:
    """Fail in the middle of a write, when something is known of the branch."""
    lock.settled = "a state"
    raise ZeroDivisionError


class TestOtherProcesses:
    @pytest.mark.parametrize("wanted", ["main", GRAPH])
    def test_they_get_it_a_moment_later(self, store: Store, wanted: str) -> None:
        write_contended(store.locks())
        with taken(store.locks(wait=PATIENCE), wanted) as lock:
            lock.verify()

    def test_they_get_it_when_the_process_ends(self, shared_store: Store) -> None:
        """The process waits for the release: a lease is not left to run out."""
        with children((linger, shared_store, TIME_TO_LIVE, None)) as (child,):
            assert child.hear() == "written"
            child.join()
        assert not shared_store.locks().seems_held("main")

    def test_they_get_it_from_one_that_was_killed(self, shared_store: Store) -> None:
        with children((linger, shared_store, SHORT_LIVED, LONG)) as (child,):
            assert child.hear() == "written"
            with pytest.raises(LockTimeout), shared_store.locks(wait=0).commit("main"):
                pytest.fail("two hold it")
            child.kill()
        with shared_store.locks(wait=PATIENCE).commit("main") as lock:
            lock.verify()
