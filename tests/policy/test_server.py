"""Every route and every command that asks a server, times every scope; and what callers without rules see."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from tests.cli.command import every_command
from tests.cli.command import omnigraph as run_command
from tests.policy.requests import (
    COMMANDS,
    FREE_ROUTES,
    OF_A_CLUSTER,
    OF_STORAGE,
    ROUTES,
    WITHOUT_A_GRAPH,
    Sent,
)
from tests.policy.verbs import HEAVY, RECORD, SCHEMA, Cell, all_cells, policy_of
from tests.processes import children

import omnigraph
from omnigraph import Graph
from omnigraph.cli.scope.capabilities import CAPABILITIES, Capability
from omnigraph.policy.policy import log_decision
from omnigraph.server.answers.stored import read_stored
from omnigraph.server.application import Server
from omnigraph.server.graphs import addresses, open_graphs
from omnigraph.server.observing.logs import quiet
from omnigraph.server.policies import read_policies
from omnigraph.server.routes.table import ROUTES as SERVED
from omnigraph.server.run import Listening, run_server
from omnigraph.server.tokens import parse_tokens

ROUTE_CELLS = all_cells({name: verb.needs for name, (verb, _) in ROUTES.items()})
COMMAND_CELLS = [
    Cell(f"c-{cell.actor}", cell.verb, cell.what, cell.n + 1_000_000, cell.rules, cell.is_allowed, cell.missing)
    for cell in all_cells({name: verb.needs for name, (verb, _) in COMMANDS.items()})
    if cell.what in ("allowed", "missing")
]
STRANGER = "stranger"
STORED = "query names() { match { $p: Person } return { $p.name as name } }\n" + (
    "query gone($n: String) { delete Person where name = $n }\n"
)


@dataclass
class Guarded:
    """A running server with a policy, and its graph without one."""

    url: str
    owner: Graph
    pool: urllib3.PoolManager

    def send(self, sent: Sent, actor: str, **headers: str) -> tuple[int, Any]:
        """The status and the body of the answer to a request of an actor."""
        path = sent.path if sent.path == "/graphs" else f"/graphs/default{sent.path}"
        content = sent.body if isinstance(sent.body, bytes | None) else json.dumps(sent.body).encode()
        given = {"Authorization": f"Bearer token-{actor}", **headers}
        if sent.body is not None:
            given["Content-Type"] = sent.content_type
        found = self.pool.request(
            sent.method, self.url + path, body=content, headers=given, preload_content=False, timeout=30
        )
        is_endless = found.headers.get("Content-Type", "").startswith("text/event-stream")
        body = b"" if is_endless else found.read()
        found.close() if is_endless else found.release_conn()
        is_json = found.headers.get("Content-Type") == "application/json" and body
        return found.status, json.loads(body) if is_json else body


def serve(place: str, policy: str, actors: list[str], queries: str) -> None:
    """In a child: serve a graph with a policy to callers with tokens."""
    tokens = parse_tokens(json.dumps({actor: f"token-{actor}" for actor in actors}), "tokens")
    found = addresses(place, None)
    rules = read_policies(Path(policy), found.keys(), log_decision)
    served = open_graphs(found, read_only=False, require_all=True, policies=rules.graphs)
    stored = read_stored(Path(queries), served.graphs)
    run_server(Server(served, tokens, None, quiet, stored, rules), Listening(port=0))


@contextmanager
def guarding(folder: Path, policy: Mapping[str, Any], actors: list[str]) -> Iterator[Guarded]:
    """A server of a small graph with a policy of its own, which is all that counts for it: the policy of all
    graphs is about the server itself."""
    place, queries, policies = folder / "g.omni", folder / "queries", folder / "policies"
    rules = policy["rules"]
    about_server = [rule for rule in rules if rule["allow"]["actions"] == ["graph_list"]]
    (policies / "default").mkdir(parents=True)
    for path, chosen in (("policy.yaml", about_server), ("default/policy.yaml", rules)):
        kept = [rule for rule in rules if (rule in about_server) == (chosen is about_server)]
        if kept:
            (policies / path).write_text(yaml.safe_dump({**policy, "rules": kept}))
    queries.mkdir()
    (queries / "all.gq").write_text(STORED)
    with omnigraph.init(place, SCHEMA) as owner:
        owner.load(
            RECORD.replace("loaded", "ada").encode() + RECORD.replace("loaded", "bob").encode(), mode="merge"
        )
        owner.put_blob("Person", "ada", "photo", b"bytes")
        with children((serve, str(place), str(policies), actors, str(queries))) as (child,):
            url = f"http://{child.hear().partition('=')[2]}"
            yield Guarded(url, owner, urllib3.PoolManager(retries=False))


MASKED = ("invoke", "invoke_if_graph_commit")
"""Routes whose queries are not there for those who may not invoke them."""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    found = [*ROUTE_CELLS, *COMMAND_CELLS]
    actors = [*(cell.actor for cell in found), STRANGER]
    with guarding(tmp_path_factory.mktemp("guarded"), policy_of(found), actors) as server:
        yield server


def test_every_route_has_a_row() -> None:
    """A new route fails here until its row says what a policy has to allow for it."""
    assert {route.name for route in SERVED} == ROUTES.keys() | FREE_ROUTES


@pytest.mark.parametrize("name", ROUTES)
def test_routes_are_allowed_and_denied(guarded: Guarded, name: str) -> None:
    verb, request = ROUTES[name]
    for cell in (each for each in ROUTE_CELLS if each.verb == name and is_quick(each)):
        prepared = verb.prepare(guarded.owner, cell.n)
        before = guarded.owner.snapshot().graph_commit_id
        status, body = guarded.send(request(cell.n, prepared), cell.actor, **_condition(name, before))
        refused = 404 if name in MASKED else 403
        if cell.is_allowed:
            assert status in (200, 201), (cell, body)
        else:
            assert status == refused, (cell, body)
            assert guarded.owner.snapshot().graph_commit_id == before
            if isinstance(body, dict) and name not in MASKED:
                assert body["code"] == "forbidden"
                assert body["policy"]["actor"] == cell.actor


def is_quick(cell: Cell) -> bool:
    """Is it worth a request? Of verbs with a history of their own the engine's tests try all cells."""
    return cell.verb not in HEAVY or cell.what in ("allowed", "missing", "mistyped")


