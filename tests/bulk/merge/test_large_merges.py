"""Merges by tasks: the same graph, the same commit, the same conflicts as in memory."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.bulk.merge.histories import SCHEMA, SMALL_BUCKETS, go_on, outcome_of, preview_of, two_branches
from tests.cli.command import omnigraph as run
from tests.history.test_diff import content
from tests.history.truth import BASE, OPERATIONS, merged, truth, write
from tests.history.truth import SCHEMA as PEOPLE
from tests.processes import see_killed
from tests.recovery.test_windows import ALREADY_VISIBLE, DONE, OUTCOMES, ROLLED_FORWARD
from tests.sampling import quick_and_long, sampled
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidArgument, MergeConflicts, NotOnSpark, RequestError
from omnigraph.settings import BulkSettings, Settings
from omnigraph.storage import layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECISIONS: list[dict[str, Any]] = [{}, {"resolve": "theirs"}, {"resolve": "ours"}, {"strict": True}]


def row_ids(graph: Graph, branch: str = "main") -> dict[str, dict[str, int]]:
    """The row id of each entity, by table."""
    tables = graph._repository.tables
    found: dict[str, dict[str, int]] = {}
    for key, pin in graph.snapshot(branch).tables.items():
        rows = tables.scan(pin.ref, ["id"], row_ids=True).read_all().to_pylist()
        found[key] = {row["id"]: row["_rowid"] for row in rows}
        assert len(rows) == pin.row_count
    return found


def assert_nothing_left(graph: Graph) -> None:
    """No job has a record, and all of its files are part of the graph."""
    assert graph.jobs() == []
    assert [path for path in Path(graph.address, layout.JOBS).rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("seeds", quick_and_long(range(1), range(1, 60)))
def test_random_histories_merge_by_tasks_as_in_memory(seeds: range, tmp_path: Path) -> None:
    ends = set()
    for seed in seeds:
        options = DECISIONS[seed % len(DECISIONS)]
        small = two_branches(Store(f"{tmp_path}/small{seed}"), seed)
        large = two_branches(Store(f"{tmp_path}/large{seed}"), seed, SMALL_BUCKETS)
        before = row_ids(large)
        expected = outcome_of(small, **options)
        reader = omnigraph.open(large.address, read_only=True, settings=SMALL_BUCKETS)
        assert preview_of(reader, **options) == expected
        assert outcome_of(large, engine="local", **options) == expected
        assert content(large, large.snapshot()) == content(small, small.snapshot())
        after = row_ids(large)
        assert {key: {i: rows[i] for i in rows.keys() & before[key].keys()} for key, rows in after.items()} == {
            key: {i: rows[i] for i in rows.keys() & after[key].keys()} for key, rows in before.items()
        }
        assert_nothing_left(large)
        ends.add(expected[0])
    assert {"merged", "conflicts"} <= ends


@pytest.mark.parametrize("seeds", quick_and_long(range(1), range(1, 12)))
def test_merging_back_and_forth(seeds: range, tmp_path: Path) -> None:
    """Later merges have bases that lie on the other branch, where entities have other row ids."""
    for seed in seeds:
        small = two_branches(Store(f"{tmp_path}/small{seed}"), seed)
        large = two_branches(Store(f"{tmp_path}/large{seed}"), seed, SMALL_BUCKETS)
        for step, (source, into) in enumerate((("dev", "main"), ("main", "dev"), ("dev", "main"))):
            ends = [outcome_of(graph, source, into, resolve="theirs", engine="local") for graph in (small, large)]
            assert ends[0] == ends[1]
            for branch in ("main", "dev"):
                assert content(large, large.snapshot(branch)) == content(small, small.snapshot(branch))
                row_ids(large, branch)
            for graph in (small, large):
                go_on(graph, random.Random(seed * 10 + step), 4)
                graph.ensure_indices()
        assert_nothing_left(large)


@pytest.mark.parametrize("source", sampled(OPERATIONS, 2))
def test_every_pair_of_operations(source: str, local_store: Store) -> None:
    """The table of all pairs of changes holds for merges by tasks."""
    graph = omnigraph.init(local_store.uri, PEOPLE, settings=SMALL_BUCKETS)
    graph.load(BASE, mode="append")
    expected = truth()
    for number, target in enumerate(OPERATIONS):
        ours, theirs = f"ours{number}", f"theirs{number}"
        graph.create_branch(ours)
        graph.create_branch(theirs)
        write(graph, ours, target, 1)
        write(graph, theirs, source, 2)
        assert merged(graph, theirs, ours, engine="local") == expected[source, target], (source, target)
    assert_nothing_left(graph)


def test_rules_of_the_schema_are_conflicts(tmp_path: Path) -> None:
    """Values that become shared, nodes with too many edges, edges without ends: all are found, in one order."""
    found = []
    for settings in (None, SMALL_BUCKETS):
        graph = omnigraph.init(f"{tmp_path}/{settings is None}", SCHEMA, settings=settings)
        people = [{"type": "Person", "data": {"name": name}} for name in "abcdefgh"]
        graph.load(people, mode="append")
        graph.create_branch("dev")
        for branch, names in (("main", "abc"), ("dev", "def")):
            graph.load(
                [{"type": "Person", "data": {"name": n, "email": f"{i}@x"}} for i, n in enumerate(names)],
                mode="merge",
                branch=branch,
            )
            graph.load(
                [
                    {"edge": "Knows", "from": "g", "to": to, "data": {"id": f"{branch}-{to}"}}
                    for to in ("h", *names[:2])
                ],
                mode="append",
                branch=branch,
            )
        graph.mutate('query q() { delete Person where name = "h" }', branch="dev")
        found.append(outcome_of(graph, engine="local", resolve="ours"))
        found.append(preview_of(graph, engine="local", resolve="ours"))
    assert found[0] == found[1] == found[2] == found[3]
    kinds = {conflict.kind.value for conflict in found[0][2]}
    assert kinds == {"unique_violation", "cardinality_violation", "orphan_edge"}


class TestDeciding:
    @pytest.fixture
    def graph(self, local_store: Store) -> Graph:
        graph = omnigraph.init(local_store.uri, PEOPLE, settings=SMALL_BUCKETS)
        graph.load(BASE, mode="append")
        graph.create_branch("dev")
        write(graph, "dev", "set age", 1)
        write(graph, "main", "set age", 2)
        return graph

    def test_for_one_entity(self, graph: Graph) -> None:
        choices: Any = {("node:Person", "Bob"): "ours", ("node:Person", "Alice"): "ours"}
        with pytest.raises(InvalidArgument, match="node:Person 'Bob' is not in conflict"):
            graph.merge("dev", choices=choices, engine="local")
        done = graph.merge("dev", choices={("node:Person", "Alice"): "theirs"}, engine="local")
        assert done.outcome == "merged"
        found = graph.entity("Person", "Alice")
        assert found is not None
        assert found["age"] == 1
        assert_nothing_left(graph)

    def test_undo_by_tasks(self, graph: Graph) -> None:
        """A revert, a cherry-pick and a reset are merges of other states."""
        before = content(graph, graph.snapshot())
        commit = graph.merge("dev", resolve="theirs", engine="local").commit
        assert commit is not None
        assert graph.revert(commit.graph_commit_id, engine="local").commit is not None
        assert content(graph, graph.snapshot()) == before
        write(graph, "main", "add node", 3)
        added = graph.commits()[0].graph_commit_id
        assert graph.cherry_pick(added, "dev", engine="local").commit is not None
        assert graph.entity("Person", "Eve", branch="dev") is not None
        assert graph.reset(graph.commits()[2].graph_commit_id, engine="local").commit is not None
        assert graph.entity("Person", "Eve") is None
        with pytest.raises(MergeConflicts):
            graph.revert(graph.commits()[-2].graph_commit_id, "dev", engine="local")
        assert_nothing_left(graph)

    def test_engines_that_are_none_or_cannot_reach_the_graph(self, graph: Graph, memory_store: Store) -> None:
        with pytest.raises(RequestError, match="'flink' is no engine"):
            graph.merge("dev", engine="flink")  # type: ignore[arg-type]
        inside = omnigraph.init(memory_store.uri, PEOPLE, settings=SMALL_BUCKETS)
        inside.create_branch("dev")
        write(inside, "dev", "add node", 1)
        with pytest.raises(NotOnSpark, match="a graph in memory"):
            inside.merge("dev", engine="spark")
        assert inside.merge("dev").outcome == "fast_forward"


def test_a_small_change_takes_no_job(local_store: Store) -> None:
    """Up to the limit nothing is staged by tasks: no listener hears of steps."""
    steps: list[str] = []
    for limit, expected in ((1 << 30, False), (0, True)):
        settings = Settings(bulk=BulkSettings(small_merge=limit))
        graph = two_branches(Store(f"{local_store.uri}-{limit}"), 3, settings)
        steps.clear()
        graph.merge("dev", resolve="theirs", engine="local", listener=lambda event: steps.append(event.step))
        assert bool(steps) is expected


def merge_by_tasks(store: Store) -> None:
    graph = omnigraph.open(store.uri, storage_options=store.options, settings=SMALL_BUCKETS)
    graph.merge("dev", resolve="theirs", engine="local")


WINDOWS = {"job.after_record": "nothing", "merge.after_stage": "nothing", **OUTCOMES}


@pytest.mark.parametrize("failpoint", sampled(WINDOWS, 2))
def test_a_merge_that_is_killed_is_wholly_there_or_not_at_all(failpoint: str, local_store: Store) -> None:
    graph = two_branches(local_store, 3, SMALL_BUCKETS)
    before = content(graph, graph.snapshot())
    see_killed(failpoint, merge_by_tasks, local_store)
    reader = omnigraph.open(local_store.uri, read_only=True)
    assert (content(reader, reader.snapshot()) != before) == (failpoint in ALREADY_VISIBLE)
    again = omnigraph.open(local_store.uri, settings=SMALL_BUCKETS)
    is_done = WINDOWS[failpoint] in (DONE, ROLLED_FORWARD)
    assert (content(again, again.snapshot()) != before) == is_done
    outcome = again.merge("dev", resolve="theirs", engine="local").outcome
    assert outcome == ("already_up_to_date" if is_done else "merged")
    again.clean_jobs()
    assert_nothing_left(again)
    assert len([commit for commit in again.commits() if commit.kind == "merge"]) == 1


@pytest.mark.long
def test_in_a_bucket(s3_store: Store) -> None:
    """Row ids, deleted ids and data files of tasks are objects beside the graph, and are gone afterwards."""
    graph = two_branches(s3_store, 3, SMALL_BUCKETS)
    before = graph.preview_merge("dev", resolve="theirs")
    done = graph.merge("dev", resolve="theirs", engine="local")
    assert (done.plan, done.outcome) == (before, "merged")
    assert graph.merge("dev").outcome == "already_up_to_date"
    assert graph.jobs() == []
    assert s3_store.objects().list(layout.JOBS) == []


class TestOnSpark:
    @pytest.mark.parametrize("seed", range(3, 3 + len(DECISIONS)))
    def test_random_histories_merge_as_in_memory(self, seed: int, tmp_path: Path, spark: SparkSession) -> None:
        options = DECISIONS[seed % len(DECISIONS)]
        small = two_branches(Store(f"{tmp_path}/small"), seed)
        large = two_branches(Store(f"{tmp_path}/large"), seed, SMALL_BUCKETS)
        assert outcome_of(large, spark=spark, **options) == outcome_of(small, **options)
        assert content(large, large.snapshot()) == content(small, small.snapshot())
        assert_nothing_left(large)

    def test_conflicts_come_back_with_their_rows(self, local_store: Store, spark: SparkSession) -> None:
        graph = omnigraph.init(local_store.uri, PEOPLE, settings=SMALL_BUCKETS)
        graph.load(BASE, mode="append")
        graph.create_branch("dev")
        write(graph, "dev", "set age", 1)
        write(graph, "main", "set age", 2)
        plan = graph.preview_merge("dev", engine="spark", spark=spark)
        (conflict,) = plan.conflicts
        images = [image["age"] for image in (conflict.base, conflict.ours, conflict.theirs) if image is not None]
        assert (conflict.kind.value, images) == ("divergent_update", [30, 2, 1])
        assert_nothing_left(graph)


def test_the_command_names_an_engine(local_store: Store) -> None:
    graph = omnigraph.init(local_store.uri, PEOPLE)
    graph.load(BASE, mode="append")
    graph.create_branch("dev")
    write(graph, "dev", "add node", 1)
    merge = ("branch", "merge", "dev", "--store", graph.address, "--json", "--engine", "local")
    assert run(*merge, "--preview").json["outcome"] == "fast_forward"
    done = run(*merge).json
    assert done["changes"] == {"node:Person": {"insert": 1, "update": 0, "delete": 0}}
    undone = run(
        "revert", done["commit"]["graph_commit_id"], "--store", graph.address, "--engine", "local", "--json"
    )
    assert undone.json["changes"] == {"node:Person": {"insert": 0, "update": 0, "delete": 1}}
    assert run(*merge[:-1], "flink").code == 2
