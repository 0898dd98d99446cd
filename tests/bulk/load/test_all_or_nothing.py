"""All or nothing: whatever is killed, fails, fills up or is lost, the graph shows the old state or the new one.

One cluster of real processes serves all tests: a master, two workers and one driver after the other. Nothing of
the workers helps them to find the package, and no driver runs where its modules or its input are.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import obstore
import pytest
from tests.bulk.everything import content
from tests.bulk.faults import (
    ADD,
    PARTS,
    Driver,
    be_killed,
    data_files,
    driver_environment,
    kept_by_jobs,
    load_here,
    loaded_here,
    new_graph,
    reader,
    write_input,
)
from tests.processes import PATIENCE, children
from tests.recovery.racers import LEASE, with_short_leases
from tests.spark.cluster import Cluster, standalone
from tests.stores import S3Server, Store

import omnigraph
from omnigraph.embed.mock import MockClient
from omnigraph.embed.variables import MOCK
from omnigraph.recovery.jobs import JobRecord, running
from omnigraph.storage.address import parse_address
from omnigraph.storage.control.remote import s3_store

SOURCE = Path(omnigraph.__file__).parents[1]
ROWS = 30 * PARTS


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def cluster(place: Path) -> Iterator[Cluster]:
    """A cluster whose Pythons have everything but the package, though this machine's Python has it."""
    hiding = place / "hiding"
    hiding.mkdir()
    (hiding / "sitecustomize.py").write_text(f"import sys\nsys.path.remove({str(SOURCE)!r})\n")
    with standalone(place / "standalone", environment={"PYTHONPATH": str(hiding)}) as started:
        yield started


class Drivers:
    """The driver that lives, and if none does a new one."""

    def __init__(self, cluster: Cluster, place: Path) -> None:
        self.cluster = cluster
        self.place = place
        self.started: list[Driver] = []

    @property
    def one(self) -> Driver:
        if not self.started or self.started[-1].process.poll() is not None:
            self.started.append(Driver(self.place / f"driver-{len(self.started)}", self.cluster.master))
        return self.started[-1]


@pytest.fixture(scope="module")
def drivers(cluster: Cluster, place: Path) -> Iterator[Drivers]:
    drivers = Drivers(cluster, place)
    yield drivers
    for driver in drivers.started:
        driver.kill()


@pytest.fixture
def driver(drivers: Drivers) -> Driver:
    return drivers.one


def until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def asked(marks: Path) -> list[dict[str, Any]]:
    """The tasks that have come to their embeddings, as these saw themselves."""
    return [json.loads(mark.read_text()) for mark in marks.glob("asked-*")]


class Before:
    """What a graph was like, to see that it still is."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.contents = content(new_graph(store))
        self.files = data_files(store)

    def check(self) -> None:
        """Nothing was loaded, and nothing is left of the attempt."""
        assert content(reader(self.store)) == self.contents
        assert data_files(self.store) == self.files
        assert kept_by_jobs(self.store) == []


def test_whatever_tasks_need_travels(driver: Driver, local_store: Store, tmp_path: Path) -> None:
    """The package, the client's class, which is known only to the driver's script, and the meaning of a path."""
    before = Before(local_store)
    data = write_input(driver.folder / "input", {0: "wait", 1: "wait"})
    marks = driver.start(local_store, "input")
    until(lambda: len(asked(marks)) == 2)
    (marks / "go").touch()
    assert driver.outcome() == {"rows": ROWS}
    assert content(reader(local_store)) == loaded_here(tmp_path / "calm", data) != before.contents
    assert kept_by_jobs(local_store) == []
    seen = asked(marks)
    assert all("/omnigraph-" in task["omnigraph"] and ".zip/" in task["omnigraph"] for task in seen)
    assert len({task["cwd"] for task in seen}) == 2, "both workers took part, each in its own directory"
    assert str(driver.folder) not in {task["cwd"] for task in seen}


def test_a_graph_in_a_bucket_is_loaded_from_a_bucket(driver: Driver, s3_server: S3Server, tmp_path: Path) -> None:
    """The workers' environment knows no bucket; how to reach it comes with the tasks."""
    store = s3_server.store()
    Before(store)
    data = write_input(tmp_path / "input", {0: "hello"})
    bucket = s3_store(parse_address("s3://bucket", store.options))
    for part in data.iterdir():
        obstore.put(bucket, f"input/{part.name}", part.read_bytes())
    assert driver.load(store, "s3://bucket/input/") == {"rows": ROWS}
    assert content(reader(store)) == loaded_here(tmp_path / "calm", data)
    assert kept_by_jobs(store) == []


