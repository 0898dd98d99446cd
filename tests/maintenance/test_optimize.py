"""`optimize`: small files become few, and indexes know every row, by commits in which no row changes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, product
from typing import Any

import pytest
from tests.cli.command import omnigraph as run
from tests.history.test_diff import SCHEMA, content, person
from tests.maintenance.looks import ids, indexed, table
from tests.maintenance.test_index_races import each_time
from tests.processes import see_killed
from tests.recovery.racers import once
from tests.recovery.scenes import assert_settled
from tests.recovery.test_windows import ALREADY_VISIBLE, DONE, OUTCOMES, ROLLED_FORWARD
from tests.recovery.victims import connect
from tests.sampling import sampled
from tests.stores import Store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import ReadOnlyGraph, RequestError

PERSON, PLACE, KNOWS = "node:Person", "node:Place", "edge:Knows"


def new_graph(store: Store) -> Graph:
    """A graph that was written in many small steps: each left a file."""
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
    for number in range(4):
        graph.load([_person(f"p{number}"), _person(f"q{number}")], mode="append")
        graph.load([{"edge": "Knows", "from": f"p{number}", "to": "q0"}], mode="append")
    graph.load([person("p1", age=1)], mode="merge")
    graph.mutate('query q() { delete Person where name = "q2" }')
    return graph


def _person(name: str) -> dict[str, Any]:
    return person(name, age=36, tags=["a"], face=[1, 0], photo="base64:AAEC", height=-0.0)


def fragments(graph: Graph, table_key: str, branch: str = "main") -> int:
    return len(table(graph, table_key, branch).get_fragments())


def test_small_files_become_one_and_no_row_changes(store: Store) -> None:
    graph = new_graph(store)
    before, rows = graph.snapshot(), content(graph, graph.snapshot())
    files = {key: fragments(graph, key) for key in (PERSON, KNOWS)}
    report = graph.optimize(actor="ada")
    after = graph.snapshot()
    assert report.commit == after.commit
    assert list(report.commits) == graph.commits()[1::-1]
    assert {(commit.kind, commit.actor_id) for commit in report.commits} == {("optimize", "ada")}
    found = {t.table_key: (t.fragments_removed, t.fragments_added, t.committed) for t in report.tables}
    assert found == {
        PERSON: (files[PERSON], 1, True),
        KNOWS: (files[KNOWS], 1, True),
        PLACE: (0, 0, False),
    }
    for key in found:
        assert after.tables[key].row_count == before.tables[key].row_count
        assert after.tables[key].table_version == before.tables[key].table_version + 2 * (key != PLACE)
    assert {t.table_key: t.table_version for t in report.tables} == {
        key: after.tables[key].table_version for key in found
    }
    for key in (PERSON, KNOWS):
        assert set(indexed(graph, key).values()) == {after.tables[key].row_count}
    assert content(graph, after) == rows
    assert len(graph.diff(before, after)) == 0
    assert_settled(graph)
    assert graph.optimize().commit is None


def test_the_diff_across_it_is_exact(local_store: Store) -> None:
    """What was written before and after a compaction, and nothing else."""
    graph = new_graph(local_store)
    before = graph.snapshot()
    graph.load([person("p0", age=7)], mode="merge")
    graph.optimize()
    graph.mutate('query q() { delete Person where name = "q1" }')
    changes = [(change.op.value, change.id) for change in graph.diff(before)]
    assert changes == [("update", "p0"), ("delete", "q1")]


def test_some_types_only(local_store: Store) -> None:
    graph = new_graph(local_store)
    (only,) = graph.optimize(types=["Knows"]).tables
    assert (only.table_key, fragments(graph, KNOWS)) == (KNOWS, 1)
    with pytest.raises(RequestError, match="there is no type 'Persn'; did you mean `Person`"):
        graph.optimize(types=["Persn"])
    with pytest.raises(ReadOnlyGraph):
        omnigraph.open(local_store.uri, read_only=True).optimize()


def test_large_tables_get_files_of_bounded_size(local_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = new_graph(local_store)
    monkeypatch.setattr("omnigraph.storage.stage.compaction.ROWS_PER_FILE", 3)
    graph.optimize()
    sizes = [part.count_rows() for part in table(graph, PERSON).get_fragments()]
    assert sorted(sizes) == [3, 4]
    assert graph.optimize().commit is None


class TestBranches:
    def test_a_branch_compacts_its_own_tables_only(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        graph.create_branch("dev")
        graph.load([person("r0")], mode="append", branch="dev")
        rows = content(graph, graph.snapshot("dev"))
        report = graph.optimize(branch="dev")
        skipped = {t.table_key: t.skipped for t in report.tables}
        assert skipped == {PERSON: None, PLACE: "shared with branch main", KNOWS: "shared with branch main"}
        assert (fragments(graph, PERSON, "dev"), content(graph, graph.snapshot("dev"))) == (1, rows)
        assert fragments(graph, PERSON) > 1
        assert [change.id for change in graph.diff("main", "dev")] == ["r0"]

    @pytest.mark.parametrize("compacted", [("main",), ("dev",), ("main", "dev")])
    def test_a_merge_after_it(self, local_store: Store, compacted: tuple[str, ...]) -> None:
        graph = new_graph(local_store)
        graph.create_branch("dev")
        graph.load([person("p0", age=7), person("r0")], mode="merge", branch="dev")
        graph.load([person("p3", age=8)], mode="merge")
        for branch in compacted:
            assert graph.optimize(branch=branch).commit is not None
        assert graph.merge("dev").plan.changes == {PERSON: {"insert": 1, "update": 1, "delete": 0}}
        assert [change.id for change in graph.diff("dev", "main")] == ["p3"]


class TestIndexes:
    @pytest.fixture
    def graph(self, local_store: Store) -> Graph:
        graph = new_graph(local_store)
        graph.ensure_indices()
        graph.load([_person("r0")], mode="append")
        graph.load([_person("r1"), person("p3", age=9)], mode="merge")
        return graph

    def test_they_know_every_row_afterwards(self, graph: Graph) -> None:
        """Also those that were written since, and those that a compaction has put into other files."""
        found = {t.table_key: set(t.indexes) for t in graph.optimize().tables}
        assert found[PERSON] == {"id_btree", "name_btree"}
        assert set(indexed(graph, PERSON).values()) == {graph.snapshot().tables[PERSON].row_count}
        assert graph.optimize().commit is None
        assert graph.ensure_indices().commit is None

    def test_look_ups_stay_right(self, graph: Graph) -> None:
        """Rows that an index knows and rows that it does not are found once each, before and after."""
        names = sorted(content(graph, graph.snapshot())[PERSON])
        for _ in range(2):
            for name in names:
                assert ids(graph, PERSON, f"id = '{name}'") == [name]
                assert ids(graph, PERSON, f"name = '{name}'") == [name]
            assert ids(graph, PERSON, "id >= 'p'") == names
            graph.optimize()
        graph.load([_person("s0")], mode="append")
        graph.ensure_indices()
        assert ids(graph, PERSON, "id >= 'p'") == [*names, "s0"]


class TestMeanwhile:
    def test_a_table_that_grows_is_compacted_on_top_of_that(self, local_store: Store) -> None:
        """Nothing is written twice, and what is new comes next."""
        graph, other = new_graph(local_store), omnigraph.open(local_store.uri)
        with failpoints.armed("write.after_stage", once(lambda: other.load([person("r0")], mode="append"))):
            report = graph.optimize()
        assert [t.skipped for t in report.tables] == [None, None, None]
        assert (fragments(graph, PERSON), "r0" in content(graph, graph.snapshot())[PERSON]) == (1, True)
        assert set(indexed(graph, PERSON).values()) == {graph.snapshot().tables[PERSON].row_count}

    def test_writers_who_never_rest_do_not_keep_it_from_ending(self, local_store: Store) -> None:
        graph, other = new_graph(local_store), omnigraph.open(local_store.uri)
        numbers = count()
        disturb = each_time(lambda: other.load([person(f"r{next(numbers)}")], mode="append"))
        with failpoints.armed("write.after_stage", disturb):
            report = graph.optimize()
        assert [t.skipped for t in report.tables] == [None, None, None]
        names = set(content(graph, graph.snapshot())[PERSON])
        assert {f"r{number}" for number in range(next(numbers))} <= names
        assert all(ids(graph, PERSON, f"id = '{name}'") == [name] for name in names)
        assert_settled(graph)

    def test_files_that_are_changed_meanwhile_are_written_again(self, local_store: Store) -> None:
        """Only those groups of files; and what was written in vain is removed."""
        graph, other = new_graph(local_store), omnigraph.open(local_store.uri)
        with failpoints.armed("write.after_stage", once(lambda: other.load([person("p3", age=2)], mode="merge"))):
            report = graph.optimize()
        assert [t.skipped for t in report.tables] == [None, None, None]
        assert ids(graph, PERSON, "age = 2") == ["p3"]
        assert fragments(graph, PERSON) == 1

    def test_a_table_whose_files_keep_changing_is_skipped(self, local_store: Store) -> None:
        """Nothing is written again under the lock; what is ready is committed."""
        graph, other = new_graph(local_store), omnigraph.open(local_store.uri)
        numbers = count()
        disturb = each_time(lambda: other.load([person("p3", age=next(numbers))], mode="merge"))
        with failpoints.armed("write.after_stage", disturb):
            report = graph.optimize()
        skipped = {t.table_key: t.skipped for t in report.tables if t.skipped}
        assert skipped == {PERSON: "other writers changed it meanwhile; try again"}
        assert fragments(graph, KNOWS) == 1
        assert_settled(graph)

    def test_two_at_once_work_once(self, local_store: Store) -> None:
        graph, other = new_graph(local_store), omnigraph.open(local_store.uri)
        with failpoints.armed("write.after_stage", once(other.optimize)):
            assert graph.optimize().commit is None
        assert [commit.kind for commit in graph.commits()].count("optimize") == 2

    def test_a_table_that_lance_moved_is_skipped(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        table(graph, PERSON).update_config({"a": "b"})
        report = graph.optimize()
        assert [(t.table_key, t.skipped) for t in report.tables if t.skipped] == [
            (PERSON, "moved with Lance itself; run `omnigraph repair`")
        ]
        assert fragments(graph, KNOWS) == 1


def optimize(store: Store, branch: str) -> None:
    connect(store).optimize(branch=branch)


def _on_dev(graph: Graph) -> None:
    graph.create_branch("dev")
    graph.load([person("r0"), {"edge": "Knows", "from": "p0", "to": "r0"}], mode="append", branch="dev")


BRANCHES: dict[str, Callable[[Graph], object]] = {"main": lambda _: None, "dev": _on_dev}


def _compacted(graph: Graph, branch: str) -> bool:
    return fragments(graph, PERSON, branch) == 1


def _indexed(graph: Graph, branch: str) -> bool:
    return set(indexed(graph, PERSON, branch).values()) == {graph.snapshot(branch).tables[PERSON].row_count}


STEPS: dict[str, Callable[[Graph, str], bool]] = {"compaction": _compacted, "indexes": _indexed}
"""The steps of a run, each with what it is done by."""


@pytest.mark.parametrize(("failpoint", "branch", "step"), sampled(product(OUTCOMES, BRANCHES, STEPS), 4))
def test_killed_anywhere_a_step_is_done_or_not(local_store: Store, failpoint: str, branch: str, step: str) -> None:
    check_killed(local_store, failpoint, branch, step)


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("failpoint", ["write.after_sidecar", "write.between_tables", "write.after_tables"])
def test_killed_on_an_object_store(s3_store: Store, failpoint: str, step: str) -> None:
    check_killed(s3_store, failpoint, "main", step)


def check_killed(store: Store, failpoint: str, branch: str, step: str) -> None:
    graph = new_graph(store)
    BRANCHES[branch](graph)
    if step == "indexes":
        edge = {"edge": "Knows", "from": "p0", "to": "q0"}
        graph.load([_person("p0"), _person("q0"), edge], mode="overwrite", branch=branch)
    is_done = STEPS[step]
    rows = content(graph, graph.snapshot(branch))
    see_killed(failpoint, optimize, store, branch)
    reader = omnigraph.open(store.uri, read_only=True, storage_options=store.options)
    assert content(reader, reader.snapshot(branch)) == rows
    assert is_done(reader, branch) == (failpoint in ALREADY_VISIBLE)
    again = connect(store)
    again.refresh()
    assert is_done(again, branch) == (OUTCOMES[failpoint] in (DONE, ROLLED_FORWARD))
    again.optimize(branch=branch)
    assert all(done(again, branch) for done in STEPS.values())
    assert again.optimize(branch=branch).commit is None
    assert content(again, again.snapshot(branch)) == rows
    again.load([person("z"), {"edge": "Knows", "from": "z", "to": "p0"}], mode="append", branch=branch)
    assert_settled(again)


def test_the_command(local_store: Store) -> None:
    graph = new_graph(local_store)
    graph.ensure_indices()
    graph.create_branch("dev")
    files = fragments(graph, PERSON)
    shared = run("optimize", "--store", local_store.uri, "--branch", "dev", "--type", "Place")
    assert shared.out.splitlines() == ["nothing to do on dev", "  skipped node:Place: shared with branch main"]
    ran = run("optimize", "--store", local_store.uri, "--type", "Person", "--as", "ada")
    first, second, third = ran.out.splitlines()
    (newest, before, *_) = graph.commits()
    assert (newest.kind, newest.actor_id) == (before.kind, before.actor_id) == ("optimize", "ada")
    assert (first, second) == (
        f"committed {before.graph_commit_id} on main",
        f"committed {newest.graph_commit_id} on main",
    )
    assert third == f"  node:Person: {files} fragments became 1; indexed id_btree, name_btree"
    found = run("optimize", local_store.uri, "--json").json
    assert (found["branch"], [commit["kind"] for commit in found["commits"]]) == ("main", ["optimize", "optimize"])
    assert found["tables"][0] == {
        "table_key": PERSON,
        "table_version": graph.snapshot().tables[PERSON].table_version,
        "fragments_removed": 0,
        "fragments_added": 0,
        "indexes": [],
        "committed": False,
        "skipped": None,
    }
    assert run("optimize", local_store.uri).out == "nothing to do on main\n"
    every = run("optimize", local_store.uri, "--all-branches", "--json").json
    assert [branch["branch"] for branch in every["branches"]] == ["main", "dev"]
    assert run("optimize", local_store.uri, "--all-branches").out.splitlines()[:2] == [
        "nothing to do on main",
        "nothing to do on dev",
    ]
    unknown = run("optimize", local_store.uri, "--type", "Nope")
    assert (unknown.code, "there is no type 'Nope'" in unknown.err) == (1, True)
