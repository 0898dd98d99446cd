"""Callers who may only invoke stored queries, and files that a server reads again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from tests.cli.command import COMMAND
from tests.cli.command import omnigraph as run_command
from tests.policy.requests import Sent
from tests.policy.test_server import Guarded, guarding
from tests.policy.verbs import ADD, NAMES, SCHEMA

import omnigraph

RULES = [
    {"id": "invokes", "allow": {"actors": {"actor": "caller"}, "actions": ["invoke_query"], "branches": ["main"]}},
    {"id": "reads", "allow": {"actors": {"actor": "reader"}, "actions": ["read"]}},
]
POLICY = {"version": 1, "groups": {}, "protected_branches": [], "rules": RULES}
ACTORS = ["caller", "reader"]
GONE = {"params": {"n": "bob"}}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with guarding(tmp_path_factory.mktemp("stored"), POLICY, ACTORS) as server:
        yield server


def test_a_caller_may_do_only_what_stored_queries_do(guarded: Guarded) -> None:
    status, found = guarded.send(Sent("POST", "/queries/names", {}), "caller")
    assert (status, sorted(row["name"] for row in found["rows"])) == (200, ["ada", "bob"])
    status, done = guarded.send(Sent("POST", "/queries/gone", GONE), "caller", **{"Idempotency-Key": "once"})
    assert (status, done["affected_nodes"], done["actor_id"]) == (200, 1, "caller")
    status, again = guarded.send(Sent("POST", "/queries/gone", GONE), "caller", **{"Idempotency-Key": "once"})
    assert (status, again["commit"]) == (200, done["commit"])
    for sent in (
        Sent("POST", "/query", {"query": NAMES}),
        Sent("POST", "/mutate", {"query": ADD, "params": {"n": "x"}}),
        Sent("GET", "/snapshot"),
    ):
        assert guarded.send(sent, "caller")[0] == 403
    assert [each["name"] for each in guarded.send(Sent("GET", "/queries"), "caller")[1]["queries"]] == [
        "gone",
        "names",
    ]


def test_a_stored_query_runs_only_where_its_caller_may_invoke_it(guarded: Guarded) -> None:
    guarded.owner.create_branch("dev")
    commit = guarded.owner.mutate(ADD, {"n": "hidden"}, branch="dev").commit
    assert commit is not None
    for place in ({"branch": "dev"}, {"snapshot": commit.graph_commit_id}):
        assert guarded.send(Sent("POST", "/queries/names", place), "caller")[0] == 404
    assert guarded.send(Sent("POST", "/queries/gone", {**GONE, "branch": "dev"}), "caller")[0] == 404
    assert guarded.send(Sent("POST", "/queries/names", {"branch": " main "}), "caller")[0] == 200


def test_without_the_right_to_invoke_no_query_is_there(guarded: Guarded) -> None:
    answers = [guarded.send(Sent("POST", f"/queries/{name}", {}), "reader") for name in ("names", "other")]
    shown = [
        (status, json.dumps({**body, "request_id": None}).replace(name, "NAME"))
        for (status, body), name in zip(answers, ("names", "other"), strict=True)
    ]
    assert shown[0] == shown[1]
    assert shown[0][0] == 404
    status, listed = guarded.send(Sent("GET", "/queries"), "reader")
    assert (status, len(listed["queries"])) == (200, 2)


def test_stored_queries_are_run_by_name_from_the_command_line(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "token-caller")
    scope = ("--server", guarded.url, "--graph", "default")
    assert run_command("query", "names", *scope, "--json").json["query_name"] == "names"
    gone = run_command("mutate", "gone", "--params", '{"n": "nobody"}', *scope)
    assert (gone.code, gone.out) == (0, "nothing matched, nothing changed\n")
    listed = run_command("queries", "list", *scope)
    assert listed.out.splitlines()[1:] == ["gone\tmutation\t$n: string\t", "names\tread\t\t"]
    assert "expect_mutation" in run_command("mutate", "names", *scope).err
    here = run_command("query", "names", "--store", "some.omni", cwd=tmp_path)
    assert (here.code, "is no server" in " ".join(here.err.replace("│", " ").split())) == (2, True)


def test_a_hangup_makes_a_server_read_its_files_again(tmp_path: Path) -> None:
    """A mistake in a file changes nothing; files without mistakes are used at once, all of them."""
    queries, policy = tmp_path / "queries", tmp_path / "policy.yaml"
    queries.mkdir()
    (queries / "all.gq").write_text(NAMES)
    (tmp_path / "tokens.json").write_text('{"caller": "token-caller", "reader": "token-reader"}')
    policy.write_text(yaml.safe_dump(POLICY))
    files = ["--tokens-file", "tokens.json", "--queries", "queries", "--policy", "policy.yaml"]
    command = [*COMMAND, "serve", "g.omni", "--port", "0", *files]
    with (
        omnigraph.init(tmp_path / "g.omni", SCHEMA) as owner,
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        ExitStack() as closing,
    ):
        assert process.stdout is not None
        closing.callback(process.kill)
        url = f"http://{process.stdout.readline().decode().strip().partition('=')[2]}"
        guarded = Guarded(url, owner, urllib3.PoolManager(retries=False))
        invoke = Sent("POST", "/queries/fresh", {})
        assert guarded.send(invoke, "caller")[0] == 404
        (queries / "more.gq").write_text("query fresh() { match { $x: Nothing } return { $x.name as n } }")
        os.kill(process.pid, signal.SIGHUP)
        assert "Nothing" in logged(process, "reload_failed")["reason"]
        assert guarded.send(Sent("POST", "/queries/names", {}), "caller")[0] == 200
        assert guarded.send(Sent("GET", "/snapshot"), "reader")[0] == 200
        (queries / "more.gq").write_text(NAMES.replace("names", "fresh"))
        policy.write_text(yaml.safe_dump({**POLICY, "rules": RULES[:1]}))
        os.kill(process.pid, signal.SIGHUP)
        assert logged(process, "reloaded")["queries"] == ["fresh", "names"]
        assert guarded.send(invoke, "caller")[0] == 200
        decided = logged(process, "policy")
        assert (decided["matched_rule_id"], decided["graph"]) == ("invokes", "default")
        assert logged(process, "request", request_id=decided["request_id"])["actor"] == "caller"
        assert guarded.send(Sent("GET", "/snapshot"), "reader")[0] == 403
        assert logged(process, "policy", actor="reader")["allowed"] is False
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 0


def logged(process: subprocess.Popen[bytes], event: str, **fields: str) -> dict[str, Any]:
    """The next line of a server's log about an event."""
    assert process.stderr is not None
    for line in process.stderr:
        found: dict[str, Any] = json.loads(line)
        if found["event"] == event and fields.items() <= found.items():
            return found
    raise AssertionError(f"the log ended without '{event}'")
