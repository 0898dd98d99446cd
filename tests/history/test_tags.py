"""Tags: names for commits, which keep their states."""

from __future__ import annotations

import asyncio
import io
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import omnigraph as run
from tests.history.truth import BASE, SCHEMA, write
from tests.stores import Store

import omnigraph
from omnigraph import AsyncGraph, Graph
from omnigraph.errors import (
    BranchNotFound,
    BranchTagged,
    InvalidArgument,
    InvalidBranchName,
    InvalidTagName,
    ObjectDamaged,
    ReadOnlyGraph,
    RequestError,
    SnapshotNotFound,
    TagExists,
    TagNotFound,
)


@pytest.fixture
def graph(local_store: Store) -> Graph:
    graph = omnigraph.init(local_store.uri, SCHEMA)
    graph.load(BASE, mode="append")
    return graph


def head(graph: Graph, branch: str = "main") -> str:
    return graph.commits(branch)[0].graph_commit_id


class TestATag:
    def test_names_the_newest_commit(self, graph: Graph) -> None:
        tag = graph.tag("v1", actor="ada")
        write(graph, "main", "add node", 1)
        assert (tag.name, tag.branch, tag.creator) == ("v1", "main", "ada")
        assert tag.graph_commit_id == graph.commits()[1].graph_commit_id
        assert omnigraph.open(graph.address).tags() == [tag]

    def test_names_any_state(self, graph: Graph) -> None:
        graph.create_branch("dev")
        first = graph.snapshot()
        write(graph, "dev", "add node", 1)
        states: dict[str, Any] = {"a": head(graph), "b": "dev", "c": 1, "d": first, "e": "a"}
        commits = {name: graph.tag(name, at).graph_commit_id for name, at in states.items()}
        assert commits["a"] == commits["d"] == commits["e"] == head(graph)
        assert commits["b"] == graph.branch("dev").tag("f").graph_commit_id == head(graph, "dev")
        assert commits["c"] == graph.commits()[-1].graph_commit_id

    def test_is_taken_wherever_a_commit_is(self, graph: Graph) -> None:
        graph.create_branch("dev")
        write(graph, "dev", "add node", 1)
        graph.tag("before")
        graph.tag("eve", at="dev")
        assert graph.commit("eve").graph_commit_id == head(graph, "dev")
        assert graph.entity("Person", "Eve", at="eve") is not None
        assert graph.entity("Person", "Eve", at=" before ") is None
        assert [change.id for change in graph.diff("before", "eve")] == ["Eve"]
        assert graph.snapshot(at="eve").branch == "dev"
        out = io.BytesIO()
        graph.export(out, at="eve", types=["Person"])
        assert b"Eve" in out.getvalue()
        assert graph.cherry_pick("eve").commit is not None
        graph.tag("picked")
        assert graph.revert("picked").commit is not None
        assert graph.reset("picked").commit is not None
        assert graph.reset("before").commit is not None
        assert graph.commits(after="before", limit=1)[0].kind == "init"

    def test_does_not_move(self, graph: Graph) -> None:
        graph.tag("v1")
        with pytest.raises(TagExists, match="tag 'v1' exists already; delete it first"):
            graph.tag(" v1 ")
        assert graph.delete_tag(" v1 ") == "v1"
        write(graph, "main", "add node", 1)
        assert graph.tag("v1").graph_commit_id == head(graph)

    def test_has_one_creator(self, graph: Graph) -> None:
        def create(number: int) -> int:
            try:
                graph.tag("v1", actor=f"a{number}")
            except TagExists:
                return 0
            return 1

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(create, range(8))) == 1
        assert len(graph.tags()) == 1


class TestBranches:
    def test_a_branch_whose_commits_are_named_is_not_deleted(self, graph: Graph) -> None:
        graph.create_branch("dev")
        graph.create_branch("idle")
        write(graph, "dev", "add node", 1)
        graph.tag("v1", at="dev")
        graph.tag("v0", at="idle")
        with pytest.raises(BranchTagged, match="branch 'dev' holds the states that these tags name: v1; delete"):
            graph.delete_branch("dev")
        graph.delete_branch("idle")  # its newest commit is main's
        assert graph.entity("Person", "Eve", at="v1") is not None
        graph.delete_tag("v1")
        graph.delete_branch("dev")

    def test_a_tag_and_a_branch_have_different_names(self, graph: Graph) -> None:
        graph.create_branch("dev")
        graph.tag("v1")
        with pytest.raises(InvalidTagName, match="there is a branch of that name"):
            graph.tag("dev")
        with pytest.raises(InvalidBranchName, match="there is a tag of that name"):
            graph.create_branch("v1")
        with pytest.raises(InvalidBranchName, match="there is a tag of that name"):
            graph.load(BASE, mode="merge", branch="v1", from_="main")
        graph.delete_tag("v1")
        graph.create_branch("v1")

    def test_a_tag_is_no_branch(self, graph: Graph) -> None:
        graph.create_branch("dev")
        graph.tag("v1")
        with pytest.raises(InvalidArgument, match="'v1' is a tag, and branches are merged"):
            graph.merge("v1")
        with pytest.raises(InvalidArgument, match="'v1' is a tag"):
            graph.merge("dev", "v1")
        for use in (lambda: graph.branch("v1"), lambda: write(graph, "v1", "add node", 1)):
            with pytest.raises(BranchNotFound):
                use()