class TestATaskThatFails:
    def test_once_is_tried_again(self, driver: Driver, local_store: Store, tmp_path: Path) -> None:
        """In one task the Python dies, in another one the client raises."""
        Before(local_store)
        data = write_input(tmp_path / "input", {1: "die 1", 2: "fail 1"})
        marks = driver.start(local_store, data)
        assert driver.outcome() == {"rows": ROWS}
        assert {mark.name for mark in marks.iterdir()} >= {"die-0", "fail-0"}
        assert content(reader(local_store)) == loaded_here(tmp_path / "calm", data)
        assert kept_by_jobs(local_store) == []

    def test_always_ends_the_job_and_leaves_nothing(
        self, driver: Driver, local_store: Store, tmp_path: Path
    ) -> None:
        """Another task is in the middle of it when Spark gives up."""
        before = Before(local_store)
        marks = driver.start(local_store, write_input(tmp_path / "input", {0: "wait", 1: "fail 100"}))
        told = driver.outcome()
        assert told["error"] == "JobFailed"
        until(lambda: not any(is_alive(task["pid"]) for task in asked(marks) if task["is_told"] == "wait"))
        assert (
            "reading and staging: ValueError: the model has the hiccups; nothing was committed" in told["message"]
        )
        before.check()

    def test_by_dying_is_told_as_that(self, driver: Driver, local_store: Store, tmp_path: Path) -> None:
        before = Before(local_store)
        told = driver.load(local_store, write_input(tmp_path / "input", {3: "die 100"}))
        assert told["error"] == "JobFailed"
        assert "a worker's Python ended" in told["message"]
        before.check()

    def test_because_its_input_is_gone_says_which(
        self, driver: Driver, local_store: Store, tmp_path: Path
    ) -> None:
        """The last part disappears while two tasks are at work on the first ones."""
        before = Before(local_store)
        data = write_input(tmp_path / "input", {0: "wait", 1: "wait"})
        marks = driver.start(local_store, data)
        until(lambda: len(asked(marks)) == 2)
        (data / "3.jsonl").rename(tmp_path / "3.jsonl")
        (marks / "go").touch()
        assert driver.outcome() == {
            "error": "SourceUnusable",
            "message": f"cannot load {data}/3.jsonl: No such file or directory",
        }
        before.check()
        (tmp_path / "3.jsonl").rename(data / "3.jsonl")
        (driver.start(local_store, data) / "go").touch()
        assert driver.outcome() == {"rows": ROWS}


def test_a_job_that_is_cancelled_leaves_nothing(driver: Driver, local_store: Store, tmp_path: Path) -> None:
    """Two tasks are in the middle of it, and would go on for as long as nobody lets them."""
    before = Before(local_store)
    data = write_input(tmp_path / "input", {0: "wait", 1: "wait"})
    marks = driver.start(local_store, data, cancel=True)
    told = driver.outcome()
    assert told["error"] == "JobCancelled"
    until(lambda: not any(is_alive(task["pid"]) for task in asked(marks)))
    before.check()
    assert driver.load(local_store, write_input(tmp_path / "other")) == {"rows": ROWS}


