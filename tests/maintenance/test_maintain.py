"""`maintain`: what a policy asks for, one process at a time, beside writers and readers."""

from __future__ import annotations

import datetime as dt
import signal
import subprocess
import threading
from typing import Any

import pytest
from tests.cli.command import COMMAND
from tests.cli.command import omnigraph as run
from tests.history.test_diff import content, person
from tests.maintenance.looks import indexed, table
from tests.maintenance.test_optimize import KNOWS, PERSON, fragments, new_graph
from tests.processes import see_killed
from tests.recovery.racers import once
from tests.recovery.scenes import assert_settled
from tests.recovery.victims import connect
from tests.sampling import sampled
from tests.stores import Store

import omnigraph
from omnigraph import MaintenancePolicy, failpoints
from omnigraph.errors import InvalidArgument, MaintenanceRunning, ReadOnlyGraph, StorageUnavailable
from omnigraph.maintenance.maintain import Outcome, maintain_every

EAGER = MaintenancePolicy(small_files=2, index_lag=0)


def test_every_branch_is_optimized(store: Store) -> None:
    graph = new_graph(store)
    graph.create_branch("dev")
    graph.load([person("r0")], mode="append", branch="dev")
    rows = {branch: content(graph, graph.snapshot(branch)) for branch in ("main", "dev")}
    report = graph.maintain(EAGER, actor="ada")
    assert [branch.branch for branch in report.branches] == ["main", "dev"]
    assert {(c.kind, c.actor_id) for branch in report.branches for c in branch.commits} == {("optimize", "ada")}
    assert (report.recovered, report.jobs, report.cleanup, report.failures) == ((), (), None, ())
    for branch in ("main", "dev"):
        assert fragments(graph, PERSON, branch) == 1
        assert set(indexed(graph, PERSON, branch).values()) == {len(rows[branch][PERSON])}
        assert content(graph, graph.snapshot(branch)) == rows[branch]
    again = graph.maintain(EAGER)
    assert (again.is_idle, report.is_idle) == (True, False)
    assert_settled(graph)


