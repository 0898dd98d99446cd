"""`omnigraph index` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.command import EXAMPLES, omnigraph


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with one graph that holds the example's people."""
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    assert omnigraph("init", "--schema", str(EXAMPLES / "schema.pg"), "g.omni", cwd=tmp_path).code == 0
    people = str(EXAMPLES / "people.jsonl")
    assert omnigraph("load", "--data", people, "--mode", "append", cwd=tmp_path).code == 0
    return tmp_path


def test_it_says_what_it_built(folder: Path) -> None:
    ran = omnigraph("index", "--as", "ada", cwd=folder)
    assert (ran.code, ran.err) == (0, "")
    first, *lines = ran.out.splitlines()
    assert first.startswith(f"committed {len(lines)} indexes on main as ")
    assert "  node:Pilot id: BTREE id_btree" in lines
    assert omnigraph("index", cwd=folder).out == "nothing to build\n"
    (newest, *_) = omnigraph("commit", "list", "--json", cwd=folder).json["commits"]
    assert (newest["kind"], newest["actor_id"]) == ("ensure_indices", "ada")


def test_it_speaks_json(folder: Path) -> None:
    found = omnigraph("index", "g.omni", "--json", cwd=folder).json
    assert (found["branch"], found["commit"]["kind"]) == ("main", "ensure_indices")
    assert {"table_key": "node:Pilot", "column": "id", "kind": "BTREE", "name": "id_btree"} in found["built"]
    assert all(entry["reason"] for entry in found["deferred"])
    again = omnigraph("index", "--store", "g.omni", "--json", cwd=folder).json
    assert (again["commit"], again["built"], again["deferred"]) == (None, [], found["deferred"])


def test_it_says_what_waits_on_a_branch(folder: Path) -> None:
    assert omnigraph("branch", "create", "dev", cwd=folder).code == 0
    first, *lines = omnigraph("index", "--branch", "dev", cwd=folder).out.splitlines()
    assert first == "nothing to build"
    assert "  deferred node:Pilot id: BTREE shared with branch main; index it there" in lines
    found = omnigraph("index", "--branch", "dev", "--json", cwd=folder).json
    assert found["commit"] is None
    assert "shared with branch main; index it there" in {entry["reason"] for entry in found["deferred"]}
    unknown = omnigraph("index", "--branch", "nowhere", "--json", cwd=folder)
    assert (unknown.code, "nowhere" in unknown.out) == (1, True)
