"""One scenario in every way to use a graph: embedded, remote, and by commands on its storage and on a server.

Each step is a call of a graph and the words of a command. Their JSON is the same in all four, and so are mistakes.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import omnigraph as command
from tests.server.running import ADD, NAMES, SCHEMA, SET_AGE, TOKENS, make_graph, serving

import omnigraph
from omnigraph import Graph, OmniError, RemoteGraph

ULID = re.compile("[0-9A-HJKMNP-TV-Z]{26}", re.IGNORECASE)
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ][0-9:.]+(Z|\+00:00)?")
DIGEST = re.compile(r"\b([0-9a-f]{64}|[0-9a-f]{16})\b")
LINE = '{"type": "Person", "data": {"name": "eve", "age": 5}}'
NEXT = SCHEMA.replace("age: I32?", "age: I32?  mail: String?")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is done, as a call and as a command."""

    call: Callable[[Graph | RemoteGraph], Any]
    words: tuple[str, ...]
    writes: bool = False


def shown(value: Any) -> Any:
    """A result as the command prints it."""
    return value.as_json() if hasattr(value, "as_json") else value


def add(name: str, **where: str) -> Step:
    words = [word for key, value in where.items() for word in (f"--{key}", value)]
    return Step(
        lambda graph: graph.mutate(ADD, {"n": name, "a": 1}, **where),
        ("mutate", "-e", ADD, "--params", json.dumps({"n": name, "a": 1}), *words),
        writes=True,
    )


def set_age(age: int, branch: str) -> Step:
    return Step(
        lambda graph: graph.mutate(SET_AGE, {"n": "ada", "a": age}, branch=branch),
        ("mutate", "-e", SET_AGE, "--params", json.dumps({"n": "ada", "a": age}), "--branch", branch),
        writes=True,
    )


def listed(name: str, ask: Callable[[Graph | RemoteGraph], list[Any]]) -> Callable[[Graph | RemoteGraph], Any]:
    return lambda graph: {name: [each.as_json() for each in ask(graph)]}


