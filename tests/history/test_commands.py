"""The commands of history, as a user types them."""

from __future__ import annotations

import json

import pytest
from tests.cli.command import omnigraph as run
from tests.history.truth import BASE, SCHEMA, write
from tests.stores import Store

import omnigraph
from omnigraph import Graph


@pytest.fixture
def graph(local_store: Store) -> Graph:
    graph = omnigraph.init(local_store.uri, SCHEMA)
    graph.load(BASE, mode="append")
    graph.create_branch("dev")
    write(graph, "dev", "set age", 1)
    write(graph, "dev", "add node", 5)
    return graph


def test_diff(graph: Graph) -> None:
    shown = run("diff", "main", "dev", "--store", graph.address)
    assert shown.out.splitlines() == [
        "~ node:Person Alice  age: 30 → 1",
        "+ node:Person Eve",
        "1 insert, 1 update, 0 delete",
    ]
    stat = run("diff", "main", "dev", "--store", graph.address, "--stat")
    assert stat.out.splitlines()[1] == "node:Person\t1\t1\t0"
    lines = run("diff", "main", "dev", "--store", graph.address, "--jsonl", "--op", "update")
    (change,) = map(json.loads, lines.out.splitlines())
    assert (change["op"], change["id"], change["changed"]) == ("update", "Alice", ["age"])
    assert run("diff", "1", "dev", "--store", graph.address, "--json").json["stat"]["total"]["insert"] == 6
    assert "there is no branch 'nope'" in run("diff", "nope", "--store", graph.address).err


def test_merge(graph: Graph) -> None:
    write(graph, "main", "set age", 2)
    merge = ("branch", "merge", "dev", "--store", graph.address)
    preview = run(*merge, "--preview")
    assert "divergent_update\tnode:Person\tAlice\tboth branches changed age of 'Alice'" in preview.out
    refused = run(*merge, "--json")
    assert (refused.code, refused.json["merge_conflicts"][0]["kind"]) == (1, "divergent_update")
    late = run(*merge, "--theirs", "--if-commit", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert late.code == 4
    done = run(*merge, "--choose", "node:Person/Alice=theirs", "--delete-branch", "-m", "reviewed")
    assert (done.code, done.out.splitlines()[0].startswith("merged  dev into main as ")) == (0, True)
    assert [branch.name for branch in graph.branches()] == ["main"]
    assert graph.commits()[0].message == "reviewed"


def test_undo(graph: Graph) -> None:
    picked = graph.commits("dev")[0].graph_commit_id
    before = graph.commits()[0].graph_commit_id
    done = run("cherry-pick", picked, "--store", graph.address, "--json")
    assert done.json["changes"] == {"node:Person": {"insert": 1, "update": 0, "delete": 0}}
    made = done.json["commit"]["graph_commit_id"]
    assert run("revert", made, "--store", graph.address).out.startswith(f"revert {made} on main as ")
    assert graph.entity("Person", "Eve") is None
    both = [commit.graph_commit_id for commit in graph.commits(limit=2)]
    several = run("revert", *reversed(both), "--store", graph.address, "--json")
    assert (several.code, several.json["of"], several.json["commit"]) == (0, both, None)
    write(graph, "main", "set city", 0)
    assert run("reset", "--to", before, "--store", graph.address).code == 0
    assert len(graph.diff(before)) == 0
    assert run("reset", "--to", before, "--store", graph.address).out.startswith("nothing to change")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--ours", "--theirs"), "give --ours or --theirs, not both"),
        (("--choose", "Alice=ours"), "is not written TABLE/ID=ours"),
    ],
)
def test_wrong_options(graph: Graph, options: tuple[str, ...], reason: str) -> None:
    ran = run("branch", "merge", "dev", "--store", graph.address, *options)
    assert (ran.code, reason in ran.err) == (2, True)
