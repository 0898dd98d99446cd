"""Plans of merges: stored, shown, and applied later exactly as they are, or refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import omnigraph as run
from tests.copies import Copies
from tests.history.test_diff import content
from tests.history.truth import BASE, SCHEMA, write
from tests.stores import Store

import omnigraph
from omnigraph import AsyncGraph, Graph, MergePlan
from omnigraph.errors import (
    BranchNotFound,
    InvalidArgument,
    MergeConflicts,
    PreconditionFailed,
    ReadOnlyGraph,
)


def make(place: Path) -> None:
    graph = omnigraph.init(place, SCHEMA)
    graph.load(BASE, mode="append")
    graph.create_branch("dev")
    write(graph, "dev", "set age", 1)
    write(graph, "dev", "add node", 5)
    write(graph, "main", "set age", 2)


@pytest.fixture
def graph(copies: Copies, tmp_path: Path) -> Graph:
    """Two branches that disagree about Alice's age."""
    return copies.graph(make, tmp_path / "g")


def stored(plan: MergePlan) -> dict[str, Any]:
    """A plan as another process reads it from a file."""
    found: dict[str, Any] = json.loads(json.dumps(plan.as_json()))
    return found


OPTIONS: list[dict[str, Any]] = [
    {"resolve": "theirs"},
    {"resolve": "ours", "squash": True},
    {"choices": {("node:Person", "Alice"): "theirs"}},
    {"resolve": "theirs", "strict": True},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_plan_is_applied_as_the_merge_would_have_been(graph: Graph, options: Any) -> None:
    plan = MergePlan.from_json(stored(graph.preview_merge("dev", **options)))
    graph.create_branch("other")
    graph.merge("dev", "other", **options)
    done = omnigraph.open(graph.address).apply_merge(plan, actor="eve", message="reviewed")
    assert done.commit is not None
    assert (done.plan, done.commit.actor_id, done.commit.message) == (plan, "eve", "reviewed")
    assert len(done.commit.parents) == (1 if options.get("squash") else 2)
    assert content(graph, graph.snapshot()) == content(graph, graph.snapshot("other"))


def test_a_plan_is_applied_once(graph: Graph) -> None:
    plan = graph.preview_merge("dev", resolve="ours")
    graph.apply_merge(plan)
    with pytest.raises(PreconditionFailed):
        graph.apply_merge(plan)
    nothing = graph.preview_merge("dev")
    assert (nothing.outcome, graph.apply_merge(nothing).commit) == ("already_up_to_date", None)


@pytest.mark.parametrize("branch", ["dev", "main"])
def test_a_branch_that_has_moved_is_refused(graph: Graph, branch: str) -> None:
    plan = graph.preview_merge("dev", resolve="ours")
    write(graph, branch, "set city", 0)
    before = content(graph, graph.snapshot())
    with pytest.raises(PreconditionFailed) as raised:
        graph.apply_merge(plan)
    assert raised.value.branch == branch
    assert raised.value.expected == (plan.source_commit if branch == "dev" else plan.target_commit)
    assert content(graph, graph.snapshot()) == before


def test_a_plan_with_conflicts_is_not_applied(graph: Graph) -> None:
    plan = MergePlan.from_json(stored(graph.preview_merge("dev")))
    with pytest.raises(MergeConflicts) as raised:
        graph.apply_merge(plan)
    (conflict,) = raised.value.conflicts
    assert conflict.base is not None
    assert conflict.ours is not None
    assert conflict.theirs is not None
    assert [conflict.base["age"], conflict.ours["age"], conflict.theirs["age"]] == [30, 2, 1]


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "another side": lambda plan: plan.update(resolve="theirs"),
    "another choice": lambda plan: plan["choices"].append(
        {"table_key": "node:Person", "id": "Bob", "side": "ours"}
    ),
    "another commit": lambda plan: plan.update(target_commit="01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    "another branch": lambda plan: plan.update(target="other"),
    "another count": lambda plan: plan["changes"]["node:Person"].update(insert=7),
    "another digest": lambda plan: plan.update(digest="0" * 64),
    "something more": lambda plan: plan.update(note="approved"),
    "no outcome": lambda plan: plan.pop("outcome"),
    "no digest": lambda plan: plan.pop("digest"),
    "a side that is none": lambda plan: plan.update(resolve="mine"),
    "choices that are none": lambda plan: plan.update(choices=3),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_plan_that_was_changed_is_refused(graph: Graph, edit: str) -> None:
    plan = stored(graph.preview_merge("dev", resolve="ours"))
    assert MergePlan.from_json(plan).digest == plan["digest"]
    EDITS[edit](plan)
    with pytest.raises(InvalidArgument):
        MergePlan.from_json(plan)


@pytest.mark.parametrize("content", [[], None, 3, "plan", {}])
def test_what_is_no_plan_is_refused(content: Any) -> None:
    with pytest.raises(InvalidArgument, match="it is not the plan of a merge"):
        MergePlan.from_json(content)


def test_a_merge_that_comes_to_something_else_is_refused(graph: Graph) -> None:
    """The base of the plan was on a branch that is deleted by now."""
    for branch in ("fix", "a", "b"):
        graph.create_branch(branch)
    write(graph, "fix", "set city", 0)
    for branch in ("a", "b"):
        write(graph, branch, "add edge" if branch == "a" else "remove edge", 0)
        graph.merge("fix", branch)
    plan = graph.preview_merge("a", "b")
    graph.delete_branch("fix")
    with pytest.raises(InvalidArgument, match="would come to something else by now; preview it again"):
        graph.apply_merge(plan)
    assert graph.apply_merge(graph.preview_merge("a", "b")).outcome == "merged"


def test_refusals(graph: Graph) -> None:
    plan = graph.preview_merge("dev", resolve="ours")
    with pytest.raises(InvalidArgument, match="it is a MergePlan, not dict; use"):
        graph.apply_merge(plan.as_json())  # type: ignore[arg-type]
    with pytest.raises(ReadOnlyGraph):
        omnigraph.open(graph.address, read_only=True).apply_merge(plan)
    graph.delete_branch("dev")
    with pytest.raises(BranchNotFound):
        graph.apply_merge(plan)


def test_rows_of_any_type_can_be_stored(local_store: Store) -> None:
    schema = (
        "node T { k: String @key  at: DateTime?  day: Date?  x: F64?  v: Vector(2)?  b: Blob?  tags: [String]? }"
    )
    graph = omnigraph.init(local_store.uri, schema)
    first: dict[str, Any] = {"k": "a", "at": "2026-05-01T12:00:00Z", "day": "2026-05-01", "b": "base64:AAEC"}
    graph.load([{"type": "T", "data": first}], mode="append")
    graph.create_branch("dev")
    for branch, number in (("dev", 1.5), ("main", 2.5)):
        data = {**first, "x": number, "v": [number, 0], "tags": [branch]}
        graph.load([{"type": "T", "data": data}], mode="merge", branch=branch)
    plan = stored(graph.preview_merge("dev"))
    assert MergePlan.from_json(plan).as_json() == plan
    (conflict,) = plan["conflicts"]
    assert (conflict["base"]["b"], conflict["ours"]["x"], conflict["theirs"]["tags"]) == (
        "base64:AAEC",
        2.5,
        ["dev"],
    )


def test_from_an_event_loop(graph: Graph) -> None:
    async def scenario() -> str:
        async with AsyncGraph(graph) as each:
            plan = await each.preview_merge("dev", resolve="ours")
            return (await each.apply_merge(plan)).outcome

    assert asyncio.run(scenario()) == "merged"


class TestCommand:
    def test_store_and_apply(self, graph: Graph, tmp_path: Path) -> None:
        merge, file = ("branch", "merge", "--store", graph.address), str(tmp_path / "plan.json")
        shown = run(*merge, "dev", "--theirs", "--preview", "--out", file, "--json")
        assert shown.json == json.loads(Path(file).read_text(encoding="utf-8"))
        done = run(*merge, "--apply", file, "-m", "reviewed", "--delete-branch")
        assert (done.code, done.out.splitlines()[0].startswith("merged  dev into main as ")) == (0, True)
        assert graph.commits()[0].message == "reviewed"
        assert [branch.name for branch in graph.branches()] == ["main"]

    def test_a_branch_that_has_moved_is_exit_4(self, graph: Graph, tmp_path: Path) -> None:
        merge, file = ("branch", "merge", "--store", graph.address), tmp_path / "plan.json"
        assert run(*merge, "dev", "--ours", "--preview", "--out", str(file)).code == 0
        write(graph, "dev", "set city", 0)
        late = run(*merge, "--apply", str(file), "--json")
        assert (late.code, late.json["precondition_failure"]["actual"]) == (
            4,
            graph.commits("dev")[0].graph_commit_id,
        )
        file.write_text(file.read_text(encoding="utf-8").replace('"ours"', '"theirs"'), encoding="utf-8")
        edited = run(*merge, "--apply", str(file))
        assert (edited.code, "does not fit its digest" in edited.err.replace("\n", " ")) == (1, True)
        file.write_text("{", encoding="utf-8")
        assert "is not JSON" in run(*merge, "--apply", str(file)).err

    def test_conflicts_are_a_table(self, graph: Graph) -> None:
        write(graph, "dev", "remove node", 0)
        graph.mutate('query q() { insert Person { name: "Eve", age: 7 } }')
        shown = run("branch", "merge", "dev", "--store", graph.address, "--preview").out.splitlines()
        at = next(number for number, line in enumerate(shown) if line.startswith("conflict\t"))
        rows = [line.split("\t") for line in shown[at:]]
        assert rows[0] == ["conflict", "table", "id", "what", "property", "base", "ours", "theirs"]
        assert [row[:1] + row[2:3] + row[4:] for row in rows[1:]] == [
            ["delete_vs_update", "Alice", "age", "30", "2", "absent"],
            ["divergent_insert", "Eve", "age", "absent", "7", "5"],
        ]

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ((), "which branch?"),
            (("dev", "--out", "x.json"), "add --preview"),
            (("dev", "--apply", __file__), "takes all of that"),
            (("--ours", "--apply", __file__), "takes all of that"),
            (("--into", "dev", "--apply", __file__), "takes all of that"),
            (("--apply", "there-is-none.json"), "does not exist"),
            (("dev", "--preview", "--out", "/no/such/folder/x.json"), "cannot be written"),
        ],
    )
    def test_wrong_options(self, graph: Graph, options: tuple[str, ...], reason: str) -> None:
        ran = run("branch", "merge", "--store", graph.address, *options)
        assert (ran.code, reason in ran.err.replace("\n", " ")) == (2, True), ran.err
