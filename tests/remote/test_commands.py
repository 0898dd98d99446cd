"""The command line with `--server`: the same words, the same output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.command import Ran, every_command, omnigraph
from tests.sampling import quick_and_long
from tests.server.running import ADD, NAMES, SCHEMA, TOKENS, make_graph, serving

from omnigraph.cli.scope.capabilities import CAPABILITIES, Capability

ULID = re.compile("[0-9A-HJKMNP-TV-Z]{26}", re.IGNORECASE)
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ][0-9:.]+(Z|\+00:00)?")
CURSOR = re.compile(r"cursor \S+")
COMMANDS = (
    ("query", "-e", NAMES),
    ("query", "-e", NAMES, "--json"),
    ("query", "-e", NAMES, "--branch", "mian"),
    ("mutate", "-e", ADD, "--params", '{"n": "cid", "a": 4}', "--json"),
    ("mutate", "-e", ADD, "--params", '{"n": "dan"}', "--if-commit", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    ("load", "--mode", "merge", "--data", "-"),
    ("load", "--mode", "append", "--data", "-"),
    ("ingest", "--branch", "review/1", "--data", "-", "--json"),
    ("branch", "create", "dev"),
    ("branch", "list"),
    ("branch", "merge", "review/1"),
    ("branch", "delete", "dev", "--yes"),
    ("tag", "create", "v1"),
    ("tag", "list", "--json"),
    ("branch", "create", "pick"),
    ("mutate", "-e", ADD, "--params", '{"n": "fay"}', "--branch", "pick"),
    ("tag", "create", "picked", "--at", "pick"),
    ("cherry-pick", "picked"),
    ("reset", "--to", "v1"),
    ("tag", "delete", "picked"),
    ("tag", "delete", "picked"),
    ("commit", "list"),
    ("commit", "show", "v1", "--json"),
    ("commit", "changes", "v1"),
    ("log",),
    ("blame", "Person", "cid"),
    ("snapshot",),
    ("entity", "Person", "ada"),
    ("blob", "put", "Person", "ada", "photo", "--json"),
    ("blob", "get", "Person", "ada", "photo"),
    ("blob", "get", "Person", "bob", "photo"),
    ("blob", "stat", "Person", "bob", "photo"),
    ("explain", "-e", NAMES),
    ("export",),
    ("schema", "show"),
    ("schema", "get", "--json"),
    ("schema", "plan", "--to", "next.pg"),
    ("schema", "apply", "--to", "next.pg"),
    ("schema", "history"),
    ("lint", "--query", "queries/all.gq"),
    ("queries", "validate", "queries"),
    ("changes", "poll", "--start", "beginning"),
    ("changes", "baseline", "--out", "base.jsonl", "--force"),
    ("changes", "baseline", "--out", "base.jsonl"),
    ("revert", "v1"),
    ("recovery", "list"),
)
INCOMPARABLE = {
    "queries list",  # only a server has stored queries
    "schema infer",  # reads files, and no graph
}
"""Commands of a graph or a server that are not the same of both."""
WRITING = {"put", "mutate", "load", "ingest", "revert", "create", "merge", "cherry-pick", "reset", "apply"}
RECORD = b'{"type": "Person", "data": {"name": "eve"}}\n'


def test_every_command_is_compared() -> None:
    """A new command that takes both, a graph's storage and a server, fails here until it is compared."""
    both = {name for name in every_command() if CAPABILITIES[name.split()[0]] is Capability.ANY}
    compared = {name for name in both for words in COMMANDS if words[: len(name.split())] == tuple(name.split())}
    assert both - compared == INCOMPARABLE


@pytest.mark.parametrize("commands", quick_and_long(list(COMMANDS[:1]), list(COMMANDS)))
def test_commands_print_the_same(
    commands: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "other"):
        make_graph(tmp_path / f"{name}.omni")
    (tmp_path / "next.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?  mail: String?"))
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries/all.gq").write_text(f"{NAMES}\n{ADD}\n")
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", TOKENS["ada"])
    with serving(tmp_path / "other.omni") as server:
        for command in commands:
            actor = ("--as", "ada") if WRITING & set(command[:2]) else ()
            here = omnigraph(*command, "--store", "one.omni", *actor, stdin=RECORD, cwd=tmp_path)
            there = omnigraph(*command, "--server", server.url, stdin=RECORD, cwd=tmp_path)
            shown_here, shown_there = plain(here, str(tmp_path / "one.omni")), plain(there, server.url)
            assert shown_there == shown_here, command


def plain(ran: Ran, address: str) -> tuple[int, str, str]:
    """What a command did, without what differs between two graphs."""

    def shown(text: str) -> str:
        text = text.replace(f"{address}/graphs/default", "GRAPH").replace(address, "GRAPH")
        return CURSOR.sub("cursor", TIME.sub("TIME", ULID.sub("ID", text)))

    return ran.code, shown(ran.out), shown(ran.err)


def test_what_a_server_does_not_do(tmp_path: Path) -> None:
    make_graph(tmp_path / "g.omni")
    with serving(tmp_path / "g.omni", is_open=True) as server:
        refused = omnigraph("optimize", "--server", server.url, cwd=tmp_path)
        assert refused.code == 2
        assert "takes no --server" in refused.err
        named = omnigraph("mutate", "-e", ADD, "--as", "eve", "--server", server.url, cwd=tmp_path)
        assert named.code == 2
        assert "--as is for graphs of this machine" in " ".join(named.err.replace("│", " ").split())
