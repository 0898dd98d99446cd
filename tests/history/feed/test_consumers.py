"""Consumers and writers in processes of their own: no commit is missed, whatever is killed meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.history.feed.replica import SCHEMA, Replica, exported, person
from tests.processes import children, hear, ready, say, see_killed, start_together
from tests.sampling import quick_and_long
from tests.stores import Store

import omnigraph


def first_parents(graph: omnigraph.Graph) -> list[str]:
    """The commits of main, the oldest first; in these tests nothing is merged."""
    return [commit.graph_commit_id for commit in graph.commits(limit=10**6)][::-1]


def write(store: Store, name: str, count: int) -> None:
    """A writer: so many commits, each of which changes an entity of its own and one that all share."""
    graph = omnigraph.open(store.uri, storage_options=store.options)
    ready()
    for number in range(count):
        graph.load([person(f"{name}{number % 3}", age=number), person("shared", city=name)], mode="merge")
    say("done")


def follow(store: Store, folder: str) -> None:
    """A consumer: reads whatever is there, again and again, until its parent says that the writers are done."""
    replica = Replica(Path(folder))
    graph = omnigraph.open(store.uri, read_only=True, storage_options=store.options)
    ready()
    say("following")
    while hear() != "last":
        replica.follow(graph, limit=3, limit_commits=4)
        say(len(replica.applied))
    replica.follow(graph, limit=3)
    say("done")


@pytest.mark.parametrize("commits", quick_and_long(4, 40))
def test_a_consumer_beside_several_writers(shared_store: Store, tmp_path: Path, commits: int) -> None:
    graph = omnigraph.init(shared_store.uri, SCHEMA, storage_options=shared_store.options)
    graph.load([person("shared")], mode="append")
    writers = [(write, shared_store, name, commits) for name in ("a", "b", "c")]
    with children((follow, shared_store, str(tmp_path)), *writers) as (consumer, *running):
        start_together([consumer, *running])
        assert consumer.hear() == "following"
        for writer in running:
            consumer.say("go on")
            consumer.hear()
            assert writer.hear() == "done"
        consumer.say("last")
        assert consumer.hear() == "done"
    replica = Replica(tmp_path)
    assert replica.applied == first_parents(graph)
    assert len(replica.applied) == 3 * commits + 2
    assert replica.entities == exported(graph)


def read_some(store: Store, folder: str) -> None:
    """A consumer that is killed after it has dealt with a page, and before it has stored the cursor behind it."""
    replica = Replica(Path(folder))
    graph = omnigraph.open(store.uri, read_only=True, storage_options=store.options)
    begin: dict[str, Any] = {"start": "beginning"} if replica.cursor is None else {"cursor": replica.cursor}
    page = graph.changes(limit_commits=2, **begin)
    for block in page.blocks:
        replica.take(block.as_json(), [])
    replica.save()
    say("applied")
    hear()
    replica.save(page.cursor)
    say("stored")


def test_a_consumer_that_is_killed_goes_on_in_another_process(shared_store: Store, tmp_path: Path) -> None:
    """What it had dealt with comes once more, and is recognised by the id of its commit."""
    graph = omnigraph.init(shared_store.uri, SCHEMA, storage_options=shared_store.options)
    for number in range(6):
        graph.load([person(f"p{number % 2}", age=number)], mode="merge")
    for is_killed in (True, False, True, True, False):
        with children((read_some, shared_store, str(tmp_path))) as (consumer,):
            assert consumer.hear() == "applied"
            if is_killed:
                consumer.kill()
            else:
                consumer.say("go on")
                assert consumer.hear() == "stored"
    replica = Replica(tmp_path)
    assert replica.applied == first_parents(graph)[:4]
    replica.follow(omnigraph.open(shared_store.uri, storage_options=shared_store.options))
    assert replica.applied == first_parents(graph)
    assert replica.entities == exported(graph)


def write_baseline(store: Store, target: str) -> None:
    say(omnigraph.open(store.uri).baseline(target).resume_cursor)


def test_a_baseline_that_is_killed_gives_neither_file_nor_cursor(local_store: Store, tmp_path: Path) -> None:
    graph = omnigraph.init(local_store.uri, SCHEMA)
    graph.load([person("Ada")], mode="append")
    target = tmp_path / "out" / "baseline.jsonl"
    target.parent.mkdir()
    see_killed("baseline.before_rename", write_baseline, local_store, str(target))
    assert not target.exists()
    with children((write_baseline, local_store, str(target))) as (child,):
        assert graph.changes(cursor=child.hear()).caught_up
    assert target.read_text() == '{"type":"Person","data":{"id":"Ada","name":"Ada"}}\n'
