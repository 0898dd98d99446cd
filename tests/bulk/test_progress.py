"""How far a job is: what running tasks note, what a listener hears, and that hearing it never decides anything."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.bulk.loading import new_graph, small_slices

from omnigraph.bulk.meters import Meters, Partial, Place, note
from omnigraph.bulk.runner import JobEvent, LocalRunner, Reporter, TaskResult
from omnigraph.errors import JobCancelled
from omnigraph.read.limits import Cancellation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_what_running_tasks_have_done_is_added_up_and_left_out_once_they_are_done() -> None:
    with closing(Meters(3)) as meters:
        note(rows=1)  # no task
        with meters.place(0).noted(), meters.place(2).noted():
            note(of=100)
            note(rows=7, size=25)
            note(rows=1)
            assert meters.partial() == Partial(8, 25, 0.25)
            note(size=1000)
            assert meters.partial().tasks == 1.0
        assert meters.partial() == Partial()
        with meters.place(2).noted():
            assert meters.partial() == Partial(), "a task that is tried again begins at nothing"


def test_a_task_on_another_machine_runs_unnoted(tmp_path: Path) -> None:
    with Place(str(tmp_path / "no such file"), 0).noted():
        note(rows=1, of=7)


def test_the_bar_moves_within_a_task() -> None:
    heard: list[JobEvent] = []
    moved = threading.Event()

    def listen(event: JobEvent) -> None:
        heard.append(event)
        moved.set()

    def work(task: int) -> TaskResult[int]:
        note(of=10)
        for _ in range(2):
            moved.clear()
            note(rows=2, size=3)
            assert moved.wait(10)
        return TaskResult(task, 4, 10)

    assert LocalRunner(listen).run("reading", work, [5]) == [5]
    assert [(e.done, e.rows, e.bytes, e.share) for e in heard] == [
        (0, 2, 3, 0.3),
        (0, 4, 6, 0.6),
        (1, 4, 10, 1.0),
    ]


def test_progress_never_goes_back_and_says_nothing_twice() -> None:
    heard: list[JobEvent] = []
    tell = Reporter(heard.append).tell
    event = JobEvent("j", "s", 1, 4, 10, 100, 1.0, 0.5)
    tell(event)
    tell(replace(event, seconds=2.0))
    tell(replace(event, done=2, rows=4, bytes=0, share=0.25))
    tell(replace(event, step="t", done=0, rows=0, bytes=0, share=0.0))
    assert [(e.step, e.done, e.rows, e.bytes, e.share) for e in heard] == [
        ("s", 1, 10, 100, 0.5),
        ("s", 2, 10, 100, 0.5),
        ("t", 0, 0, 0, 0.0),
    ]


def test_a_listener_that_fails_is_left_alone_and_the_job_goes_on() -> None:
    calls: list[JobEvent] = []

    def fail(event: JobEvent) -> None:
        calls.append(event)
        raise RuntimeError("no terminal")

    with pytest.warns(UserWarning, match="the listener failed with RuntimeError"):
        assert LocalRunner(fail).run("step", lambda task: TaskResult(task), [1, 2, 3]) == [1, 2, 3]
    assert len(calls) == 1


def test_a_task_that_is_cancelled_ends_where_it_notes_its_progress() -> None:
    cancellation = Cancellation()

    def work(task: int) -> TaskResult[int]:
        while True:
            note(rows=1)
            cancellation.cancel()

    with pytest.raises(JobCancelled):
        LocalRunner(cancellation=cancellation).run("step", work, [1])


@pytest.mark.long
def test_the_bar_moves_within_a_task_of_spark(tmp_path: Path, spark: SparkSession) -> None:
    graph = new_graph(tmp_path / "g", "node N { k: String @key }", settings=small_slices(1 << 30))
    path = tmp_path / "n.jsonl"
    path.write_text("".join(f'{{"type":"N","data":{{"k":"{number:09}"}}}}\n' for number in range(2_000_000)))
    heard: list[JobEvent] = []
    graph.load(path, mode="append", engine="spark", spark=spark, listener=heard.append)
    reading = [event for event in heard if event.step == "reading and staging"]
    assert len({event.tasks for event in reading}) == 1
    assert any(event.done == 0 and event.rows and 0 < (event.share or 0) < 1 for event in reading)
    assert reading[-1].share == 1.0
