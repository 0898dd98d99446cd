"""Leases on an object store: alive as long as they are renewed, lost for good when they are not."""

from __future__ import annotations

import math

import pytest
from tests.processes import children
from tests.storage.lock_holders import GRAPH, SHORT_LIVED, hold, taken
from tests.storage.threads import PATIENCE
from tests.stores import S3Server, Store

from omnigraph.errors import LockTimeout, StorageUnavailable
from omnigraph.storage.locks import CommitLock


@pytest.mark.parametrize("branch", ["main", GRAPH])
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
            assert f"'{'graph' if GRAPH in (asleep, awake) else 'main'}'" in lost
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
    """An object that was damaged or written by hand stands for nobody."""
    objects = s3_store.objects()
    with s3_store.locks().control():
        pass
    (key,) = objects.list("")
    for rubbish in (b"", b"rubbish", b"[]", b"null"):
        objects.put(key, rubbish)
        with s3_store.locks(wait=PATIENCE).control() as lock:
            lock.verify()
        with s3_store.locks(wait=PATIENCE).commit("main") as lock:
            lock.verify()


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

    @pytest.mark.parametrize("requests", range(7))
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
    """Verify a lock on a store that refuses by now."""
    server.lose_patience(0)
    lock.verify()
