"""A server of several graphs, each with a policy of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import urllib3
from tests.cli.command import COMMAND
from tests.cli.command import omnigraph as run_command
from tests.server.running import make_graph

SERVER = (
    "version: 1\nrules:\n  - {id: lists, allow: {actors: {actor: ada}, actions: [graph_list]}}\n"
    "  - {id: reads, allow: {actors: {actor: ada}, actions: [read], branch_scope: any}}\n"
)
OWN = "version: 1\nrules:\n  - {id: reads, allow: {actors: {actor: bob}, actions: [read], branch_scope: any}}\n"
ARGUMENTS = ["serve", "graphs", "--port", "0", "--tokens-file", "tokens.json", "--policy", "policies"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two graphs; one has its own policy."""
    for name in ("one", "two"):
        make_graph(tmp_path / "graphs" / f"{name}.omni")
    (tmp_path / "tokens.json").write_text('{"ada": "token-ada", "bob": "token-bob"}')
    (tmp_path / "policies" / "two").mkdir(parents=True)
    (tmp_path / "policies" / "policy.yaml").write_text(SERVER)
    (tmp_path / "policies" / "two" / "policy.yaml").write_text(OWN)
    return tmp_path


@contextmanager
def serving(folder: Path, *more: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    command = [*COMMAND, *ARGUMENTS, *more]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().decode().strip().partition("=")[2]
        finally:
            process.terminate()
            process.communicate(timeout=60)


def statuses(address: str) -> dict[str, list[int]]:
    """Which graphs each actor may read, and whether it may list them."""

    def status(actor: str, path: str) -> int:
        header = {"Authorization": f"Bearer token-{actor}"}
        return urllib3.request("GET", f"http://{address}{path}", headers=header, timeout=60).status

    paths = ("/graphs/one/snapshot", "/graphs/two/snapshot", "/graphs")
    return {actor: [status(actor, path) for path in paths] for actor in ("ada", "bob")}


def reload(process: subprocess.Popen[bytes], workers: int) -> None:
    """Make a server read its files again, and wait until all of its processes have done it."""
    assert process.stderr is not None
    os.kill(process.pid, signal.SIGHUP)
    while workers:
        line = process.stderr.readline()
        assert line, "the server has ended"
        workers -= b'"reloaded"' in line


@pytest.mark.parametrize("workers", [1, 2])
def test_each_graph_asks_its_own_policy(folder: Path, workers: int) -> None:
    with serving(folder, "--workers", str(workers)) as (process, address):
        assert statuses(address) == {"ada": [200, 403, 200], "bob": [403, 200, 403]}
        (folder / "policies" / "two" / "policy.yaml").unlink()
        reload(process, workers)
        for _ in range(4):
            assert statuses(address) == {"ada": [200, 200, 200], "bob": [403, 403, 403]}


def test_without_a_policy_of_the_server_nothing_about_it_is_allowed(folder: Path) -> None:
    (folder / "policies" / "policy.yaml").unlink()
    (folder / "policies" / "one").mkdir()
    (folder / "policies" / "one" / "policy.yaml").write_text(OWN)
    with serving(folder) as (_, address):
        assert statuses(address) == {"ada": [403, 403, 403], "bob": [200, 200, 403]}


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("policy.yaml", None, "graph 'one' has no policy"),
        ("three/policy.yaml", OWN, "is about no graph of this server; it serves one, two"),
        ("two/policy.yaml", SERVER, "graph_list is about the server"),
        ("two/policy.yaml", "version: 2", "two/policy.yaml"),
    ],
)
def test_what_it_does_not_start_with(folder: Path, path: str, text: str | None, said: str) -> None:
    place = folder / "policies" / path
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    if text is not None:
        place.write_text(text)
    ran = run_command(*ARGUMENTS, cwd=folder)
    assert ran.code != 0
    assert said in " ".join(ran.err.replace("│", " ").split())
