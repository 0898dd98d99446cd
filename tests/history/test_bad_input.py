"""What cannot be done is refused with a fitting error, in Python and on the command line; nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import omnigraph as run
from tests.copies import Copies
from tests.history.truth import BASE, SCHEMA, write
from tests.sampling import sampled

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchNotFound,
    GraphClosed,
    HistoryReclaimed,
    InvalidArgument,
    MergeConflicts,
    OmniError,
    PreconditionFailed,
    ReadOnlyGraph,
    RequestError,
    SnapshotNotFound,
)

UNKNOWN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def make(place: Path) -> None:
    graph = omnigraph.init(place, SCHEMA)
    graph.load(BASE, mode="append")
    graph.create_branch("dev")
    graph.create_branch("gone")
    write(graph, "dev", "set age", 1)
    write(graph, "main", "set age", 2)
    write(graph, "gone", "set city", 0)


@pytest.fixture
def graph(copies: Copies, tmp_path: Path) -> Graph:
    """Main and dev disagree about Alice's age; a third branch was deleted."""
    return copies.graph(make, tmp_path / "g")


def first(graph: Graph) -> str:
    return graph.commits()[-1].graph_commit_id


def on_a_deleted_branch(graph: Graph) -> str:
    commit = graph.commits("gone")[0].graph_commit_id
    if "gone" in {branch.name for branch in graph.branches()}:
        graph.delete_branch("gone")
    return commit


def changed_since(graph: Graph) -> str:
    write(graph, "dev", "set age", 5)
    return graph.commits("dev")[1].graph_commit_id


Attempt = Callable[[Graph], object]
ALICE, BOB = ("node:Person", "Alice"), ("node:Person", "Bob")

REFUSED: dict[str, tuple[Attempt, type[OmniError], str]] = {
    "diff of an unknown ref": (lambda g: g.diff("nope"), BranchNotFound, "there is no branch 'nope'"),
    "diff with an unknown ref": (lambda g: g.diff("main", "nope"), BranchNotFound, "'nope'"),
    "diff of an unknown commit": (lambda g: g.diff(UNKNOWN), BranchNotFound, UNKNOWN),
    "diff of a manifest version to come": (lambda g: g.diff(999), SnapshotNotFound, "999"),
    "diff of something else": (lambda g: g.diff(None), InvalidArgument, "ref"),  # type: ignore[arg-type]
    "merge of an unknown branch": (lambda g: g.merge("nope"), BranchNotFound, "there is no branch 'nope'"),
    "merge into an unknown branch": (lambda g: g.merge("dev", "nope"), BranchNotFound, "'nope'"),
    "merge of a commit": (lambda g: g.merge(first(g)), BranchNotFound, "there is no branch '01"),
    "merge into itself": (lambda g: g.merge("dev", "dev"), InvalidArgument, "cannot be merged into itself"),
    "merge into itself by default": (lambda g: g.branch("dev").merge("dev"), InvalidArgument, "into itself"),
    "preview into itself": (lambda g: g.preview_merge("main"), InvalidArgument, "into itself"),
    "merge of nothing": (lambda g: g.merge(None), InvalidArgument, "source"),  # type: ignore[arg-type]
    "merge with conflicts": (lambda g: g.merge("dev"), MergeConflicts, "both branches changed age of 'Alice'"),
    "merge with a choice too many": (
        lambda g: g.merge("dev", choices={ALICE: "ours", BOB: "ours"}),
        InvalidArgument,
        "node:Person 'Bob' is not in conflict; leave it out",
    ),
    "merge with a choice about an unknown type": (
        lambda g: g.merge("dev", choices={("node:Robot", "R2"): "ours"}, resolve="ours"),
        InvalidArgument,
        "node:Robot 'R2' is not in conflict",
    ),
    "merge with a choice without a type": (
        lambda g: g.merge("dev", choices={"Alice": "ours"}),  # type: ignore[dict-item]
        InvalidArgument,
        "'Alice' is no entity; give its table key and id",
    ),
    "merge with choices that are none": (
        lambda g: g.merge("dev", choices=["Alice"]),  # type: ignore[arg-type]
        InvalidArgument,
        "choices",
    ),
    "merge with a choice of no side": (
        lambda g: g.merge("dev", choices={ALICE: "mine"}),  # type: ignore[dict-item]
        InvalidArgument,
        "'mine' is no side; there are ours and theirs",
    ),
    "merge for no side": (
        lambda g: g.merge("dev", resolve="mine"),  # type: ignore[arg-type]
        InvalidArgument,
        "'mine' is no side",
    ),
    "merge after the target moved": (
        lambda g: g.merge("dev", resolve="ours", if_commit=first(g)),
        PreconditionFailed,
        "main",
    ),
    "preview after the target moved": (
        lambda g: g.preview_merge("dev", if_commit=UNKNOWN),
        PreconditionFailed,
        UNKNOWN,
    ),
    "merge without the right to write": (
        lambda g: omnigraph.open(g.address, read_only=True).merge("dev", resolve="ours"),
        ReadOnlyGraph,
        "read-only",
    ),
    "merge with a closed graph": (lambda g: closed(g).merge("dev"), GraphClosed, "closed"),
    "merge with a long message": (lambda g: g.merge("dev", message="x" * 10**6), InvalidArgument, "message"),
    "revert of the first commit": (lambda g: g.revert(first(g)), InvalidArgument, "created the graph"),
    "cherry-pick of the first commit": (lambda g: g.cherry_pick(first(g)), InvalidArgument, "created the graph"),
    "revert of an unknown commit": (lambda g: g.revert(UNKNOWN), SnapshotNotFound, UNKNOWN),
    "revert of a branch": (lambda g: g.revert("dev"), SnapshotNotFound, "dev"),
    "revert of nothing": (lambda g: g.revert(None), InvalidArgument, "graph_commit_id"),  # type: ignore[arg-type]
    "revert on an unknown branch": (lambda g: g.revert(UNKNOWN, "nope"), BranchNotFound, "nope"),
    "revert of a commit that is changed since": (
        lambda g: g.revert(changed_since(g), "dev"),
        MergeConflicts,
        "both branches changed age",
    ),
    "revert with a choice too many": (
        lambda g: g.revert(g.commits()[0].graph_commit_id, choices={BOB: "ours"}),
        InvalidArgument,
        "not in conflict",
    ),
    "cherry-pick of a commit of a deleted branch": (
        lambda g: g.cherry_pick(on_a_deleted_branch(g)),
        HistoryReclaimed,
        "deleted branch 'gone'",
    ),
    "reset to an unknown commit": (lambda g: g.reset(UNKNOWN), SnapshotNotFound, UNKNOWN),
    "reset after the branch moved": (lambda g: g.reset(first(g), if_commit=UNKNOWN), PreconditionFailed, "main"),
    "optimize of an unknown type": (lambda g: g.optimize(types=["Persn"]), RequestError, "did you mean"),
    "optimize of an unknown branch": (lambda g: g.optimize(branch="nope"), BranchNotFound, "nope"),
}