SCENARIO: dict[str, Step] = {
    "query": Step(lambda graph: graph.query(NAMES), ("query", "-e", NAMES)),
    "mutate": add("cid"),
    "add twice": add("cid"),
    "load": Step(lambda graph: graph.load(LINE, mode="append"), ("load", "--mode", "append", "--data", "-"), True),
    "load twice": Step(
        lambda graph: graph.load(LINE, mode="append"), ("load", "--mode", "append", "--data", "-"), True
    ),
    "ingest": Step(
        lambda graph: graph.ingest(LINE, "review/1"), ("ingest", "--branch", "review/1", "--data", "-"), True
    ),
    "create": Step(lambda graph: graph.create_branch("dev"), ("branch", "create", "dev"), True),
    "create twice": Step(lambda graph: graph.create_branch("dev"), ("branch", "create", "dev"), True),
    "theirs": set_age(50, "dev"),
    "preview": Step(lambda graph: graph.preview_merge("dev"), ("branch", "merge", "dev", "--preview")),
    "ours": set_age(51, "main"),
    "conflict": Step(lambda graph: graph.merge("dev"), ("branch", "merge", "dev"), True),
    "resolved": Step(
        lambda graph: graph.merge("dev", resolve="theirs"), ("branch", "merge", "dev", "--theirs"), True
    ),
    "delete": Step(lambda graph: {"name": graph.delete_branch("dev").name}, ("branch", "delete", "dev", "--yes")),
    "no branch": Step(lambda graph: graph.query(NAMES, branch="dev"), ("query", "-e", NAMES, "--branch", "dev")),
    "branches": Step(listed("branches", lambda graph: graph.branches()), ("branch", "list")),
    "tag": Step(lambda graph: graph.tag("v1"), ("tag", "create", "v1"), True),
    "tags": Step(listed("tags", lambda graph: graph.tags()), ("tag", "list")),
    "commit": Step(lambda graph: graph.commit("v1"), ("commit", "show", "v1")),
    "commits": Step(listed("commits", lambda graph: graph.commits()), ("commit", "list")),
    "changes": Step(
        lambda graph: {"blocks": [graph.commit_changes("v1").block.as_json()]}, ("commit", "changes", "v1")
    ),
    "blame": Step(lambda graph: graph.blame("Person", "ada"), ("blame", "Person", "ada")),
    "condition": Step(
        lambda graph: graph.mutate(ADD, {"n": "dan", "a": 1}, if_commit="01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        (*add("dan").words, "--if-commit", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        writes=True,
    ),
    "rule": Step(
        lambda graph: graph.mutate(SET_AGE, {"n": "ada", "a": 900}),
        ("mutate", "-e", SET_AGE, "--params", '{"n": "ada", "a": 900}'),
        writes=True,
    ),
    "syntax": Step(lambda graph: graph.query("query q() {"), ("query", "-e", "query q() {")),
    "snapshot": Step(lambda graph: graph.snapshot(), ("snapshot",)),
    "revert": Step(lambda graph: graph.revert("v1"), ("revert", "v1"), True),
    "reset": Step(lambda graph: graph.reset("v1"), ("reset", "--to", "v1"), True),
    "plan": Step(lambda graph: graph.plan_schema(NEXT), ("schema", "plan", "--to", "next.pg")),
    "apply": Step(lambda graph: graph.apply_schema(NEXT), ("schema", "apply", "--to", "next.pg"), True),
    "blob": Step(
        lambda graph: graph.put_blob("Person", "ada", "photo", io.BytesIO(LINE.encode())),
        ("blob", "put", "Person", "ada", "photo"),
        writes=True,
    ),
    "last": Step(lambda graph: graph.query(NAMES, at="v1"), ("query", "-e", NAMES, "--at", "v1")),
}


@pytest.mark.long
def test_a_scenario_comes_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", TOKENS["ada"])
    (tmp_path / "next.pg").write_text(NEXT)
    for name in ("embedded", "remote", "stored", "served"):
        make_graph(tmp_path / f"{name}.omni")
    with ExitStack() as stack:
        embedded = stack.enter_context(omnigraph.open(tmp_path / "embedded.omni", actor="ada"))
        servers = {name: stack.enter_context(serving(tmp_path / f"{name}.omni")) for name in ("remote", "served")}
        remote = stack.enter_context(omnigraph.connect(servers["remote"].url, token=TOKENS["ada"]))
        for name, step in SCENARIO.items():
            expected = called(step, embedded)
            assert called(step, remote) == expected, name
            actor = ("--as", "ada") if step.writes else ()
            stored = typed(tmp_path, *step.words, "--store", "stored.omni", *actor)
            served = typed(tmp_path, *step.words, "--server", servers["served"].url)
            assert like(expected, stored) == expected, name
            assert like(expected, served) == expected, name


def called(step: Step, graph: Graph | RemoteGraph) -> dict[str, Any]:
    """What a call gives, or what its mistake tells."""
    try:
        found = shown(step.call(graph))
    except OmniError as error:
        found = error.as_json()
    return plain(found)


def typed(folder: Path, *words: str) -> dict[str, Any]:
    """What a command prints."""
    ran = command(*words, "--json", stdin=LINE.encode(), cwd=folder)
    return plain(json.loads(ran.out)) if ran.out.startswith("{") else {"out": ran.out, "err": ran.err}


def like(expected: Any, found: Any) -> Any:
    """What was found, without what was not looked for: commands say more than the result of a call."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return {key: like(expected[key], value) for key, value in found.items() if key in expected}
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [like(*each) for each in zip(expected, found, strict=True)]
    return found


def plain(value: Any) -> dict[str, Any]:
    """JSON without what differs between any two graphs: ids, times and places."""
    text = json.dumps(value)
    text = ULID.sub("ID", TIME.sub("TIME", DIGEST.sub("DIGEST", text)))
    found: dict[str, Any] = json.loads(re.sub(r"<data>|<stdin>|-:", "DATA", text))
    return found
