"""Servers that are killed under load, and several of them on one graph: what was acknowledged is there, once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import urllib3
from tests.cli.command import COMMAND
from tests.sampling import quick_and_long
from tests.server.running import ADD, PEOPLE, SCHEMA, Served, serving
from tests.stores import S3Server

import omnigraph

EDGE = b'{"edge": "Knows", "from": "ada", "to": "bob", "data": {"since": %d}}'
NDJSON = "application/x-ndjson"


def load_edge(server: Served, number: int) -> int:
    """Load one edge without an id, under a key of its own; the status of the answer, or 0 if there was none."""
    try:
        return server.request(
            "POST",
            "/graphs/default/load/ndjson",
            content=EDGE % number,
            Content_Type=NDJSON,
            Idempotency_Key=f"edge-{number}",
        ).status
    except urllib3.exceptions.HTTPError:
        return 0


def edges(server: Served) -> list[int]:
    """The numbers of the edges that were loaded, each as often as it is there."""
    found = server.request("POST", "/graphs/default/export", {"type_names": ["Knows"]})
    numbers = (json.loads(line)["data"]["since"] for line in found.content.splitlines())
    return sorted(number for number in numbers if number != 1840)


@pytest.mark.parametrize(("kills", "between"), [(1, 4), pytest.param(6, 8, marks=pytest.mark.long)])
def test_a_server_that_is_killed_again_and_again_loses_and_repeats_nothing(
    graph_place: Path, kills: int, between: int
) -> None:
    """Four callers load edges without ids, and send each again until it is acknowledged. The server is killed in
    the midst of it, several times."""
    acknowledged: set[int] = set()
    state = threading.Condition()
    current: list[Served] = []
    wanted = (kills + 1) * between

    def write(worker: int) -> None:
        for number in range(worker, 4 * wanted, 4):
            while True:
                with state:
                    if len(acknowledged) >= wanted:
                        return
                    server = current[-1]
                status = load_edge(server, number)
                assert status in (0, 200, 409, 503), status
                with state:
                    if status == 200:
                        acknowledged.add(number)
                        state.notify_all()
                        break
                    if status == 0 and current[-1] is server:
                        state.wait(5)

    with ThreadPoolExecutor(4) as pool:
        writers: list[Future[None]] = []
        for turn in range(kills):
            with serving(graph_place, is_open=True) as server:
                assert server.request("GET", "/readyz").status == 200
                with state:
                    current.append(server)
                    state.notify_all()
                writers = writers or [pool.submit(write, worker) for worker in range(4)]
                with state:
                    state.wait_for(lambda: len(acknowledged) >= (turn + 1) * between, 60)  # noqa: B023
                server.child.kill()
        with serving(graph_place, is_open=True) as server:
            with state:
                current.append(server)
                state.notify_all()
            for each in writers:
                each.result()
            assert acknowledged <= set(edges(server))
            assert len(edges(server)) == len(set(edges(server))), "a repeated load was done twice"


def write_side_by_side(one: Served, other: Served, writes: int) -> None:
    """Writes to two servers of one graph at the same time; both see all of them."""

    def write(number: int) -> None:
        body = {"query": ADD, "params": {"n": f"n{number:03}", "a": number}}
        while True:
            found = (one, other)[number % 2].request("POST", "/graphs/default/mutate", body)
            assert found.status in (200, 409), found.content
            if found.status == 200:
                return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(writes)))
    assert one.names() == other.names() == ["ada", "bob", *(f"n{number:03}" for number in range(writes))]


@pytest.mark.parametrize("writes", quick_and_long(4, 40))
def test_two_servers_write_to_one_graph(graph_place: Path, writes: int) -> None:
    with serving(graph_place, is_open=True) as one, serving(graph_place, is_open=True) as other:
        write_side_by_side(one, other, writes)


@pytest.mark.long
def test_two_servers_write_to_one_graph_on_s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_server.options().items():
        monkeypatch.setenv(name.upper() if name.startswith("aws") else f"AWS_{name.upper()}", value)
    place = s3_server.store().uri
    with omnigraph.init(place, SCHEMA) as graph:
        graph.load(PEOPLE.encode(), mode="merge")
    with serving(place, is_open=True) as one, serving(place, is_open=True) as other:
        write_side_by_side(one, other, 8)
        one.child.kill()
        assert len(other.names()) == 10


def test_readiness_says_when_a_graph_cannot_be_read(graph_place: Path) -> None:
    with serving(graph_place, is_open=True) as server:
        assert server.request("GET", "/readyz").json == {"status": "ready"}
        graph_place.rename(graph_place.with_name("gone"))
        found = server.request("GET", "/readyz")
        assert (found.status, found.json) == (503, {"status": "unavailable", "graphs": ["default"]})
        assert server.request("GET", "/healthz").status == 200
        graph_place.with_name("gone").rename(graph_place)
        assert server.request("GET", "/readyz").status == 200


@contextmanager
def workers(place: Path, count: int) -> Iterator[tuple[Served, subprocess.Popen[bytes]]]:
    """`omnigraph serve` with several workers, as an operator starts it."""
    command = [*COMMAND, "serve", str(place), "--port", "0", "--unauthenticated", "--workers", str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().decode().strip().partition("=")[2]
            yield Served(f"http://{address}", None, None), process  # type: ignore[arg-type]
        finally:
            process.terminate()
            process.communicate()


def children_of(process: int) -> set[int]:
    return {int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()}


@pytest.mark.skipif(sys.platform != "linux", reason="it looks at /proc")
@pytest.mark.long
def test_workers_are_started_again_and_stop_with_their_supervisor(graph_place: Path) -> None:
    with workers(graph_place, 2) as (server, process):
        first = children_of(process.pid)
        assert len(first) == 2
        server.ask("/mutate", {"query": ADD, "params": {"n": "cid"}})
        assert {tuple(server.names()) for _ in range(8)} == {("ada", "bob", "cid")}
        victim = min(first)
        os.kill(victim, signal.SIGKILL)
        while len(children_of(process.pid) - {victim}) < 2:
            assert process.poll() is None
        assert server.request("GET", "/readyz", Connection="close").status == 200
        process.terminate()
        assert process.wait(60) == 0
    with workers(graph_place, 2) as (_, process):
        orphans = children_of(process.pid)
        process.kill()
        process.wait()
        for orphan in orphans:
            while Path(f"/proc/{orphan}/cmdline").exists() and Path(f"/proc/{orphan}/cmdline").read_bytes():
                pass