def closed(graph: Graph) -> Graph:
    other = omnigraph.open(graph.address)
    other.close()
    return other


def written(graph: Graph) -> dict[str, Any]:
    """Where each branch stands; branches that a case writes to or deletes itself are left out."""
    return {
        branch.name: (graph.snapshot(branch.name).manifest_version, graph.commits(branch.name)[0].graph_commit_id)
        for branch in graph.branches()
        if branch.name == "main"
    }


@pytest.mark.parametrize("case", REFUSED)
def test_in_python(graph: Graph, case: str) -> None:
    attempt, error, text = REFUSED[case]
    before = written(graph)
    with pytest.raises(error, match=text) as raised:
        attempt(graph)
    assert raised.value.outcome == "nothing_written"
    assert written(omnigraph.open(graph.address)) == before


COMMANDS: dict[str, tuple[str, int, str]] = {
    "diff of an unknown ref": ("diff nope", 1, "there is no branch 'nope'"),
    "merge of an unknown branch": ("branch merge nope", 1, "there is no branch 'nope'"),
    "merge into an unknown branch": ("branch merge dev --into nope", 1, "there is no branch 'nope'"),
    "merge into itself": ("branch merge dev --into dev", 1, "cannot be merged into itself"),
    "merge with conflicts": ("branch merge dev", 1, "both branches changed age of 'Alice'"),
    "merge with a choice too many": (
        "branch merge dev --choose node:Person/Alice=ours --choose node:Person/Bob=ours",
        1,
        "node:Person 'Bob' is not in conflict",
    ),
    "merge with a choice of no side": ("branch merge dev --choose node:Person/Alice=mine", 2, "mine"),
    "merge after the target moved": (f"branch merge dev --ours --if-commit {UNKNOWN}", 4, "main"),
    "revert of the first commit": ("revert {first}", 1, "created the graph"),
    "revert of an unknown commit": (f"revert {UNKNOWN}", 1, UNKNOWN),
    "cherry-pick of an unknown commit": (f"cherry-pick {UNKNOWN}", 1, UNKNOWN),
    "reset to an unknown commit": (f"reset --to {UNKNOWN}", 1, UNKNOWN),
    "optimize of an unknown type": ("optimize --type Persn", 1, "did you mean `Person`"),
}


@pytest.mark.parametrize(("case", "as_json"), sampled(product(COMMANDS, [(), ("--json",)]), 9))
def test_on_the_command_line(graph: Graph, case: str, as_json: tuple[str, ...]) -> None:
    command, code, text = COMMANDS[case]
    before = written(graph)
    ran = run(*command.format(first=first(graph)).split(), "--store", graph.address, *as_json)
    assert ran.code == code, (ran.out, ran.err)
    if as_json:
        assert text in ran.json["error"]
    else:
        assert text in ran.err
    assert written(omnigraph.open(graph.address)) == before