class TestPolicies:
    def test_few_small_files_are_left_and_many_are_not(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        graph.ensure_indices()
        files = fragments(graph, KNOWS)
        assert files == 4
        graph.maintain(MaintenancePolicy(small_files=files + 1))
        assert fragments(graph, KNOWS) == files
        graph.maintain(MaintenancePolicy(small_files=files))
        assert fragments(graph, KNOWS) == 1

    def test_missing_indexes_are_built_and_others_may_lack_some_rows(self, local_store: Store) -> None:
        graph = omnigraph.init(local_store.uri, "node Doc { name: String @key }")
        graph.load([{"type": "Doc", "data": {"name": f"d{n}"}} for n in range(100)], mode="append")
        graph.maintain()
        assert set(indexed(graph, "node:Doc").values()) == {100}
        graph.load([{"type": "Doc", "data": {"name": f"e{n}"}} for n in range(6)], mode="append")
        assert graph.maintain(MaintenancePolicy(index_lag=6)).is_idle
        graph.maintain(MaintenancePolicy(index_lag=5))
        assert set(indexed(graph, "node:Doc").values()) == {106}

    def test_history_stays_unless_the_policy_says_how_much_of_it(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        oldest = graph.commits()[-1]
        graph.maintain(EAGER)
        graph.snapshot(at=oldest.graph_commit_id)
        report = graph.maintain(MaintenancePolicy(keep=2, grace="0s"))
        assert report.cleanup is not None
        assert report.cleanup.files_removed > 0
        assert report.as_json()["cleanup"]["confirmed"] is True
        assert graph.maintain(MaintenancePolicy(older_than="7d")).cleanup is not None

    @pytest.mark.parametrize(
        ("policy", "argument"),
        [
            (MaintenancePolicy(small_files=1), "small_files"),
            (MaintenancePolicy(index_lag=-1), "index_lag"),
            (MaintenancePolicy(grace="1h"), "grace"),
            (MaintenancePolicy(keep=-1), "keep"),
            (MaintenancePolicy(older_than="soon"), "older_than"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, memory_store: Store, policy: MaintenancePolicy, argument: str
    ) -> None:
        graph = omnigraph.init(memory_store.uri, "node Doc {}")
        with pytest.raises(InvalidArgument, match=argument):
            graph.maintain(policy)

    def test_a_graph_that_is_open_for_reading_is_not_maintained(self, local_store: Store) -> None:
        new_graph(local_store)
        with pytest.raises(ReadOnlyGraph):
            omnigraph.open(local_store.uri, read_only=True).maintain()


def test_one_at_a_time(local_store: Store) -> None:
    check_one_at_a_time(local_store)


@pytest.mark.long
def test_one_at_a_time_on_an_object_store(s3_store: Store) -> None:
    check_one_at_a_time(s3_store)


def check_one_at_a_time(store: Store) -> None:
    graph = new_graph(store)
    other = omnigraph.open(store.uri, storage_options=store.options)
    met: list[BaseException] = []

    def maintain_too() -> None:
        for each in (graph, other):
            with pytest.raises(MaintenanceRunning, match="another process is maintaining") as error:
                each.maintain()
            met.append(error.value)

    with failpoints.armed("maintain.after_lock", once(maintain_too)):
        graph.maintain()
    assert len(met) == 2
    other.maintain()


def test_a_step_that_fails_is_reported_and_the_others_go_on(local_store: Store) -> None:
    graph = new_graph(local_store)
    graph.create_branch("dev")
    graph.load([person("r0")], mode="append", branch="dev")

    def fail() -> None:
        raise StorageUnavailable("the disk", "it is on fire")

    with failpoints.armed("write.after_stage", once(fail)):
        report = graph.maintain(EAGER)
    (failure,) = report.failures
    assert (failure.step, failure.branch) == ("optimize", "main")
    assert "it is on fire" in failure.reason
    assert (fragments(graph, PERSON) > 1, fragments(graph, PERSON, "dev")) == (True, 1)


def test_a_branch_that_is_deleted_meanwhile_is_no_failure(local_store: Store) -> None:
    graph = new_graph(local_store)
    graph.create_branch("dev")
    other = omnigraph.open(local_store.uri)
    with failpoints.armed("maintain.between_branches", once(lambda: other.delete_branch("dev"))):
        report = graph.maintain(EAGER)
    assert (report.failures, [branch.branch for branch in report.branches]) == ((), ["main"])


def maintain(store: Store) -> None:
    connect(store).maintain(EAGER)


KILLED_AT = [*sorted(failpoints.MAINTAIN_NAMES), "write.after_sidecar", "write.after_tables"]


@pytest.mark.parametrize("failpoint", sampled(KILLED_AT, 1))
def test_killed_anywhere_the_next_run_does_the_rest(local_store: Store, failpoint: str) -> None:
    check_killed(local_store, failpoint)


@pytest.mark.long
@pytest.mark.parametrize("failpoint", KILLED_AT)
def test_killed_on_an_object_store(s3_store: Store, failpoint: str) -> None:
    check_killed(s3_store, failpoint)


def check_killed(store: Store, failpoint: str) -> None:
    graph = new_graph(store)
    rows = content(graph, graph.snapshot())
    see_killed(failpoint, maintain, store)
    again = connect(store)
    again.maintain(EAGER)
    assert fragments(again, PERSON) == 1
    assert set(indexed(again, PERSON).values()) == {len(rows[PERSON])}
    assert content(again, again.snapshot()) == rows
    assert_settled(again)


def test_again_and_again_until_it_is_stopped(local_store: Store) -> None:
    """What fails is reported like what is done, and tried again."""
    graph = new_graph(local_store)
    stop = threading.Event()
    outcomes: list[Outcome] = []

    def note(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if len(outcomes) == 3:
            stop.set()

    def fail() -> None:
        raise MaintenanceRunning(graph.address)

    with failpoints.armed("maintain.after_lock", once(fail)):
        maintain_every(lambda: graph.maintain(EAGER), dt.timedelta(0), stop, note)
    first, second, third = outcomes
    assert isinstance(first, MaintenanceRunning)
    assert not isinstance(second, Exception)
    assert not isinstance(third, Exception)
    assert (second.is_idle, third.is_idle) == (False, True)


class TestTheCommand:
    def test_once(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        files = fragments(graph, PERSON)
        ran = run("maintain", local_store.uri, "--once", "--small-files", "2", "--as", "ada")
        names = "id_btree, name_btree"
        assert ran.out.splitlines()[0] == (
            f"optimized node:Person on main: {files} fragments became 1; indexed {names}"
        )
        assert graph.commits()[0].actor_id == "ada"
        assert run("maintain", "--store", local_store.uri).out == "nothing to do\n"
        shown = run("maintain", local_store.uri, "--keep", "1", "--grace", "0s", "--json").json
        assert (shown["uri"], shown["failures"]) == (local_store.uri, [])
        assert shown["cleanup"]["files_removed"] > 0

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--once", "--every", "1m"], "--once and --every exclude each other"),
            (["--grace", "1h"], "--grace goes with --keep or --older-than"),
        ],
    )
    def test_what_does_not_go_together(self, local_store: Store, arguments: list[str], said: str) -> None:
        refused = run("maintain", local_store.uri, *arguments)
        assert (refused.code, said in refused.err) == (2, True)

    def test_a_second_one_says_that_the_first_is_running(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        ran: list[Any] = []
        with failpoints.armed(
            "maintain.after_lock", once(lambda: ran.append(run("maintain", local_store.uri, "--once")))
        ):
            graph.maintain()
        assert (ran[0].code, "another process is maintaining" in ran[0].err) == (3, True)

    @pytest.mark.long
    def test_every_so_often_until_a_signal(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        arguments = ["maintain", local_store.uri, "--every", "1s", "--small-files", "2"]
        with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True) as started:
            assert started.stdout is not None
            assert started.stdout.readline().startswith("optimized node:Person on main: ")
            started.send_signal(signal.SIGTERM)
            assert started.wait(60) == 0
        assert len(table(graph, PERSON).get_fragments()) == 1
