"""`omnigraph serve`, as an operator types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
import urllib3
from tests.cli.command import COMMAND, omnigraph
from tests.server.running import make_graph


def test_it_serves_until_it_is_stopped(tmp_path: Path) -> None:
    """It says where it listens, answers, writes a log in JSON, and ends well when it is asked to."""
    make_graph(tmp_path / "g.omni")
    (tmp_path / "tokens.json").write_text('{"ada": "secret"}')
    command = [*COMMAND, "serve", "--bind", "[::1]:0", "--tokens-file", "tokens.json", "--graph", "social"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        name, _, address = process.stdout.readline().decode().strip().partition("=")
        assert name == "OMNIGRAPH_LISTEN_ADDR"
        with urllib3.PoolManager() as pool:
            headers = {"Authorization": "Bearer secret"}
            found = pool.request("GET", f"http://{address}/graphs", headers=headers, timeout=60)
        assert found.json()["graphs"][0]["graph_id"] == "social"
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0
    events = [json.loads(line) for line in said.decode().splitlines()]
    assert [each["event"] for each in events] == ["listening", "request", "stopping", "stopped"]
    assert (events[1]["actor"], events[1]["status"], events[1]["route"]) == ("ada", 200, "/graphs")
    assert b"secret" not in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "give --tokens-file FILE, or say"),
        (("--tokens-file", "none.json"), "cannot be read"),
        (("--unauthenticated", "--policy", "g.omni"), "a policy has to know who calls"),
        (("--unauthenticated", "--graph", "a/b"), "cannot name a graph"),
        (("--unauthenticated", "--graph", "policies"), "that name is reserved"),
        (("--unauthenticated", "--bind", "8080"), "write HOST:PORT"),
        (("--unauthenticated", "--bind", "256.0.0.1:9"), "cannot listen at 256.0.0.1:9"),
        (("--unauthenticated", "--host", "256.0.0.1"), "cannot listen at 256.0.0.1:8080"),
        (("--unauthenticated", "--tls-cert", "none.pem"), "belong together"),
        (("--unauthenticated", "--port", "0", "--tls-cert", "g.omni", "--tls-key", "g.omni"), "certificate"),
    ],
)
def test_what_it_does_not_start_with(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    make_graph(tmp_path / "g.omni")
    ran = omnigraph("serve", *options, cwd=tmp_path)
    assert ran.code != 0
    assert said in " ".join(ran.err.replace("│", " ").split())