@pytest.mark.parametrize(
    "name", ["", "  ", "a b", "../x", "12", "main", "__x", "x.json", "v1/2", "0" * 26, "a" * 300]
)
def test_names_that_are_none(graph: Graph, name: str) -> None:
    graph.tag("v1")
    with pytest.raises(InvalidTagName, match="cannot be the name of a tag"):
        graph.tag(name)


def test_refusals(graph: Graph) -> None:
    graph.tag("release")
    with pytest.raises(TagNotFound, match="did you mean 'release'"):
        graph.delete_tag("relase")
    with pytest.raises(TagNotFound, match="`omnigraph tag list` shows the tags"):
        graph.delete_tag("../../x")
    with pytest.raises(SnapshotNotFound, match="there is no commit or tag 'v9'"):
        graph.commit("v9")
    with pytest.raises(BranchNotFound, match="there is no branch 'v9'"):
        graph.tag("v2", at="v9")
    with pytest.raises(InvalidArgument, match="release is a state by itself; leave out branch"):
        graph.snapshot("main", at="release")
    reader = omnigraph.open(graph.address, read_only=True)
    for write_something in (lambda: reader.tag("v3"), lambda: reader.delete_tag("release")):
        with pytest.raises(ReadOnlyGraph):
            write_something()
    assert [tag.name for tag in reader.tags()] == ["release"]
    assert isinstance(TagExists("x"), RequestError)


@pytest.mark.parametrize("content", [b"", b"{}", b"null", b'{"branch": 1}', b"\xff"])
def test_a_damaged_tag(graph: Graph, content: bytes) -> None:
    graph.create_branch("dev")
    graph.tag("good")
    graph.tag("bad")
    (Path(graph.address) / "_refs/tags/bad.json").write_bytes(content)
    with pytest.warns(RuntimeWarning, match=r"_refs/tags/bad\.json is damaged: .*omnigraph tag delete bad"):
        assert [tag.name for tag in graph.tags()] == ["good"]
    (problem,) = graph.damaged_tags()
    assert problem.key == "_refs/tags/bad.json"
    shown = run("tag", "list", "--store", graph.address, "--json").json
    assert ([tag["name"] for tag in shown["tags"]], len(shown["damaged"])) == (["good"], 1)
    with pytest.raises(ObjectDamaged):
        graph.snapshot(at="bad")
    with pytest.raises(ObjectDamaged):
        graph.delete_branch("dev")  # the tag may name its commit
    with pytest.raises(TagExists):
        graph.tag("bad")
    assert graph.entity("Person", "Bob", at="good") is not None
    graph.delete_tag("bad")
    graph.delete_branch("dev")
    with warnings.catch_warnings(action="error"):
        assert len(graph.tags()) == 1


@pytest.mark.parametrize("name", ["notes.txt", "a b.json"])
def test_a_stray_file_is_no_tag(graph: Graph, name: str) -> None:
    folder = Path(graph.address) / "_refs/tags"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"mine")
    assert graph.tags() == []


def test_tags_from_an_event_loop(graph: Graph) -> None:
    async def scenario() -> list[str]:
        async with AsyncGraph(graph) as each:
            await each.tag("v1")
            await each.tag("v2")
            await each.delete_tag("v1")
            return [tag.name for tag in await each.tags()] + [problem.key for problem in await each.damaged_tags()]

    assert asyncio.run(scenario()) == ["v2"]


@pytest.mark.long
def test_tags_on_an_object_store(s3_store: Store) -> None:
    graph = omnigraph.init(s3_store.uri, SCHEMA, storage_options=s3_store.options)
    graph.create_branch("dev")
    write(graph, "dev", "add node", 1)
    graph.tag("v1", at="dev")
    with pytest.raises(TagExists):
        graph.tag("v1")
    with pytest.raises(BranchTagged):
        graph.delete_branch("dev")
    assert graph.entity("Person", "Eve", at="v1") is not None
    graph.delete_tag("v1")
    graph.tag("v1")
    assert [tag.branch for tag in graph.tags()] == ["main"]


class TestCommand:
    def test_create_list_delete(self, graph: Graph) -> None:
        place = ("--store", graph.address)
        made = run("tag", "create", "v1", *place, "--as", "ada")
        assert made.out == f"created tag v1 at commit {head(graph)}\n"
        assert run("tag", "create", "first", "--at", "1", *place, "--json").json["manifest_version"] == 1
        listed = [line.split("\t") for line in run("tag", "list", *place).out.splitlines()]
        assert [line[:3] + line[4:] for line in listed] == [
            ["tag", "commit", "branch", "by"],
            ["first", graph.commits()[-1].graph_commit_id, "main", ""],
            ["v1", head(graph), "main", "ada"],
        ]
        assert run("commit", "show", "v1", *place, "--json").json["graph_commit_id"] == head(graph)
        assert run("snapshot", "--at", "first", *place, "--json").json["manifest_version"] == 1
        assert "5 insert" in run("diff", "first", "v1", *place).out
        assert run("tag", "delete", "v1", *place).out == "deleted tag v1\n"
        gone = run("tag", "delete", "v1", *place, "--json")
        assert (gone.code, gone.json["error"]) == (1, "there is no tag 'v1'; `omnigraph tag list` shows the tags")
        taken = run("branch", "create", "first", *place)
        assert (taken.code, "there is a tag of that name" in taken.err) == (1, True)
