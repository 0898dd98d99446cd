"""A writer that is not dead but slow: on an object store it loses its lease, and may not publish afterwards."""

from __future__ import annotations

import pytest
from tests.crash.operations import PERSON, commit_to, connect
from tests.crash.view import look
from tests.manifest.support import TRUNK, move, new_graph
from tests.processes import children, hear, say
from tests.stores import Store

from omnigraph.errors import LockTimeout, OmniError
from omnigraph.manifest.publisher import CommitDraft


def publish_late(store: Store) -> None:
    """In a child: take the lock, wait to be told, and only then publish."""
    repository = connect(store)
    change, expected = move(repository.manifest.latest(None), "node:City")
    with repository.locks.commit("main") as lock:
        say("locked")
        hear()
        try:
            repository.manifest.publish(TRUNK, change, expected, CommitDraft("load", message="late"), lock)
        except OmniError as error:
            say(type(error).__name__)
        else:
            say("published")


def test_on_an_object_store_another_writer_takes_over(s3_store: Store) -> None:
    new_graph(s3_store)
    before = look(s3_store)
    with children((publish_late, s3_store)) as (sleeper,):
        assert sleeper.hear() == "locked"
        sleeper.pause()
        commit_to(connect(s3_store), "main", "in time")
        sleeper.resume()
        sleeper.say("go")
        assert sleeper.hear() == "LockLost"
        sleeper.join()
    assert look(s3_store) == before.with_commit("main", PERSON, "in time")


def test_on_a_disk_the_others_wait(local_store: Store) -> None:
    new_graph(local_store)
    before = look(local_store)
    with children((publish_late, local_store)) as (sleeper,):
        assert sleeper.hear() == "locked"
        sleeper.pause()
        with pytest.raises(LockTimeout), local_store.locks(wait=0.1).commit("main"):
            pass
        sleeper.resume()
        sleeper.say("go")
        assert sleeper.hear() == "published"
        sleeper.join()
    assert look(local_store) == before.with_commit("main", "node:City", "late")


def test_readers_never_wait(shared_store: Store) -> None:
    new_graph(shared_store)
    before = look(shared_store)
    with children((publish_late, shared_store)) as (sleeper,):
        assert sleeper.hear() == "locked"
        sleeper.pause()
        assert look(shared_store) == before
        assert look(shared_store, read_only=False) == before
