"""How a server lives: what it finishes when it stops, what is left when it is killed, and what it serves."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import urllib3
from tests.cli.command import COMMAND
from tests.processes import PATIENCE
from tests.server.running import ADD, NAMES, SCHEMA, Served, make_graph, serving

import omnigraph
from omnigraph.errors import GraphNotFound, RequestError
from omnigraph.server.graphs import addresses, open_graphs
from omnigraph.server.workers import SharedSocket

ENDLESS = (
    "query endless() { match { $a: Person  $b: Person  $c: Person  $a.age <= $b.age  $b.age <= $c.age }"
    " return { count($a) as n } }"
)


def test_a_caller_that_goes_away_stops_its_query(tmp_path: Path) -> None:
    """The server has one thread for reads. A query that would keep it for hours is left by its caller; another
    caller gets its answer."""
    with omnigraph.init(tmp_path / "g.omni", SCHEMA) as graph:
        records = [{"type": "Person", "data": {"name": f"p{n}", "age": n % 100}} for n in range(3_000)]
        graph.load(records, mode="append")
    with serving(tmp_path / "g.omni", is_open=True, read_threads=1) as server:
        body = json.dumps({"query": ENDLESS}).encode()
        with socket.create_connection(("127.0.0.1", server.port), 30) as caller:
            caller.sendall(
                b"POST /graphs/default/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                + f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            assert "omnigraph_http_requests_in_flight 2" in wait_for(server, "in_flight 2")
        assert server.ask("/schema")["schema_source"] == SCHEMA
        assert 'route="/graphs/{graph}/query",status="499"' in wait_for(server, 'status="499"')


def wait_for(server: Served, said: str) -> str:
    """The metrics of a server, once they say something."""
    return heard(lambda: server.request("GET", "/metrics").content.decode(), said)


def heard(ask: Callable[[], str], said: str) -> str:
    """An answer that says something, asked for until it does."""
    until = time.monotonic() + PATIENCE
    while said not in (text := ask()):
        assert time.monotonic() < until, f"{said!r} was never said, but {text}"
        time.sleep(0.02)
    return text


def test_a_server_that_stops_finishes_its_writes(graph_place: Path) -> None:
    with serving(graph_place, is_open=True) as server, ThreadPoolExecutor(4) as pool:
        begun = threading.Barrier(5)

        def write(number: int) -> str | None:
            begun.wait()
            body = {"query": ADD, "params": {"n": f"n{number}"}}
            try:
                found = server.request("POST", "/graphs/default/mutate", body)
            except urllib3.exceptions.HTTPError:
                return None
            return f"n{number}" if found.status == 200 else None

        writes = [pool.submit(write, number) for number in range(4)]
        begun.wait()
        server.stop()
        done = {name for name in (each.result() for each in writes) if name is not None}
    with omnigraph.open(graph_place) as graph:
        assert done <= {row["name"] for row in graph.query(NAMES)}


@pytest.mark.long
def test_a_server_that_cannot_wait_says_so(graph_place: Path) -> None:
    """A body that does not come is waited for as long as the operator has said, and then answered."""
    head = "POST /graphs/default/load/ndjson HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer token-of-ada\r\n"
    with (
        serving(graph_place, shutdown_seconds=1.0) as server,
        socket.create_connection(("127.0.0.1", server.port), 30) as caller,
    ):
        caller.sendall(f"{head}Content-Type: application/x-ndjson\r\nContent-Length: 99\r\n\r\n{{".encode())
        assert server.request("GET", "/healthz").status == 200
        server.stop()
        head, _, body = caller.recv(65_536).decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 503")
    assert (json.loads(body)["code"], json.loads(body)["outcome"]) == ("unavailable", "nothing_written")
    assert f"x-request-id: {json.loads(body)['request_id']}" in head


def test_a_directory_of_graphs_is_served_by_their_names(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_graph(tmp_path / f"{name}.omni")
    (tmp_path / "broken.omni").mkdir()
    with serving(tmp_path, is_open=True) as server:
        listed = server.request("GET", "/graphs").json["graphs"]
        assert [each["graph_id"] for each in listed] == ["one", "two"]
        assert server.request("GET", "/graphs/two/schema").status == 200
        assert server.request("GET", "/graphs/broken/schema").status == 404
    with pytest.raises(GraphNotFound):
        open_graphs(addresses(str(tmp_path), None), read_only=True, require_all=True)
    with pytest.raises(RequestError, match="leave out --graph"):
        addresses(str(tmp_path), "one")
    (tmp_path / "a b.omni").mkdir()
    with pytest.raises(RequestError, match="'a b' cannot name a graph"):
        addresses(str(tmp_path), None)


def test_a_server_with_a_certificate_speaks_tls(graph_place: Path, tmp_path: Path) -> None:
    """It stops while a caller keeps its connection, without waiting for that caller to close it too."""
    certificate, key = certified(tmp_path)
    command = [*COMMAND, "serve", str(graph_place), "--bind", "127.0.0.1:0", "--unauthenticated"]
    command += ["--tls-cert", certificate, "--tls-key", key, "--shutdown-seconds", "2"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        urllib3.PoolManager(ca_certs=certificate, assert_hostname="localhost") as pool,
    ):
        assert process.stdout is not None
        address = process.stdout.readline().strip().partition("=")[2]
        found = pool.request("GET", f"https://{address}/healthz", timeout=60)
        assert found.json()["status"] == "ok"
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE)
    events = [json.loads(line)["event"] for line in said.splitlines()]
    assert (process.returncode, events) == (0, ["listening", "request", "stopping", "stopped"])


def certified(folder: Path) -> tuple[str, str]:
    """The files of a certificate for localhost and of its key."""
    import datetime as dt

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return str(files[0]), str(files[1])


def test_workers_take_turns_at_connections_that_come_together() -> None:
    """Else the first worker to wake would take all of them, and do their work with one processor. As many wait as
    the supervisor has said."""
    with socket.create_server(("127.0.0.1", 0), backlog=8) as listening, ExitStack() as stack:
        listening.setblocking(False)
        workers = [SharedSocket(os.dup(listening.fileno()), others_turn=3_600) for _ in range(2)]
        for one in workers:
            stack.enter_context(one).listen(1)
        for _ in range(4):
            stack.enter_context(socket.create_connection(listening.getsockname(), 30))
        for one in workers:
            stack.enter_context(one.accept()[0])
            with pytest.raises(BlockingIOError):
                one.accept()
        for _ in range(2):
            stack.enter_context(listening.accept()[0])


def test_workers_tell_the_sum_of_their_counts(graph_place: Path) -> None:
    command = [*COMMAND, "serve", str(graph_place), "--port", "0", "--unauthenticated", "--workers", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            url = f"http://{process.stdout.readline().decode().strip().partition('=')[2]}"
            for _ in range(40):
                assert urllib3.request("GET", f"{url}/healthz", headers={"Connection": "close"}).status == 200
            counted = 'omnigraph_http_requests_total{method="GET",route="/healthz",status="200"} 40'
            heard(lambda: urllib3.request("GET", f"{url}/metrics").data.decode(), counted)
        finally:
            process.terminate()
