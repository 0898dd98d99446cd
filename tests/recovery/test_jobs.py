"""Jobs that stage files: known by a record, alive by a lock, and what dead ones left can be told and removed."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.processes import children, hear, say, see_killed
from tests.recovery.racers import with_short_leases
from tests.recovery.scenes import PERSON, contents, found_city, new_graph, with_city
from tests.stores import Store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.bulk.jobs import destination, job_record
from omnigraph.errors import JobFailed, LockLost, ObjectDamaged, StorageUnavailable
from omnigraph.formats.rows import rows_of
from omnigraph.recovery.jobs import JobRecord, RunningJob, announce, running, staged_by
from omnigraph.storage import layout
from omnigraph.storage.files.datafiles import Destination, StagedFile, column_ids, write_file
from omnigraph.storage.stage.changes import stage_appended_files
from omnigraph.storage.tables import TableRef
from omnigraph.storage.versions import TableVersions
from omnigraph.write.base import Base, capture
from omnigraph.write.protocol import Prepared, Stage, StagedTable, WriteRequest, commit_write

JOB = "01JOB"


def base_of(graph: Graph) -> Base:
    repository = graph._repository
    return capture(repository, repository.branches.find("main"))


def record(graph: Graph, job: str = JOB) -> JobRecord:
    """As older releases wrote it, without the versions of the tables."""
    locations = tuple(pin.location for pin in base_of(graph).snapshot.tables.values())
    return JobRecord(job, "load", "main", None, locations, "ada", dt.datetime.now(dt.UTC))


def people(graph: Graph, *names: str) -> pa.Table:
    columns: dict[str, Sequence[object]] = {"id": names, "name": names, "age": [1] * len(names)}
    return rows_of(graph.catalog.nodes["Person"], columns, len(names))


def place(graph: Graph) -> Destination:
    base = base_of(graph)
    return destination(base, base.branch, PERSON)


def stage(graph: Graph, *names: str, job: str = JOB) -> StagedFile:
    """Write people as one data file that nothing refers to."""
    name, size = write_file(place(graph), job, people(graph, *names))
    return StagedFile(PERSON, name, len(names), size)


def commit(graph: Graph, job: RunningJob, file: StagedFile) -> None:
    """Commit a staged file as loads do."""

    def stage_table(ref: TableRef, operation: str) -> StagedTable:
        handle = graph._repository.tables.open(ref)
        fragment = file.fragment(column_ids(handle.lance_schema), place(graph).version)
        staged = stage_appended_files(handle, ref.location, ref.branch, [fragment], operation)
        return StagedTable(staged, base_of(graph).pin(PERSON).row_count + file.rows, frozenset({file.name}))

    stages: dict[str, Stage] = {PERSON: stage_table}
    request = WriteRequest("load", graph._repository.branches.find("main"))
    written = commit_write(graph._repository, request, lambda _: Prepared({}, None, True, stages=stages), job.lock)
    job.committed = written.files


def names_of(graph: Graph) -> list[str]:
    return [name for name, _ in contents(graph)[PERSON]]


def files(graph: Graph) -> set[str]:
    """All data files of people, used or not."""
    folder = f"{base_of(graph).pin(PERSON).location}/data"
    return set(graph._repository.objects.list(folder))


def kept(graph: Graph) -> list[str]:
    """Everything that jobs keep for themselves."""
    return graph._repository.objects.list(layout.JOBS)


@pytest.fixture
def graph(shared_store: Store) -> Graph:
    return with_short_leases(new_graph(shared_store), shared_store)


@pytest.fixture
def read_only(graph: Graph, shared_store: Store) -> Graph:
    other = omnigraph.open(shared_store.uri, read_only=True, storage_options=shared_store.options)
    return with_short_leases(other, shared_store)


class TestAJobThatEnds:
    def test_leaves_nothing_but_what_its_commit_refers_to(self, graph: Graph) -> None:
        before = files(graph)
        with running(graph._repository, record(graph)) as job:
            used, replaced = stage(graph, "Cy"), stage(graph, "Di")
            graph._repository.objects.put(f"{layout.JOBS}/{JOB}/matches", b"pairs")
            commit(graph, job, used)
        assert [key.rpartition("/")[2] for key in job.removed] == [replaced.name]
        assert {key.rpartition("/")[2] for key in files(graph) - before} == {used.name}
        assert names_of(graph) == ["Ada", "Bo", "Cy"]
        assert kept(graph) == []
        assert not any(JOB in key for key in graph._repository.objects.list(layout.LOCKS))

    def test_also_leaves_nothing_when_it_fails(self, graph: Graph) -> None:
        before = files(graph)
        with pytest.raises(StorageUnavailable):
            fail_after(graph, lambda: stage(graph, "Cy"))
        assert files(graph) == before
        assert kept(graph) == []

    def test_that_cannot_clean_up_says_so_and_stays_on_the_list(
        self, graph: Graph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def break_the_store() -> None:
            stage(graph, "Cy")
            monkeypatch.setattr(graph._repository.objects, "delete", fail)

        said = f"what job {JOB} staged could not be removed .*omnigraph jobs"
        with pytest.warns(RuntimeWarning, match=said), pytest.raises(StorageUnavailable):
            fail_after(graph, break_the_store)
        monkeypatch.undo()
        assert [job.record.job for job in graph.jobs()] == [JOB]
        assert len(graph.clean_jobs()[0].files) == 1
        assert graph.jobs() == []

    def test_takes_no_file_of_a_task_that_outlives_it(self, graph: Graph) -> None:
        """The executor of such a task has lost the driver, and does not know yet that nobody waits for it."""
        with running(graph._repository, record(graph)):
            pass
        before = files(graph)
        with pytest.raises(JobFailed, match="the job was over before this task was"):
            stage(graph, "Zoe")
        assert files(graph) == before
        assert kept(graph) == []

    def test_also_removes_what_comes_while_it_cleans_up(
        self, graph: Graph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A task that looks for the job just before its name goes leaves a file just after the first look."""
        before, objects = files(graph), graph._repository.objects
        delete = objects.delete

        def delete_late(key: str) -> None:
            if key == layout.job_record(JOB):
                stage(graph, "Zoe")
            delete(key)

        with running(graph._repository, record(graph)) as job:
            monkeypatch.setattr(objects, "delete", delete_late)
        assert len(job.removed) == 1
        assert files(graph) == before


