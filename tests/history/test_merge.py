"""Three-way merges: histories, decisions, refusals. `test_truth_table.py` has every pair of operations."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.history.test_diff import content
from tests.history.truth import BASE, SCHEMA, merged, write
from tests.recovery.racers import once
from tests.stores import Store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import BranchNotFound, InvalidArgument, ManifestConflict, MergeConflicts, PreconditionFailed
from omnigraph.storage.tables import TableRef


@pytest.fixture
def graph(memory_store: Store) -> Graph:
    graph = omnigraph.init(memory_store.uri, SCHEMA)
    graph.load(BASE, mode="append")
    return graph


def test_equal_changes_are_no_conflict(graph: Graph) -> None:
    for branch in ("a", "b"):
        graph.create_branch(branch)
        write(graph, branch, "set age", 7)
        write(graph, branch, "add node", 7)
        write(graph, branch, "remove edge", 0)
    assert merged(graph, "a", "b") == "merged"
    assert len(graph.diff("a", "b")) == 0


def test_properties_merge_and_strict_merges_rows(graph: Graph) -> None:
    graph.create_branch("a")
    graph.create_branch("b")
    write(graph, "a", "set age", 7)
    write(graph, "b", "set city", 0)
    assert merged(graph, "a", "b", strict=True) == "divergent_update"
    assert merged(graph, "a", "b") == "merged"
    found = graph.entity("Person", "Alice", branch="b")
    assert found is not None
    assert (found["age"], found["city"]) == (7, "Rome")


def test_values_of_every_shape(memory_store: Store) -> None:
    """Vectors, lists and blobs are taken from the side that changed them, a number from the other side."""
    schema = "node Item { name: String @key  n: I32?  tags: [String]?  spot: Vector(2)?  raw: Blob? }"
    graph = omnigraph.init(memory_store.uri, schema)
    graph.load([{"type": "Item", "data": {"name": name, "raw": "base64:AA=="}} for name in "ab"], mode="append")
    graph.create_branch("dev")
    wanted = {"name": "a", "n": 1, "tags": ["x"], "spot": [0.0, 1.0], "raw": "base64:AAEC"}
    graph.load([{"type": "Item", "data": {**wanted, "n": None}}], mode="merge", branch="dev")
    graph.mutate('query q() { update Item set { n: 1 } where name = "a" }')
    assert merged(graph, "dev", "main") == "merged"
    assert graph.entity("Item", "a") == {"id": "a", **wanted, "raw": b"\x00\x01\x02"}


RULES = """
node Person { name: String @key  badge: I32? @unique  row: I32?  seat: I32?  @unique(row, seat) }
edge Owns: Person -> Person @card(0..1)
"""
BROKEN = {
    "a value twice": (
        'update Person set { badge: 7 } where name = "Ada"',
        'update Person set { badge: 7 } where name = "Bo"',
        "unique_violation",
    ),
    "a pair of values twice, each from one side": (
        'update Person set { row: 1 } where name = "Ada"',
        'update Person set { seat: 1 } where name = "Ada"',
        "unique_violation",
    ),
    "an edge too many": (
        'insert Owns { from: "Ada", to: "Bo" }',
        'insert Owns { from: "Ada", to: "Cy" }',
        "cardinality_violation",
    ),
    "an edge to a node that is gone": (
        'insert Owns { from: "Ada", to: "Bo" }',
        'delete Person where name = "Bo"',
        "orphan_edge",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("target", ["main", "dev"])
def test_rules_that_hold_on_each_side_and_not_together(case: str, target: str, memory_store: Store) -> None:
    graph = omnigraph.init(memory_store.uri, RULES)
    seats = {"Ada": (0, 0), "Bo": (1, 1), "Cy": (2, 2)}
    people = [{"name": name, "row": row, "seat": seat} for name, (row, seat) in seats.items()]
    graph.load([{"type": "Person", "data": data} for data in people], mode="append")
    graph.create_branch("dev")
    *writes, kind = BROKEN[case]
    for branch, statement in zip(("main", "dev"), writes, strict=True):
        graph.mutate(f"query q() {{ {statement} }}", branch=branch)
    source = "dev" if target == "main" else "main"
    assert merged(graph, source, target) == kind
    assert merged(graph, source, target, resolve="theirs") == kind


class TestHistory:
    def test_a_merge_has_two_parents_and_is_not_repeated(self, graph: Graph) -> None:
        graph.create_branch("dev")
        write(graph, "dev", "add node", 1)
        write(graph, "main", "set age", 2)
        heads = [graph.commits(branch)[0].graph_commit_id for branch in ("main", "dev")]
        done = graph.merge("dev", actor="ada", message="reviewed")
        assert done.commit is not None
        assert (list(done.commit.parents), done.commit.kind) == (heads, "merge")
        assert (done.commit.actor_id, done.commit.message) == ("ada", "reviewed")
        assert merged(graph, "dev", "main") == "already_up_to_date"
        assert {"Eve"} <= content(graph, graph.snapshot())["node:Person"].keys()

    def test_back_and_forth(self, graph: Graph) -> None:
        """What came from the other side is no change of one's own."""
        graph.create_branch("dev")
        write(graph, "dev", "set age", 1)
        assert merged(graph, "dev", "main") == "fast_forward"
        write(graph, "main", "set age", 2)
        assert merged(graph, "main", "dev") == "fast_forward"
        write(graph, "dev", "set city", 0)
        write(graph, "main", "set age", 3)
        assert merged(graph, "dev", "main") == "merged"
        assert merged(graph, "main", "dev") == "fast_forward"
        assert len(graph.diff("main", "dev")) == 0

    def test_another_process_merges_more_of_the_branch_meanwhile(self, local_store: Store) -> None:
        """What is merged was captured before; the newer state of the branch that came in since is not undone."""
        graph = omnigraph.init(local_store.uri, SCHEMA)
        graph.load(BASE, mode="append")
        graph.create_branch("dev")
        write(graph, "dev", "set age", 1)
        other = omnigraph.open(local_store.uri)

        def merge_more() -> None:
            write(other, "dev", "set city", 0)
            assert other.merge("dev").outcome == "fast_forward"

        with failpoints.armed("recovery.sidecar_list", once(merge_more)):
            assert graph.merge("dev").outcome == "already_up_to_date"
        assert len(graph.diff("main", "dev")) == 0

    def test_another_process_writes_meanwhile(self, local_store: Store) -> None:
        """Then what was compared is out of date; nothing is written, and merging again takes both."""
        graph = omnigraph.init(local_store.uri, SCHEMA)
        graph.load(BASE, mode="append")
        graph.create_branch("dev")
        write(graph, "dev", "set age", 1)
        other = omnigraph.open(local_store.uri)
        meanwhile = once(lambda: write(other, "main", "set city", 0))
        with failpoints.armed("write.after_stage", meanwhile), pytest.raises(ManifestConflict):
            graph.merge("dev")
        assert graph.merge("dev").outcome == "merged"
        assert [change.changed for change in graph.diff("dev", "main")] == [("city",)]

    def test_another_process_deletes_the_branch_meanwhile(
        self, local_store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        graph = omnigraph.init(local_store.uri, SCHEMA)
        graph.load(BASE, mode="append")
        graph.create_branch("a")
        write(graph, "a", "set age", 7)
        other = omnigraph.open(local_store.uri)
        tables = other._repository.tables
        opened, delete = tables.open, once(lambda: graph.delete_branch("a"))

        def deleted_first(ref: TableRef) -> Any:
            if ref.branch is not None and ref.location.startswith("nodes/"):
                delete()
            return opened(ref)

        monkeypatch.setattr(tables, "open", deleted_first)
        with pytest.raises(BranchNotFound, match="a"):
            other.merge("a")

    def test_criss_cross(self, graph: Graph) -> None:
        """Each side merges the other's older state, so that there are two merge bases."""
        graph.create_branch("a")
        graph.create_branch("b")
        write(graph, "a", "set age", 1)
        write(graph, "b", "set city", 0)
        graph.create_branch("a1", "a")
        assert merged(graph, "b", "a") == "merged"
        assert merged(graph, "a1", "b") == "merged"
        write(graph, "a", "add node", 1)
        write(graph, "b", "add edge", 0)
        assert merged(graph, "a", "b") == "merged"
        assert merged(graph, "b", "a") == "fast_forward"
        assert len(graph.diff("a", "b")) == 0

    def test_squash_forgets_the_branch(self, graph: Graph) -> None:
        graph.create_branch("dev")
        write(graph, "dev", "add node", 1)
        done = graph.merge("dev", squash=True)
        assert done.commit is not None
        assert len(done.commit.parents) == 1


class TestDeciding:
    @pytest.fixture
    def sides(self, graph: Graph) -> Graph:
        graph.create_branch("dev")
        write(graph, "dev", "set age", 1)
        write(graph, "main", "set age", 2)
        return graph

    @pytest.mark.parametrize(("side", "age"), [("ours", 2), ("theirs", 1)])
    def test_for_one_side(self, sides: Graph, side: Any, age: int) -> None:
        assert merged(sides, "dev", "main", resolve=side) == "merged"
        found = sides.entity("Person", "Alice")
        assert found is not None
        assert found["age"] == age

    def test_for_one_entity(self, sides: Graph) -> None:
        with pytest.raises(InvalidArgument, match="node:Person 'Bob' is not in conflict"):
            sides.merge("dev", choices={("node:Person", "Bob"): "ours", ("node:Person", "Alice"): "ours"})
        assert sides.merge("dev", choices={("node:Person", "Alice"): "theirs"}).outcome == "merged"

    def test_conflicts_show_all_three_sides(self, sides: Graph) -> None:
        with pytest.raises(MergeConflicts) as raised:
            sides.merge("dev")
        (conflict,) = raised.value.conflicts
        images = [image["age"] for image in (conflict.base, conflict.ours, conflict.theirs) if image is not None]
        assert (images, conflict.properties) == ([30, 2, 1], ("age",))
        assert "both branches changed age of 'Alice'" in str(raised.value)

    def test_only_if_the_target_is_where_it_was_previewed(self, sides: Graph) -> None:
        plan = sides.preview_merge("dev", resolve="ours")
        write(sides, "main", "set city", 0)
        with pytest.raises(PreconditionFailed):
            sides.merge("dev", resolve="ours", if_commit=plan.target_commit)

    def test_refusals(self, sides: Graph) -> None:
        with pytest.raises(InvalidArgument, match="cannot be merged into itself"):
            sides.merge("main")
        with pytest.raises(BranchNotFound):
            sides.merge("nope")
        with pytest.raises(InvalidArgument, match="'mine' is no side"):
            sides.merge("dev", resolve="mine")  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(6))
