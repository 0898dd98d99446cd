"""Creating graphs, branches and looking at history from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.command import EXAMPLES, omnigraph

import omnigraph as package
from omnigraph.manifest.publisher import BranchName, Change, CommitDraft

SCHEMA = str(EXAMPLES / "schema.pg")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with one graph, `g.omni`, created by ada."""
    assert omnigraph("init", "--schema", SCHEMA, "g.omni", "--as", "ada", cwd=tmp_path).code == 0
    return tmp_path


def test_init_says_what_it_created(tmp_path: Path) -> None:
    ran = omnigraph("init", "--schema", SCHEMA, "g.omni", "--json", cwd=tmp_path)
    assert ran.code == 0
    assert ran.json["uri"] == str(tmp_path / "g.omni")
    assert [table["table_key"] for table in ran.json["tables"]] == [
        "edge:StationedAt",
        "edge:Trusts",
        "edge:Wrote",
        "node:Base",
        "node:Pilot",
        "node:Report",
    ]


def test_init_refuses_an_existing_graph_and_a_broken_schema(folder: Path) -> None:
    again = omnigraph("init", "--schema", SCHEMA, "g.omni", cwd=folder)
    assert (again.code, again.err) == (
        1,
        f"error: {folder / 'g.omni'} is a graph already; open it, or choose another place\n",
    )
    (folder / "bad.pg").write_text("node A { k: Strin }")
    broken = omnigraph("init", "--schema", "bad.pg", "other.omni", cwd=folder)
    assert broken.code == 1
    assert "bad.pg:1:13" in broken.err
    assert not (folder / "other.omni").exists()


def test_the_only_graph_of_a_directory_needs_no_name(folder: Path) -> None:
    assert omnigraph("snapshot", cwd=folder).out == omnigraph("snapshot", "--store", "g.omni", cwd=folder).out
    assert omnigraph("init", "--schema", SCHEMA, "h.omni", cwd=folder).code == 0
    ran = omnigraph("snapshot", cwd=folder)
    assert ran.code == 2
    assert "g.omni, h.omni" in ran.err


def test_two_names_for_the_graph_are_refused(folder: Path) -> None:
    assert omnigraph("snapshot", "g.omni", "--store", "h.omni", cwd=folder).code == 2


def test_branches_are_created_listed_and_deleted(folder: Path) -> None:
    created = omnigraph("branch", "create", "review/1", "--as", "bo", "--json", cwd=folder).json
    assert (created["name"], created["parent"], created["creator"]) == ("review/1", "main", "bo")
    assert omnigraph("branch", "create", "review/1.x", "--from", "review/1", cwd=folder).code == 0
    listed = omnigraph("branch", "list", "--json", cwd=folder).json["branches"]
    assert [branch["name"] for branch in listed] == ["main", "review/1", "review/1.x"]
    in_use = omnigraph("branch", "delete", "review/1", cwd=folder)
    assert (in_use.code, in_use.err) == (
        1,
        "error: branch 'review/1' is the parent of review/1.x; delete those first\n",
    )
    assert omnigraph("branch", "delete", "review/1.x", cwd=folder).out == "deleted branch review/1.x\n"
    lines = omnigraph("branch", "list", cwd=folder).out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["branch", "main", "review/1"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("branch", "create", "a//b"), "'a//b' cannot be the name of a branch"),
        (("branch", "create", "main"), "every graph has its main branch already"),
        (("branch", "create", "x", "--from", "mian"), "there is no branch 'mian'; did you mean 'main'?"),
        (("branch", "delete", "main"), "branch 'main' cannot be deleted"),
        (("commit", "show", "01ARZ3NDEKTSV4RRFFQ69G5FAV"), "there is no commit 01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        (("snapshot", "--at", "99"), "there is no manifest version 99"),
        (("snapshot", "nowhere.omni"), "there is no graph at"),
        (("snapshot", "gs://bucket/g"), "graphs live on local paths, file://, s3:// and memory://"),
    ],
)
def test_bad_requests_name_the_thing_and_the_remedy(folder: Path, args: tuple[str, ...], said: str) -> None:
    ran = omnigraph(*args, cwd=folder)
    assert ran.code == 1
    assert said in ran.err
    assert said in omnigraph(*args, "--json", cwd=folder).json["error"]


def test_commits_are_listed_filtered_and_paged(folder: Path) -> None:
    graph = package.open(folder / "g.omni")
    for turn in range(5):
        draft = CommitDraft("load", actor_id=("bo", "cy")[turn % 2], message=f"load {turn}")
        graph._repository.manifest.publish(BranchName("main", None), Change(), {}, draft)
    first = omnigraph("commit", "list", "--limit", "4", "--json", cwd=folder).json
    assert [commit["message"] for commit in first["commits"]] == ["load 4", "load 3", "load 2", "load 1"]
    rest = omnigraph("commit", "list", "--after", first["next"], "--json", cwd=folder).json
    assert [commit["kind"] for commit in rest["commits"]] == ["load", "init"]
    assert rest["next"] is None
    by_bo = omnigraph("commit", "list", "--filter", "actor=bo", "--json", cwd=folder).json["commits"]
    assert [commit["message"] for commit in by_bo] == ["load 4", "load 2", "load 0"]
    made = omnigraph("commit", "list", "--filter", "kind=init", "--json", cwd=folder).json["commits"]
    assert [commit["actor_id"] for commit in made] == ["ada"]
    assert omnigraph("commit", "list", "--filter", "colour=red", cwd=folder).code == 2
    shown = omnigraph("commit", "show", by_bo[0]["graph_commit_id"], cwd=folder).out
    assert "message  load 4" in shown


def test_snapshot_looks_back(folder: Path) -> None:
    graph = package.open(folder / "g.omni")
    first = graph.snapshot()
    graph._repository.manifest.publish(BranchName("main", None), Change(), {}, CommitDraft("load"))
    assert omnigraph("snapshot", "--json", cwd=folder).json["manifest_version"] == 2
    assert first.commit is not None
    for at in ("1", first.commit.graph_commit_id):
        assert omnigraph("snapshot", "--at", at, "--json", cwd=folder).json["manifest_version"] == 1


def test_schema_show_prints_what_was_accepted(folder: Path) -> None:
    assert omnigraph("schema", "show", cwd=folder).out == (EXAMPLES / "schema.pg").read_text()


def test_deleting_on_a_store_that_is_not_local_needs_consent(folder: Path) -> None:
    ran = omnigraph("branch", "delete", "x", "--store", "s3://bucket/g.omni", cwd=folder)
    assert ran.code == 2
    assert "--yes" in ran.err