def fail_after(graph: Graph, action: Callable[[], object]) -> None:
    """Be a job that does something and then fails."""
    with running(graph._repository, record(graph)):
        action()
        fail(JOB)


def fail(key: str) -> None:
    raise StorageUnavailable(key, "not today")


class TestAJobThatRuns:
    def test_is_listed_as_such_and_let_alone(self, graph: Graph) -> None:
        with running(graph._repository, record(graph)):
            file = stage(graph, "Cy")
            (job,) = graph.jobs()
            assert job.is_running
            assert job.record == replace(record(graph), started_at=job.record.started_at)
            assert [key.rpartition("/")[2] for key in job.files] == [file.name]
            assert graph.clean_jobs() == []
            assert any(key.endswith(file.name) for key in files(graph))
        assert graph.jobs() == []

    def test_in_another_process_as_well(self, graph: Graph, shared_store: Store) -> None:
        with children((be_a_job, shared_store, "01OTHER")) as (child,):
            name = child.hear()
            assert [(job.record.job, job.is_running) for job in graph.jobs()] == [("01OTHER", True)]
            assert graph.clean_jobs() == []
            child.kill()
            assert [(job.record.job, job.is_running) for job in graph.jobs()] == [("01OTHER", False)]
            (gone,) = graph.clean_jobs()
        assert [key.rpartition("/")[2] for key in gone.files] == [name]
        assert not any(key.endswith(name) for key in files(graph))

    def test_can_be_listed_by_readers_without_a_trace(self, graph: Graph, read_only: Graph) -> None:
        """Looking takes no lock: neither from a job that runs, nor from one that only stalls."""
        everything = graph._repository.objects
        announce(everything, record(graph, "01DEAD"))
        with running(graph._repository, record(graph)) as job:
            before = [key for key in everything.list("") if "graph" not in key]
            assert [job.is_running for job in read_only.jobs()] == [False, True]
            assert [key for key in everything.list("") if "graph" not in key] == before
            job.lock.verify()


