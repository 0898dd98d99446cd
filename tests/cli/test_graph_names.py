"""Every command is told its graph in the same ways: as its first word, by --store, or by OMNIGRAPH_STORE."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.cli.command import every_command, omnigraph

READ = ("-e", "query q() { match { $p: Person } return { $p.name } }")
WRITE = ("-e", "query q() { delete Person where name = 'Ada' }")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "blame": ("Person", "Ada"),
    "blob get": ("Person", "Ada", "photo"),
    "blob put": ("Person", "Ada", "photo", "--file", "data.jsonl"),
    "blob stat": ("Person", "Ada", "photo"),
    "branch create": ("dev",),
    "branch delete": ("dev",),
    "branch list": (),
    "branch merge": ("dev",),
    "changes baseline": ("--out", "baseline.jsonl"),
    "changes poll": (),
    "cherry-pick": ("01M7F7SR61QNPAP6GR3195NZPZ",),
    "cleanup": ("--keep", "3"),
    "commit changes": ("01M7F7SR61QNPAP6GR3195NZPZ",),
    "commit list": (),
    "commit show": ("01M7F7SR61QNPAP6GR3195NZPZ",),
    "diff": ("main", "dev"),
    "doctor": (),
    "embed": (),
    "entity": ("Person", "Ada"),
    "explain": READ,
    "export": (),
    "index": (),
    "ingest": ("--branch", "dev", "--data", "data.jsonl"),
    "jobs": (),
    "lint": (),
    "load": ("--data", "data.jsonl", "--mode", "merge"),
    "log": ("Person", "Ada"),
    "maintain": ("--once",),
    "mutate": WRITE,
    "optimize": (),
    "query": READ,
    "recovery list": (),
    "repair": (),
    "reset": ("--to", "01M7F7SR61QNPAP6GR3195NZPZ"),
    "revert": ("01M7F7SR61QNPAP6GR3195NZPZ",),
    "schema apply": ("--schema", "schema.pg"),
    "schema get": (),
    "schema history": (),
    "schema plan": ("--schema", "schema.pg"),
    "schema show": (),
    "snapshot": (),
    "tag create": ("v1",),
    "tag delete": ("v1",),
    "tag list": (),
    # the graph comes first, and then a place
    "backup": ("backups",),
    "clone": ("copy.omni",),
}
"""What is said to each command besides the graph, which is not there."""
OTHERS = {
    "alias",
    "backups",
    "cluster apply",
    "cluster approve",
    "cluster force-unlock",
    "cluster import",
    "cluster plan",
    "cluster refresh",
    "cluster status",
    "cluster validate",
    "fmt",
    "graphs list",
    "init",
    "login",
    "logout",
    "policy actions",
    "policy explain",
    "policy test",
    "policy validate",
    "profile list",
    "profile show",
    "queries list",
    "queries validate",
    "restore",
    "schema infer",
    "serve",
    "version",
}
"""Commands that open no graph that is there, or have tests of their own."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schema.pg").write_text("node Person { name: String @key }")
    (tmp_path / "data.jsonl").write_text('{"type": "Person", "data": {"name": "Ada"}}')
    (tmp_path / "other.omni").mkdir()
    return tmp_path


def test_every_command_has_a_row() -> None:
    assert every_command() == COMMANDS.keys() | OTHERS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_graph_is_named_in_the_same_ways(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verb, words = command.split(), COMMANDS[command]
    missing = f"there is no graph at {folder}/missing.omni"
    first = omnigraph(*verb, "missing.omni", *words, cwd=folder)
    option = omnigraph(*verb, *words, "--store", "missing.omni", cwd=folder)
    monkeypatch.setenv("OMNIGRAPH_STORE", "missing.omni")
    variable = omnigraph(*verb, *words, cwd=folder)
    for ran in (first, option, variable):
        assert ran.code == 1, ran.err
        assert missing in ran.err
    twice = omnigraph(*verb, "other.omni", *words, "--store", "missing.omni", cwd=folder)
    assert (twice.code, "two graphs are named" in twice.err) == (2, True)


def test_a_graph_is_created_where_it_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init = ("init", "--schema", "schema.pg")
    assert omnigraph(*init, "a.omni", cwd=folder).code == 0
    assert omnigraph(*init, "--store", "b.omni", cwd=folder).code == 0
    monkeypatch.setenv("OMNIGRAPH_STORE", "c.omni")
    assert omnigraph(*init, cwd=folder).code == 0
    assert {path.name for path in folder.glob("[abc].omni")} == {"a.omni", "b.omni", "c.omni"}


def test_a_name_is_no_graph(folder: Path) -> None:
    """Only what ends in .omni or has a scheme is one, where a verb has other words."""
    omnigraph("init", "--schema", "schema.pg", "g.omni", cwd=folder)
    for branch in ("dev", "omni", "x/y.omnis"):
        assert omnigraph("branch", "create", branch, "--store", "g.omni", cwd=folder).code == 0
    assert omnigraph("branch", "create", "g.omni", "last", cwd=folder).code == 0


def test_maintenance_takes_a_graph_of_a_cluster(folder: Path) -> None:
    (folder / "all").mkdir()
    for name in ("a", "b"):
        assert omnigraph("init", "--schema", "schema.pg", f"all/{name}.omni", cwd=folder).code == 0
    asked = omnigraph("optimize", "--cluster", "all", cwd=folder)
    assert (asked.code, "it has a, b; name one with --graph" in asked.err) == (2, True)
    for verb in (("optimize",), ("repair",), ("cleanup", "--keep", "3"), ("branch", "list")):
        assert omnigraph(*verb, "--cluster", "all", "--graph", "b", cwd=folder).code == 0
