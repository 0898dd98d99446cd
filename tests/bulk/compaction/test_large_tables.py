"""`optimize` by tasks: the same files, rows and indexes as in the calling thread."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.bulk.merge.test_large_merges import assert_nothing_left, row_ids
from tests.history.test_diff import content
from tests.maintenance.looks import indexed, table
from tests.maintenance.test_optimize import KNOWS, PERSON, fragments, new_graph
from tests.processes import see_killed
from tests.sampling import sampled
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.bulk.runner import JobEvent
from omnigraph.errors import JobCancelled, NotOnSpark, RequestError
from omnigraph.read.limits import Cancellation
from omnigraph.settings import BulkSettings, Settings
from omnigraph.storage import layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = Settings(bulk=BulkSettings(small_rewrite=0))
"""Every group of files is written again by a task."""


def opened(store: Store) -> Graph:
    return omnigraph.open(store.uri, storage_options=store.options, settings=TASKS)


@pytest.mark.parametrize("branch", ["main", "review/1"])
def test_by_tasks_as_in_the_calling_thread(local_store: Store, branch: str) -> None:
    graph = new_graph(local_store)
    if branch != "main":
        graph.create_branch(branch)
        graph.mutate('query q() { delete Person where name = "q3" }', branch=branch)
    rows, ids = content(graph, graph.snapshot(branch)), row_ids(graph, branch)
    events: list[JobEvent] = []
    report = opened(local_store).optimize(branch=branch, engine="local", listener=events.append)
    assert {event.step for event in events} == {"writing files again"}
    assert events[-1].rows > 0
    assert report.commit is not None
    assert content(graph, graph.snapshot(branch)) == rows
    assert row_ids(graph, branch) == ids
    assert fragments(graph, PERSON, branch) == 1
    assert set(indexed(graph, PERSON, branch).values()) == {len(rows[PERSON])}
    assert_nothing_left(graph)


def test_a_small_table_takes_no_job(local_store: Store) -> None:
    events: list[JobEvent] = []
    assert new_graph(local_store).optimize(engine="local", listener=events.append).commit is not None
    assert events == []


def test_one_that_is_cancelled_leaves_nothing(local_store: Store) -> None:
    graph = new_graph(local_store)
    files, before = data_files(graph), graph.snapshot()
    cancellation = Cancellation()

    def cancel(event: JobEvent) -> None:
        cancellation.cancel()

    with pytest.raises(JobCancelled):
        opened(local_store).optimize(engine="local", listener=cancel, cancellation=cancellation)
    assert (graph.snapshot(), data_files(graph)) == (before, files)
    assert_nothing_left(graph)


def test_engines_that_are_none_or_cannot_reach_the_graph(memory_store: Store) -> None:
    graph = new_graph(memory_store)
    with pytest.raises(RequestError, match="'flink' is no engine"):
        graph.optimize(engine="flink")  # type: ignore[arg-type]
    with pytest.raises(NotOnSpark, match="a graph in memory"):
        graph.optimize(engine="spark")


def optimize_by_tasks(store: Store) -> None:
    opened(store).optimize(engine="local")


KILLED_AT = ("job.after_record", "optimize.after_tasks", "write.after_stage", "write.after_sidecar")


@pytest.mark.parametrize("failpoint", sampled(KILLED_AT, 1))
def test_killed_it_leaves_files_that_are_reclaimed(local_store: Store, failpoint: str) -> None:
    check_killed(local_store, failpoint)


@pytest.mark.long
@pytest.mark.parametrize("failpoint", KILLED_AT)
def test_killed_on_an_object_store(s3_store: Store, failpoint: str) -> None:
    check_killed(s3_store, failpoint)


def check_killed(store: Store, failpoint: str) -> None:
    graph = new_graph(store)
    rows, files = content(graph, graph.snapshot()), store.objects().list(layout.NODES)
    see_killed(failpoint, optimize_by_tasks, store)
    again = opened(store)
    assert content(again, again.snapshot()) == rows
    again.refresh()
    (left,) = again.clean_jobs()
    assert left.record.kind == "optimize"
    assert bool(left.files) == (failpoint != "job.after_record")
    data = [key for key in store.objects().list(layout.NODES) if "/data/" in key]
    assert data == [key for key in files if "/data/" in key]
    again.optimize(engine="local")
    assert fragments(again, PERSON) == fragments(again, KNOWS) == 1
    assert content(again, again.snapshot()) == rows


def data_files(graph: Graph) -> set[Path]:
    return set(Path(graph.address, "nodes").rglob("data/*"))


@pytest.mark.long
def test_on_spark(local_store: Store, spark: SparkSession) -> None:
    """Files and indexes by tasks of Spark, each step one commit."""
    graph = new_graph(local_store)
    rows, ids = content(graph, graph.snapshot()), row_ids(graph, "main")
    events: list[JobEvent] = []
    report = graph.optimize(spark=spark, listener=events.append)
    assert {event.step for event in events} == {"writing files again", "building indexes"}
    assert len(report.commits) == 2
    assert (content(graph, graph.snapshot()), row_ids(graph, "main")) == (rows, ids)
    assert len(table(graph, PERSON).get_fragments()) == 1
    assert set(indexed(graph, PERSON).values()) == {len(rows[PERSON])}
    assert_nothing_left(graph)