class TestAJobThatDied:
    @pytest.fixture(autouse=True)
    def other_jobs(self, graph: Graph) -> Iterator[tuple[StagedFile, StagedFile]]:
        """A load that is done, and one that runs while these tests look and clean up."""
        with running(graph._repository, record(graph, "01DONE")) as job:
            done = stage(graph, "Cy", job="01DONE")
            commit(graph, job, done)
        with running(graph._repository, record(graph, "01RUNNING")):
            yield done, stage(graph, "Di", job="01RUNNING")

    @pytest.mark.parametrize("failpoint", ["job.after_record", "after file"])
    def test_before_its_commit_leaves_files_that_can_be_removed(
        self, graph: Graph, shared_store: Store, failpoint: str
    ) -> None:
        before = files(graph)
        kill_job(shared_store, failpoint)
        found = {job.record.job: job for job in graph.jobs()}
        assert {name: job.is_running for name, job in found.items()} == {JOB: False, "01RUNNING": True}
        assert len(found[JOB].files) == (0 if failpoint == "job.after_record" else 1)
        found_city(graph, "main")
        assert [job.files for job in graph.clean_jobs()] == [found[JOB].files]
        assert files(graph) == before
        assert [job.record.job for job in graph.jobs()] == ["01RUNNING"]
        assert names_of(graph) == ["Ada", "Bo", "Cy"]

    @pytest.mark.parametrize(
        ("failpoint", "is_there"),
        [
            ("write.after_stage", False),
            ("write.after_sidecar", False),
            ("write.after_tables", True),
            ("write.after_sidecar_delete", True),
        ],
    )
    def test_in_its_commit_loses_only_files_that_nothing_refers_to(
        self, graph: Graph, shared_store: Store, failpoint: str, is_there: bool
    ) -> None:
        """Whoever cleans up before anybody has healed must not take away what healing will need."""
        before = files(graph)
        kill_job(shared_store, failpoint)
        (gone,) = graph.clean_jobs()
        assert len(gone.files) == (0 if is_there else 1)
        graph.refresh()
        assert names_of(graph) == ["Ada", "Bo", "Cy", *(["Eve"] if is_there else [])]
        assert len(files(graph) - before) == is_there
        after = contents(graph)
        found_city(graph, "main")
        assert contents(graph) == with_city(after)

    def test_and_had_an_unreadable_record_is_told(self, graph: Graph) -> None:
        graph._repository.objects.put(layout.job_record("01BAD"), b"{")
        with pytest.raises(ObjectDamaged, match="the record of a job cannot be read"):
            graph.jobs()


def test_a_job_that_was_taken_for_dead_commits_nothing(s3_store: Store) -> None:
    """It stalls for longer than its lease, somebody removes its files, and then it goes on."""
    graph = with_short_leases(new_graph(s3_store), s3_store)
    before = files(graph)
    with children((stall_before_commit, s3_store)) as (sleeper,):
        assert sleeper.hear() == "staged"
        sleeper.pause()
        (gone,) = graph.clean_jobs()
        assert len(gone.files) == 1
        sleeper.resume()
        sleeper.say("go")
        assert sleeper.hear() == LockLost.__name__
        sleeper.join()
    assert files(graph) == before
    assert names_of(graph) == ["Ada", "Bo"]
    assert graph.jobs() == []