def test_random_histories(seed: int, memory_store: Store) -> None:
    """Whatever was written: each property of a merged graph is one side's, and a merge leaves nothing to merge."""
    chance = random.Random(seed)
    graph = omnigraph.init(memory_store.uri, SCHEMA)
    graph.load(BASE, mode="append")
    branches = ["main"]
    for step in range(20):
        branch = chance.choice(branches)
        name = chance.choice(["Alice", "Bob", "Carol", "Dan", "Eve", "Fay"])
        match chance.randrange(6):
            case 0 if len(branches) < 4:
                branches.append(f"b{step}")
                graph.create_branch(branches[-1], branch)
            case 1:
                graph.mutate(f'query q() {{ delete Person where name = "{name}" }}', branch=branch)
            case 2:
                source = chance.choice(branches)
                if source != branch:
                    before = content(graph, graph.snapshot(branch))
                    theirs = content(graph, graph.snapshot(source))
                    side: Any = chance.choice(["ours", "theirs"])
                    try:
                        graph.merge(source, branch, resolve=side)
                    except MergeConflicts:
                        assert content(graph, graph.snapshot(branch)) == before
                        continue
                    after = content(graph, graph.snapshot(branch))
                    for key, rows in after.items():
                        for entity_id, row in rows.items():
                            sides = (before[key].get(entity_id), theirs[key].get(entity_id))
                            assert all(any(s is not None and s[c] == row[c] for s in sides) for c in row)
                    assert graph.merge(source, branch).outcome == "already_up_to_date"
            case _:
                person = {"type": "Person", "data": {"name": name, "age": chance.randrange(4)}}
                graph.load([person], mode="merge", branch=branch)
