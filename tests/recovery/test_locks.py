"""Locks: a sidecar whose writer lives is left alone, and a writer that lost its lock changes nothing."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from threading import Thread

import pytest
from tests.processes import children
from tests.recovery.racers import LEASE, once, with_short_leases, write_and_wait
from tests.recovery.scenes import (
    BEGINNING,
    WRITES,
    assert_settled,
    contents,
    found_city,
    new_graph,
    sidecars,
    with_city,
)
from tests.recovery.test_windows import Interrupted
from tests.sampling import sampled
from tests.stores import Store

from omnigraph import Graph, failpoints
from omnigraph.errors import LockLost, LockTimeout
from omnigraph.storage import layout
from omnigraph.storage.layout import fnv1a64


class TestHealingBesideALiveWriter:
    """A sidecar whose writer lives is nobody else's business."""

    @pytest.mark.parametrize(
        "where", sampled(["write.after_sidecar", "write.between_tables", "write.after_tables"], 1)
    )
    def test_in_this_process(self, local_store: Store, where: str) -> None:
        graph = new_graph(local_store)
        helpers = [Thread(target=found_city, args=(graph, "main")), Thread(target=graph.refresh)]

        def others_come() -> None:
            """Others begin to write and to heal while this writer is in the middle of it. They have to wait."""
            for helper in helpers:
                helper.start()
                helper.join(0.3)
                assert helper.is_alive()

        with failpoints.armed(where, once(others_come)):
            WRITES["merge"].run(graph, "main")
        for helper in helpers:
            helper.join()
        assert contents(graph) == with_city(WRITES["merge"].effect(BEGINNING))
        assert graph.recoveries() == []
        assert [commit.actor_id for commit in graph.commits()] == ["ada", "victim", "ada", "ada"]
        assert_settled(graph)

    def test_in_another_process(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        with children((write_and_wait, local_store, "write.between_tables", "merge", "main")) as (writer,):
            assert writer.hear() == "waiting"
            assert len(sidecars(graph._repository)) == 1
            impatient = replace(graph._repository, locks=local_store.locks(wait=0.2))
            with pytest.raises(LockTimeout):
                Graph(impatient).refresh()
            assert contents(graph) == BEGINNING
            found_city(graph, "dev")
            writer.say("go on")
            assert writer.hear() == "done"
        found_city(graph, "main")
        assert contents(graph) == with_city(WRITES["merge"].effect(BEGINNING))
        assert graph.recoveries() == []
        assert_settled(graph)


def take_lease_away(store: Store) -> None:
    """Another process takes the branch's lease, as after a stall longer than its time to live, and gives it back.

    Nobody does that sooner, and the holder relies on it; so it takes some time here too.
    """
    key = f"{layout.LOCKS}/branch-{fnv1a64('main')}.json"
    store.objects().put(key, json.dumps({"holder": None, "fence": 1_000}).encode())
    time.sleep(LEASE * 0.6)


class TestLostLocks:
    @pytest.mark.parametrize(
        "where", sampled(["write.after_sidecar", "write.after_lock", "write.between_tables"], 1)
    )
    def test_a_writer_that_lost_its_lock_publishes_nothing(self, s3_store: Store, where: str) -> None:
        graph = with_short_leases(new_graph(s3_store), s3_store)
        with failpoints.armed(where, lambda: take_lease_away(s3_store)), pytest.raises(LockLost):
            WRITES["merge"].run(graph, "main")
        assert contents(graph) == BEGINNING
        found_city(graph, "main")
        assert contents(graph) == with_city(BEGINNING)
        assert_settled(graph)

    def test_a_writer_that_lost_it_before_publishing_takes_it_again_and_finishes(self, s3_store: Store) -> None:
        graph = with_short_leases(new_graph(s3_store), s3_store)
        with failpoints.armed("write.after_tables", lambda: take_lease_away(s3_store)):
            WRITES["merge"].run(graph, "main")
        found_city(graph, "main")
        assert contents(graph) == with_city(WRITES["merge"].effect(BEGINNING))
        assert [recovery.recovery_kind for recovery in graph.recoveries()] == ["RolledForward"]
        assert_settled(graph)

    @pytest.mark.parametrize("where", sampled(["write.after_sidecar", "write.between_tables"], 1))
    def test_a_process_that_is_stopped_loses_its_lock(self, s3_store: Store, where: str) -> None:
        """The next writer undoes what it left, and when it goes on it finds that out before it does more."""
        graph = with_short_leases(new_graph(s3_store), s3_store)
        with children((write_and_wait, s3_store, where, "merge", "main")) as (writer,):
            assert writer.hear() == "waiting"
            writer.pause()
            found_city(graph, "main")
            writer.resume()
            writer.say("go on")
            assert writer.hear() == "LockLost"
        assert contents(graph) == with_city(BEGINNING)
        assert [recovery.recovery_kind for recovery in graph.recoveries()] == ["RolledBack"]
        found_city(graph, "main", "Oslo")
        assert_settled(graph)

    @pytest.mark.parametrize("dies", sampled([True, False], 1))
    def test_a_sidecar_that_comes_too_late_changes_nothing(self, s3_store: Store, dies: bool) -> None:
        """A writer stalls on its sidecar; another takes the lock, commits or dies; then the sidecar arrives."""
        graph = with_short_leases(new_graph(s3_store), s3_store)
        other = with_short_leases(graph, s3_store)

        def be_overtaken() -> None:
            take_lease_away(s3_store)
            if not dies:
                WRITES["delete"].run(other, "main")
                return
            with failpoints.armed("write.after_tables", _interrupt), pytest.raises(Interrupted):
                WRITES["delete"].run(other, "main")

        with failpoints.armed("recovery.sidecar_write", once(be_overtaken)), pytest.raises(LockLost):
            WRITES["merge"].run(graph, "main")
        found_city(graph, "main")
        assert contents(graph) == with_city(WRITES["delete"].effect(BEGINNING))
        kinds = [recovery.recovery_kind for recovery in graph.recoveries()]
        assert sorted(kinds) == (["RolledBack", "RolledForward"] if dies else ["RolledBack"])
        assert_settled(graph)


def _interrupt() -> None:
    raise Interrupted