def _condition(name: str, commit: str | None) -> dict[str, str]:
    return {"Omnigraph-If-Graph-Commit": commit or ""} if name.endswith("_if_graph_commit") else {}


def test_an_unknown_actor_is_denied_everywhere_without_the_body_being_looked_at(guarded: Guarded) -> None:
    for name, (verb, request) in ROUTES.items():
        sent = request(0, "nothing" if verb.prepare(guarded.owner, 2_000_000 + len(name)) is None else "some")
        nonsense = Sent(sent.method, sent.path, b"{nonsense" if sent.body is not None else None, sent.content_type)
        status, _ = guarded.send(nonsense, STRANGER, **_condition(name, "x"))
        assert status == (404 if name in MASKED else 403), name


def test_every_command_has_a_row() -> None:
    """A new command fails here until it has a row, or is listed among those that no policy is asked about."""
    assert every_command() == COMMANDS.keys() | OF_STORAGE | OF_A_CLUSTER | WITHOUT_A_GRAPH


def test_commands_that_no_policy_is_asked_about_take_no_server() -> None:
    direct = {verb for verb, capability in CAPABILITIES.items() if capability is Capability.DIRECT}
    local = {verb for verb, capability in CAPABILITIES.items() if capability is Capability.LOCAL}
    assert {name.split()[0] for name in OF_STORAGE} == direct
    control = {verb for verb, capability in CAPABILITIES.items() if capability is Capability.CONTROL}
    assert {name.split()[0] for name in OF_A_CLUSTER} == control
    assert {name.split()[0] for name in WITHOUT_A_GRAPH} == local | {"schema"}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_are_allowed_and_denied(
    guarded: Guarded, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verb, words = COMMANDS[name]
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
    (tmp_path / "schema.pg").write_text(SCHEMA)
    (tmp_path / "all.gq").write_text(STORED)
    for cell in (each for each in COMMAND_CELLS if each.verb == name):
        prepared = verb.prepare(guarded.owner, cell.n)
        monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", f"token-{cell.actor}")
        scope = (
            ["--server", guarded.url] if name == "graphs list" else ["--server", guarded.url, "--graph", "default"]
        )
        ran = run_command(*words(cell.n, prepared), *scope, stdin=RECORD.encode(), cwd=tmp_path)
        assert ran.code == (0 if cell.is_allowed else 1), (cell, ran)
        if not cell.is_allowed:
            assert "denied by the policy" in ran.err
