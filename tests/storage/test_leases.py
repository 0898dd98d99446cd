"""Leases on an object store: alive as long as they are renewed, lost for good when they are not."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from tests.processes import children
from tests.sampling import sampled
from tests.storage.lock_holders import GRAPH, SHORT_LIVED, hold, taken
from tests.storage.threads import PATIENCE
from tests.stores import S3Server, Store

from omnigraph.errors import LockTimeout, StorageUnavailable
from omnigraph.storage.locks import CommitLock, Locks
from omnigraph.storage.objects import ObjectStore


@pytest.mark.parametrize("branch", sampled(["main", GRAPH], 1))
def test_a_slow_holder_keeps_its_lease(s3_store: Store, branch: str) -> None:
    """It does nothing for several times as long as the lease lives, but it is there."""
    lives = 1.0
    with children((hold, s3_store, branch, lives)) as (child,):
        assert child.hear() == "held"
        with pytest.raises(LockTimeout), taken(s3_store.locks(wait=3 * lives, time_to_live=lives), branch):
            pytest.fail("two hold it")
        child.say("verify")
        assert child.hear() == "still held"


@pytest.mark.parametrize(("asleep", "awake"), [("main", "main"), ("main", GRAPH), (GRAPH, "main"), (GRAPH, GRAPH)])
def test_a_sleeping_holder_loses_its_lease_and_learns_it(s3_store: Store, asleep: str, awake: str) -> None:
    locks = s3_store.locks(wait=PATIENCE, time_to_live=SHORT_LIVED)
    with children((hold, s3_store, asleep, SHORT_LIVED)) as (sleeper,):
        assert sleeper.hear() == "held"
        sleeper.pause()
        with taken(locks, awake) as lock:
            lock.verify()
            sleeper.resume()
            sleeper.say("verify")
            lost = sleeper.hear()
            assert "lost the lock" in lost
            assert f"'{'graph' if asleep == GRAPH else 'main'}'" in lost
            sleeper.say("release")
            assert sleeper.hear() == "released"
            lock.verify()
            with pytest.raises(LockTimeout), taken(s3_store.locks(wait=0), awake):
                pytest.fail("the old holder's release freed the new holder's lock")


def test_a_holder_that_wakes_before_anybody_came_still_holds(s3_store: Store) -> None:
    with children((hold, s3_store, "main", SHORT_LIVED), (hold, s3_store, "other", SHORT_LIVED)) as (one, two):
        assert one.hear() == two.hear() == "held"
        one.pause()
        two.say("verify")
        assert two.hear() == "still held"
        one.resume()
        one.say("verify")
        assert one.hear() == "still held"


def test_nothing_piles_up(s3_store: Store) -> None:
    """One object per branch, and none for writers that are gone."""
    locks = s3_store.locks()
    for branch in ("main", "dev", "main", GRAPH):
        with taken(locks, branch):
            pass
    assert len(s3_store.objects().list("")) == 3


def test_what_is_not_a_lease_is_no_obstacle(s3_store: Store) -> None:
    """An object that was damaged or written by hand stands for somebody unknown, until its time is over."""
    objects = s3_store.objects()
    soon = 0.1  # nobody renews it
    with s3_store.locks().control():
        pass
    (key,) = objects.list("")
    for rubbish in (b"", b"rubbish", b"[]", b"null", b"[" * 200_000, b"\xff", b'{"holder": 5}'):
        objects.put(key, rubbish)
        with pytest.raises(LockTimeout, match="cannot be read"), s3_store.locks(wait=0).control():
            pytest.fail("it may be somebody's")
        with s3_store.locks(wait=PATIENCE, time_to_live=soon).control() as lock:
            lock.verify()
        objects.put(key, rubbish)
        with s3_store.locks(wait=PATIENCE, time_to_live=soon).commit("main") as lock:
            lock.verify()


def fail(_: str | None) -> NoReturn:
    raise StorageUnavailable("s3://bucket", "the connection was closed")


LOST: dict[str, Callable[[str | None], str | None]] = {"refused": lambda _: None, "failed": fail}


class LosesAReply:
    """A store that does what it is told, but the answer to one of its conditional puts is lost. The client's own
    repetition is then refused, because the object is there; or the client gives up."""

    def __init__(self, objects: ObjectStore, which: int, answer: Callable[[str | None], str | None]) -> None:
        self._objects = objects
        self._left = which
        self._answer = answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objects, name)

    def put_if_absent(self, key: str, content: bytes) -> str | None:
        return self._answered(self._objects.put_if_absent(key, content))

    def put_if_match(self, key: str, content: bytes, token: str) -> str | None:
        return self._answered(self._objects.put_if_match(key, content, token))

    def _answered(self, token: str | None) -> str | None:
        self._left -= 1
        return self._answer(token) if self._left == -1 else token


@pytest.mark.parametrize("answer", LOST)
@pytest.mark.parametrize("branch", ["main", GRAPH])
@pytest.mark.parametrize("which", range(4))
def test_a_lost_reply_makes_nobody_wait_for_itself(s3_store: Store, which: int, branch: str, answer: str) -> None:
    """Taking and releasing go on at once; nobody waits, here for no time at all, for a lease of its own."""
    objects = LosesAReply(s3_store.objects(), which, LOST[answer])
    with taken(Locks(s3_store.address, objects, wait=0), branch) as lock:
        lock.verify()
    with taken(s3_store.locks(wait=0), branch):
        pass


@pytest.mark.parametrize("answer", LOST)
def test_a_holder_whose_renewal_was_answered_by_nobody_still_holds(memory_store: Store, answer: str) -> None:
    objects = LosesAReply(memory_store.objects(), 4, LOST[answer])
    with Locks(memory_store.address, objects, time_to_live=SHORT_LIVED).commit("main") as lock:
        while objects._left > -8:
            time.sleep(0.01)
        lock.verify()
    with memory_store.locks(wait=0).control():
        pass


class TestStoresThatFail:
    @pytest.fixture
    def moody(self, s3_server: S3Server) -> Store:
        s3_server.lose_patience(math.inf)
        return s3_server.moody_store()

    @pytest.mark.parametrize("branch", ["main", GRAPH])
    def test_a_release_that_fails_does_not_undo_what_was_done(
        self, moody: Store, s3_server: S3Server, branch: str
    ) -> None:
        """The lease runs out by itself."""
        with taken(moody.locks(time_to_live=SHORT_LIVED), branch):
            s3_server.lose_patience(0)
        s3_server.lose_patience(math.inf)
        with moody.locks(wait=PATIENCE, time_to_live=SHORT_LIVED).control():
            pass

    @pytest.mark.parametrize("requests", range(4))
    def test_a_lock_that_fails_on_the_way_keeps_nobody_out(
        self, moody: Store, s3_server: S3Server, requests: int
    ) -> None:
        locks = moody.locks(time_to_live=SHORT_LIVED)
        s3_server.lose_patience(requests)
        with pytest.raises(StorageUnavailable), locks.commit("main") as lock:
            verify_refused(s3_server, lock)
        s3_server.lose_patience(math.inf)
        with moody.locks(wait=PATIENCE, time_to_live=SHORT_LIVED).control():
            pass


def verify_refused(server: S3Server, lock: CommitLock) -> None:
    """Verify a lock on a store that refuses by now, after half of the time that its lease lives."""
    server.lose_patience(0)
    time.sleep(SHORT_LIVED * 0.6)
    lock.verify()
