"""The merge base: the best common ancestor, found at the cost of the distance, also if its branch was deleted."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.history.test_diff import content
from tests.history.truth import BASE, SCHEMA, merged, write
from tests.sampling import sampled
from tests.stores import Store, memory_store

import omnigraph
from omnigraph import BulkSettings, Graph, Settings
from omnigraph.errors import HistoryReclaimed, MergeConflicts, RequestError
from omnigraph.history.merging.bases import MergeBase, merge_base
from omnigraph.history.merging.comparison import MergeRequest, compared
from omnigraph.manifest.lineage import Ancestry
from omnigraph.manifest.state import Commit
from omnigraph.write.base import Base

NOON = dt.datetime(2026, 5, 1, 12, 0, tzinfo=dt.UTC)


def commits(drawn: str) -> dict[str, Commit]:
    """Commits as `d < b c`, separated by commas, the oldest first: d has the parents b and c."""
    found = {}
    for number, text in enumerate(drawn.split(",")):
        name, _, parents = text.partition("<")
        at = NOON + dt.timedelta(seconds=number)
        found[name.strip()] = Commit(name.strip(), "main", number + 1, tuple(parents.split()), at, "load")
    return found


def base(known: Mapping[str, Commit], ours: str, theirs: str, gone: str = "") -> MergeBase:
    ancestry = Ancestry(known, iter(()))
    return merge_base(
        ancestry, known[ours], known[theirs], lambda commit: commit.graph_commit_id not in gone.split()
    )


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        ("o, a < o, b < o", "o"),
        ("o, b < o, a < b", "b"),
        ("o, a < o, b < a", "a"),
        ("o, x < o, a < x, b < x", "x"),
        ("o, x < o, y < x, a < y, b < x", "x"),
        ("o, x < o, p < o, m < p x, a < m, b < x", "x"),
        ("o, x < o, y < o, m < x y, n < y x, a < m, b < n", "y"),
        ("o, x < o, y < o, m < x y, n < y x, b < n, a1 < m, a2 < a1, a < a2 x", "x"),
    ],
)
def test_the_best_common_ancestor(drawn: str, expected: str) -> None:
    known = commits(drawn)
    assert base(known, "a", "b").commit.graph_commit_id == expected
    assert base(known, "b", "a").commit.graph_commit_id == expected


def test_one_commit_is_its_own_base() -> None:
    assert base(commits("o, a < o"), "a", "a").commit.graph_commit_id == "a"


@pytest.mark.parametrize(
    ("drawn", "gone", "expected", "merges"),
    [
        ("o, x < o, p < o, q < o, m < p x, n < q x, a < m, b < n", "x", "o", "m n"),
        ("o, x < o, y < x, p < o, q < o, m < p x, n < q y, a < m, b < n", "x y", "o", "m"),
        ("o, x < o, y < o, m < x y, n < y x, a < m, b < n", "y", "x", "m"),
        ("o, x < o, a < x, b < x", "x", "o", ""),
    ],
)
def test_a_state_that_is_gone_is_no_base(drawn: str, gone: str, expected: str, merges: str) -> None:
    found = base(commits(drawn), "a", "b", gone)
    assert found.commit.graph_commit_id == expected
    assert [commit.graph_commit_id for commit in found.merges] == merges.split()


def test_without_any_state_that_can_be_read_there_is_no_base() -> None:
    with pytest.raises(HistoryReclaimed, match="gone from the store; bring single commits over"):
        base(commits("o, a < o, b < o"), "a", "b", gone="o")
    with pytest.raises(RequestError, match="commits a and b have no history in common"):
        base(commits("a, b"), "a", "b")


@pytest.mark.parametrize("history", [10, 10_000])
def test_the_cost_follows_the_distance(history: int) -> None:
    """Beyond the base nothing is looked at, and no archive is opened."""
    trunk = ", ".join(["c0", *(f"c{n} < c{n - 1}" for n in range(1, history))])
    known = commits(f"{trunk}, a < c{history - 1}, b1 < c{history - 1}, b < b1")
    looked_up: list[str] = []

    class Counted(Ancestry):
        def find(self, graph_commit_id: str) -> Commit | None:
            looked_up.append(graph_commit_id)
            return super().find(graph_commit_id)

    def no_place() -> Iterator[Mapping[str, Commit]]:
        raise AssertionError("the archive is not needed")
        yield {}

    merge_base(Counted(known, no_place()), known["a"], known["b"], lambda _: True)
    assert len(looked_up) <= 5


@st.composite
def histories(draw: st.DrawFn) -> dict[str, Commit]:
    """Any history, with clocks that do not agree."""
    found = {"0": Commit("0", "main", 1, (), NOON, "load")}
    for number in range(1, draw(st.integers(2, 14))):
        parents = draw(st.lists(st.integers(0, number - 1), min_size=1, max_size=2, unique=True))
        at = NOON + dt.timedelta(seconds=draw(st.integers(0, 20)))
        found[str(number)] = Commit(str(number), "main", number, tuple(map(str, parents)), at, "load")
    return found


def ancestors(known: Mapping[str, Commit], name: str) -> set[str]:
    return {name}.union(*(ancestors(known, parent) for parent in known[name].parents))


@given(histories(), st.data())
@settings(deadline=None)
def test_it_is_a_best_common_ancestor_of_any_history(known: dict[str, Commit], data: st.DataObject) -> None:
    ours, theirs = (data.draw(st.sampled_from(sorted(known))) for _ in range(2))
    gone = data.draw(st.sets(st.sampled_from(sorted(known.keys() - {"0"})), max_size=3))
    found = base(known, ours, theirs, " ".join(gone)).commit.graph_commit_id
    common = (ancestors(known, ours) & ancestors(known, theirs)) - gone
    assert found in common
    if len({commit.created_at for commit in known.values()}) == 1:
        assert not any(found in ancestors(known, other) for other in common - {found})


class TestDeletedBranches:
    """A fix is merged into two branches and deleted; then one of them is merged into the other."""

    @pytest.fixture
    def graph(self, memory_store: Store) -> Graph:
        graph = omnigraph.init(memory_store.uri, SCHEMA)
        graph.load(BASE, mode="append")
        for branch in ("fix", "b", "c"):
            graph.create_branch(branch)
        write(graph, "b", "add edge", 0)
        write(graph, "c", "set city", 0)
        write(graph, "fix", "set age", 7)
        write(graph, "fix", "add node", 7)
        return graph

    def merge_fix(self, graph: Graph, **options: Any) -> None:
        assert graph.merge("fix", "b").outcome == "merged"
        assert graph.merge("fix", "c", **options).outcome == "merged"
        graph.delete_branch("fix")

    def ages(self, graph: Graph, branch: str) -> dict[str, int]:
        rows = graph.query("query q() { match { $p: Person } return { $p.name, $p.age } }", branch=branch).rows
        return {row["p.name"]: row["p.age"] for row in rows if row["p.age"] != 30}

    def test_both_have_the_fix(self, graph: Graph) -> None:
        self.merge_fix(graph)
        assert merged(graph, "b", "c") == "merged"
        assert self.ages(graph, "c") == {"Alice": 7, "Eve": 7}
        assert merged(graph, "c", "b") == "fast_forward"
        assert len(graph.diff("b", "c")) == 0

    def test_a_further_change_of_one_side_is_taken(self, graph: Graph) -> None:
        self.merge_fix(graph)
        write(graph, "c", "set age", 8)
        assert merged(graph, "b", "c") == "merged"
        assert self.ages(graph, "c") == {"Alice": 8, "Eve": 7}

    @pytest.mark.parametrize(("source", "target"), [("b", "c"), ("c", "b")])
    def test_what_one_side_has_taken_back_stays_so(self, graph: Graph, source: str, target: str) -> None:
        """To the older base it looks as if that side had never had the fix."""
        self.merge_fix(graph)
        write(graph, "c", "set age", 30)
        graph.mutate('query q() { delete Person where name = "Eve" }', branch="c")
        assert merged(graph, source, target) == "merged"
        assert self.ages(graph, target) == {}

    def test_a_conflict_that_was_decided_stays_so(self, graph: Graph) -> None:
        graph.mutate('query q() { update Person set { age: 5 } where name = "Alice" }', branch="c")
        self.merge_fix(graph, resolve="ours")
        graph.mutate('query q() { update Person set { age: 30 } where name = "Alice" }', branch="c")
        assert merged(graph, "b", "c") == "merged"
        assert self.ages(graph, "c") == {"Eve": 7}

    def test_two_fixes_one_after_the_other(self, graph: Graph) -> None:
        for branch in ("b", "c"):
            graph.merge("fix", branch)
        write(graph, "fix", "set age", 9)
        self.merge_fix(graph)
        write(graph, "b", "set age", 7)
        assert merged(graph, "b", "c") == "merged"
        assert self.ages(graph, "c") == {"Alice": 7, "Eve": 7}

    def test_both_change_it_again(self, graph: Graph) -> None:
        self.merge_fix(graph)
        write(graph, "b", "set age", 8)
        write(graph, "c", "set age", 9)
        with pytest.raises(MergeConflicts) as raised:
            graph.merge("b", "c")
        (conflict,) = raised.value.conflicts
        assert conflict.base is not None
        assert (conflict.base["age"], conflict.base["city"]) == (7, None)

    def test_a_branch_of_the_same_name_is_another(self, graph: Graph) -> None:
        self.merge_fix(graph)
        graph.create_branch("fix")
        write(graph, "fix", "set age", 1)
        assert merged(graph, "b", "c") == "merged"


class Telling:
    """A random story in which a branch is merged into two others, told twice alike if need be."""

    def __init__(self, seed: int, store: Store) -> None:
        self.chance = random.Random(seed)
        self.graph = omnigraph.init(store.uri, SCHEMA)
        self.graph.load(BASE, mode="append")
        for branch in ("fix", "b", "c"):
            self.graph.create_branch(branch)
        for _ in range(self.chance.randrange(1, 3)):
            self.write("fix", "b", "c")
            for branch in ("b", "c"):
                side: Any = self.chance.choice(["ours", "theirs"])
                with contextlib.suppress(MergeConflicts):
                    self.graph.merge("fix", branch, resolve=side)
        self.write("b", "c")

    def write(self, *branches: str) -> None:
        for branch in branches:
            for _ in range(self.chance.randrange(3)):
                name, age = self.chance.choice(["Alice", "Bob", "Eve", "Fay"]), self.chance.randrange(29, 32)
                if self.chance.randrange(4):
                    person: Any = {"name": name, "age": age, "city": self.chance.choice(["Rome", "Oslo", None])}
                    self.graph.load([{"type": "Person", "data": person}], mode="merge", branch=branch)
                else:
                    self.graph.mutate(f'query q() {{ delete Person where name = "{name}" }}', branch=branch)


@pytest.mark.parametrize("seed", sampled(range(60), 1))
def test_a_merge_does_not_depend_on_the_branch_of_its_base(seed: int) -> None:
    """Deleted or not: without conflicts the same graph, else at least the same conflicts."""
    kept, deleted = Telling(seed, memory_store()).graph, Telling(seed, memory_store()).graph
    deleted.delete_branch("fix")
    plans = [graph.preview_merge("b", "c") for graph in (kept, deleted)]
    found = [{(c.table_key, c.id, c.kind) for c in plan.conflicts} for plan in plans]
    assert found[0] <= found[1]
    if not found[1]:
        for graph in (kept, deleted):
            graph.merge("b", "c")
        states = [content(graph, graph.snapshot("c"))["node:Person"] for graph in (kept, deleted)]
        assert states[0] == states[1]


def test_a_base_that_is_lost_is_no_matter_of_size(local_store: Store) -> None:
    """Also where a merge of that size would run by tasks."""
    omnigraph.init(local_store.uri, SCHEMA).load(BASE, mode="append")
    graph = omnigraph.open(local_store.uri, settings=Settings(bulk=BulkSettings(small_merge=0)))
    for branch in ("fix", "b", "c"):
        graph.create_branch(branch)
        write(graph, branch, {"fix": "set age", "b": "add edge", "c": "set city"}[branch], 7)
    for branch in ("b", "c"):
        graph.merge("fix", branch, engine="local")
    graph.delete_branch("fix")
    write(graph, "c", "set age", 30)
    assert graph.merge("b", "c", engine="local").outcome == "merged"
    found = graph.entity("Person", "Alice", branch="c")
    assert found is not None
    assert (found["age"], found["city"]) == (30, "Rome")


def test_a_source_that_moves_on_is_merged_as_it_was_read(memory_store: Store) -> None:
    """The base is that of the states that are compared, wherever the branches are by now."""
    graph = omnigraph.init(memory_store.uri, SCHEMA)
    graph.load(BASE, mode="append")
    graph.create_branch("dev")
    write(graph, "dev", "set age", 1)
    early = graph.snapshot("dev")
    write(graph, "dev", "set city", 0)
    graph.merge("dev")
    repository = graph._repository
    main = repository.branches.find("main")
    request = MergeRequest(repository.branches.find("dev"), main)
    plan, _ = compared(request, early, Base(repository, main, graph.snapshot()))
    assert plan.outcome == "already_up_to_date"