def test_a_full_disk_is_told_and_nothing_is_left(driver: Driver, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(disk)]
    mounted = subprocess.run(mount, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no disk of 16 MB could be mounted here, which takes root: {mounted.stderr.strip()}")
    try:
        before = Before(Store(str(disk / "g")))
        data = write_input(tmp_path / "input", padding=500)
        room = os.statvfs(disk)
        (disk / "filler").write_bytes(bytes(room.f_bavail * room.f_frsize - (1 << 18)))
        told = driver.load(before.store, data)
        assert told["error"] == "StorageUnavailable"
        assert "No space left on device" in told["message"]
        before.check()
        (disk / "filler").unlink()
        assert driver.load(before.store, data) == {"rows": ROWS + 500 * PARTS}
        assert content(reader(before.store)) == loaded_here(tmp_path / "calm", data)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


class TestADriverThatStalls:
    """On an object store it loses its locks to others, who take it for dead."""

    @pytest.fixture
    def before(self, s3_store: Store) -> Before:
        return Before(s3_store)

    @pytest.fixture
    def data(self, tmp_path: Path) -> Path:
        return write_input(tmp_path / "input")

    def stalled(
        self, driver: Driver, before: Before, data: Path, where: str, meanwhile: Callable[[], object]
    ) -> Any:
        """Let a driver sleep at a failpoint while something else happens; what comes of its load."""
        driver.start(before.store, data, stop_at=where, lease=LEASE)
        assert driver.outcome() == {"at": where}
        driver.signal(signal.SIGSTOP)
        try:
            meanwhile()
        finally:
            driver.signal(signal.SIGCONT)
        driver.say("go on")
        told = driver.outcome()
        while "at" in told:
            driver.say("go on")
            told = driver.outcome()
        return told

    def test_before_its_commit_decides_anew(
        self, driver: Driver, before: Before, data: Path, tmp_path: Path
    ) -> None:
        """It has staged a merge on top of a state that is not the newest any more."""
        writer = with_short_leases(
            omnigraph.open(before.store.uri, storage_options=before.store.options), before.store
        )

        def write() -> None:
            writer.mutate(ADD, {"n": "3-3"})

        assert self.stalled(driver, before, data, "write.after_stage", write) == {"rows": ROWS}
        assert content(reader(before.store)) == loaded_here(
            tmp_path / "calm", data, before=lambda graph: graph.mutate(ADD, {"n": "3-3"})
        )
        assert kept_by_jobs(before.store) == []

    def test_in_its_commit_gives_up(self, driver: Driver, before: Before, data: Path) -> None:
        """It has announced its commit; whoever comes next knows that it will not happen, and undoes it."""
        writer = impatient(before.store)
        told = self.stalled(
            driver, before, data, "write.after_sidecar", lambda: writer.mutate(ADD, {"n": "in time"})
        )
        assert told["error"] == "LockLost"
        names = {row["name"] for row in content(reader(before.store))["node:Doc"]}
        assert names == {"old", "0-0", "in time"}
        assert kept_by_jobs(before.store) == []

    def test_and_whose_files_were_cleaned_up_commits_none_of_them(
        self, driver: Driver, before: Before, data: Path
    ) -> None:
        cleaner = with_short_leases(
            omnigraph.open(before.store.uri, storage_options=before.store.options), before.store
        )
        gone = []
        told = self.stalled(driver, before, data, "write.after_stage", lambda: gone.extend(cleaner.clean_jobs()))
        assert [len(job.files) for job in gone] == [2 * PARTS + 1]
        assert told["error"] == "LockLost"
        before.check()


def test_a_worker_that_is_killed_costs_nothing_but_time(
    driver: Driver, cluster: Cluster, local_store: Store, tmp_path: Path
) -> None:
    """Its task is run again on the other worker; what the first attempt had written is removed with the job."""
    before = Before(local_store)
    data = write_input(tmp_path / "input", {0: "wait", 1: "wait"})
    marks = driver.start(local_store, data)
    job = driver.job()
    until(lambda: len(asked(marks)) == 2)
    folder = next(Path(local_store.uri, key).parent for key in before.files)
    (folder / f"{job}-of-a-lost-attempt.lance").write_bytes(b"half")
    cluster.workers[0].kill()
    (marks / "go").touch()
    assert driver.outcome() == {"rows": ROWS}
    assert content(reader(local_store)) == loaded_here(tmp_path / "calm", data)
    assert kept_by_jobs(local_store) == []
    assert not any("lost-attempt" in key for key in data_files(local_store))
    cluster.start_worker()
    cluster.wait_for_workers(2)


class TestADriverThatIsKilled:
    def test_among_its_tasks_leaves_files_that_can_be_removed(
        self, drivers: Drivers, local_store: Store, tmp_path: Path
    ) -> None:
        """Three tasks have staged their parts and one is at work when the driver dies."""
        before, driver = Before(local_store), drivers.one
        data = write_input(tmp_path / "input", {0: "wait"})
        marks = driver.start(local_store, data)
        job = driver.job()
        until(lambda: len(staged_by_job(local_store, job)) == 2 * (PARTS - 1))
        driver.kill()
        graph = omnigraph.open(local_store.uri)
        assert content(graph) == before.contents
        self.check_cleaning(graph, local_store, job, 2 * (PARTS - 1))
        (marks / "go").touch()
        until(lambda: not any(is_alive(task["pid"]) for task in asked(marks)))
        assert not staged_by_job(local_store, job), "nor has the task that was at work left anything"
        assert on_the_command_line(drivers.cluster, local_store, data)["total_entities"] == ROWS
        assert content(graph) == loaded_here(tmp_path / "calm", data, MockClient(), before=write_meanwhile)

    @pytest.mark.parametrize(
        ("failpoint", "left", "is_there"),
        [
            ("job.after_record", 0, False),
            ("load.after_stage", 2 * PARTS, False),
            ("load.after_check", 2 * PARTS, False),
            ("write.after_stage", 2 * PARTS + 1, False),
            ("write.after_sidecar", 2 * PARTS + 1, False),
            ("write.between_tables", PARTS + 1, False),
            ("write.after_tables", 1, True),
            ("write.after_publish", 1, True),
        ],
    )
    def test_at_any_step_behind_them(
        self, local_store: Store, tmp_path: Path, failpoint: str, left: int, is_there: bool
    ) -> None:
        """No task runs then, so the tasks before may as well run in the driver. Replacing a row writes a file
        anew, which leaves one that no commit will refer to."""
        before = Before(local_store)
        data = write_input(tmp_path / "input")
        died = pytest.raises(AssertionError, match="ended with -9")
        with children((be_killed, local_store, str(data), failpoint)) as (child,), died:
            child.hear()
        assert content(reader(local_store)) == (
            loaded_here(tmp_path / "published", data) if failpoint == "write.after_publish" else before.contents
        )
        graph = omnigraph.open(local_store.uri)
        after = loaded_here(tmp_path / "killed", data) if is_there else before.contents
        assert content(graph) == after
        (job,) = graph.jobs()
        self.check_cleaning(graph, local_store, job.record.job, left)
        load_here(graph, str(data))
        assert content(graph) == loaded_here(tmp_path / "calm", data, before=write_meanwhile)
        assert kept_by_jobs(local_store) == []

    def check_cleaning(self, graph: omnigraph.Graph, store: Store, job: str, left: int) -> None:
        """Another writer goes on as if nothing were; cleaning up removes the dead job's files and no others."""
        (found,) = graph.jobs()
        assert (found.record.job, found.is_running) == (job, False)
        assert len(found.files) == left
        assert set(found.files) <= staged_by_job(store, job)
        write_meanwhile(graph)
        locations = found.record.locations
        living = JobRecord("01RUNNING", "load", "main", None, locations, None, dt.datetime.now(dt.UTC))
        with running(graph._repository, living):
            theirs = f"{living.trees[0]}/01RUNNING-staged.lance"
            store.objects().put(theirs, b"")
            before = data_files(store)
            assert [(gone.record.job, gone.files) for gone in graph.clean_jobs()] == [(job, found.files)]
            assert data_files(store) == before - set(found.files)
            assert theirs in data_files(store)
        assert kept_by_jobs(store) == []
        assert graph.jobs() == []


def impatient(store: Store) -> omnigraph.Graph:
    """A graph whose locks are soon taken from those who stall."""
    return with_short_leases(omnigraph.open(store.uri, storage_options=store.options), store)


def write_meanwhile(graph: omnigraph.Graph) -> None:
    graph.mutate(ADD, {"n": "meanwhile"})


def staged_by_job(store: Store, job: str) -> set[str]:
    return {key for key in data_files(store) if key.rpartition("/")[2].startswith(f"{job}-")}


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def on_the_command_line(cluster: Cluster, store: Store, data: Path) -> dict[str, Any]:
    """Merge with the command, from another directory and with another client for embeddings."""
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("omnigraph")), "load", store.uri, "--mode", "merge"),
            *("--data", data.name, "--engine", "spark", "--master", cluster.master, "--json"),
        ],
        cwd=data.parent,
        env=driver_environment() | {MOCK: "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told