def test_files_with_blobs_are_noted_because_lance_names_them(shared_store: Store) -> None:
    graph = omnigraph.init(
        shared_store.uri, "node Photo { name: String @key  raw: Blob? }", storage_options=shared_store.options
    )
    base, entity = base_of(graph), graph.catalog.nodes["Photo"]
    target = destination(base, base.branch, "node:Photo")
    rows = rows_of(entity, {"id": ["a"], "name": ["a"], "raw": [os.urandom(200_000)]}, 1)

    def stage_photo() -> None:
        name, _ = write_file(target, JOB, rows)
        assert [key.rpartition("/")[2] for key in staged_by(graph._repository, record(graph))] == [name]
        assert len(graph._repository.objects.list(target.key(""))) == 2, "the rows, and the blob"

    with pytest.raises(StorageUnavailable):
        fail_after(graph, stage_photo)
    assert graph._repository.objects.list(target.key("")) == []
    with pytest.raises(JobFailed):
        write_file(target, JOB, rows)
    assert graph._repository.objects.list(target.key("")) == []
    assert kept(graph) == []


def test_what_last_tasks_keep_beside_a_record_that_is_gone_is_removed(graph: Graph) -> None:
    with running(graph._repository, record(graph, "01RUNNING")):
        graph._repository.objects.put(f"{layout.JOBS}/01RUNNING/embedded/1", b"vectors")
        graph._repository.objects.put(f"{layout.JOBS}/{JOB}/embedded/1", b"vectors")
        assert graph.clean_jobs() == []
        assert set(kept(graph)) == {layout.job_record("01RUNNING"), f"{layout.JOBS}/01RUNNING/embedded/1"}


def connected(store: Store) -> Graph:
    return with_short_leases(omnigraph.open(store.uri, storage_options=store.options), store)


def be_a_job(store: Store, name: str) -> None:
    """In a child: stage a file, and wait."""
    graph = connected(store)
    with running(graph._repository, record(graph, name)):
        say(stage(graph, "Zoe", job=name).name)
        hear()


def stall_before_commit(store: Store) -> None:
    """In a child: stage a file, wait to be told, and only then commit."""
    graph = connected(store)
    try:
        with running(graph._repository, record(graph)) as job:
            file = stage(graph, "Zoe")
            say("staged")
            hear()
            commit(graph, job, file)
    except LockLost as error:
        say(type(error).__name__)
    else:
        say("done")


def kill_job(store: Store, failpoint: str) -> None:
    """Run a job that commits a file in a process of its own, and see it die at a failpoint."""
    if failpoint == "after file":
        with children((die_after_file, store)) as (child,):
            child.join_killed()
    else:
        see_killed(failpoint, commit_a_file, store)


def die_after_file(store: Store) -> None:
    graph = connected(store)
    with running(graph._repository, record(graph)):
        stage(graph, "Eve")
        failpoints.die()


def commit_a_file(store: Store) -> None:
    graph = connected(store)
    with running(graph._repository, record(graph)) as job:
        commit(graph, job, stage(graph, "Eve"))


def test_only_versions_after_the_beginning_of_a_job_are_read(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a job staged cannot be in versions that were there before it."""
    for age in range(5):
        graph.mutate(f'query m() {{ insert Person {{ name: "p{age}", age: {age} }} }}')
    base = base_of(graph)
    begun = job_record(JOB, "load", base.branch, base.snapshot.tables.values(), None)
    opened: list[int | None] = []
    dataset = TableVersions.dataset

    def noted(self: TableVersions, location: str, *given: Any) -> Any:
        opened.append(given[1] if len(given) > 1 else None)
        return dataset(self, location, *given)

    with running(graph._repository, begun) as job:
        committed = stage(graph, "ada")
        commit(graph, job, committed)
        job.committed = None
        stage(graph, "bo")
        monkeypatch.setattr(TableVersions, "dataset", noted)
    assert [version for version in opened if version is not None] == [base.pin(PERSON).table_version + 1] * 2
    assert job.removed != ()
    assert committed.name not in "".join(job.removed)
