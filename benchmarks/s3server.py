"""An S3-compatible server on this machine that counts what it is asked: operations and bytes, both ways.

It does one request at a time, so that conditions are atomic. Other processes get the counts from `/-/traffic`. It
can answer late, as a distant store does, and in waves, which shows how many requests wait for each other. Run as a
module with the name of a bucket and a delay in seconds it prints its storage options and serves until its standard
input closes.
"""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.s3.models import s3_backends
from tests.faults.waves import Waves
from werkzeug.serving import make_server

StartResponse = Callable[..., Any]


@dataclass(slots=True)
class Traffic:
    """What the server was asked since the last reset."""

    operations: Counter[str] = field(default_factory=Counter)
    received: int = 0
    sent: int = 0
    waves: set[int] = field(default_factory=set)
    """The waves that the requests came in, if they are answered in waves."""

    @property
    def total(self) -> int:
        return sum(self.operations.values())

    def reset(self) -> None:
        self.operations.clear()
        self.waves.clear()
        self.received = self.sent = 0


class _KeepAlive(MotoRequestHandler):
    """Connections stay open between requests."""

    protocol_version = "HTTP/1.1"


class CountingServer:
    """moto behind a counter."""

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.waves: Waves | None = None
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._app = DomainDispatcherApplication(create_backend_app)
        self.traffic = Traffic()
        self._turn = threading.Lock()
        self._server = make_server("127.0.0.1", 0, self, threaded=True, request_handler=_KeepAlive)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length) if length else b"")
        if environ["PATH_INFO"] == "/-/traffic":
            return self._told(start_response)
        method = environ["REQUEST_METHOD"]
        listing = method == "GET" and "list-type=2" in environ.get("QUERY_STRING", "")
        wave = 0 if self.waves is None else self.waves.wait()
        time.sleep(self.delay)
        with self._turn:
            self.traffic.waves.add(wave)
            answer = b"".join(self._app(environ, start_response))
            self.traffic.operations["LIST" if listing else method] += 1
            self.traffic.received += length
            self.traffic.sent += len(answer)
        return [answer]

    def _told(self, start_response: StartResponse) -> Iterable[bytes]:
        traffic = self.traffic
        told = {"operations": dict(traffic.operations), "received": traffic.received, "sent": traffic.sent}
        answer = json.dumps(told).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))])
        return [answer]

    def stored(self, bucket: str, prefix: str) -> list[tuple[str, int]]:
        """The objects below a prefix, with their sizes; looking is not counted."""
        keys: Any = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[bucket].keys
        with self._turn:
            return [(name, key.size) for name, key in keys.items() if name.startswith(prefix)]

    @property
    def storage_options(self) -> dict[str, str]:
        return {
            "aws_access_key_id": "bench",
            "aws_secret_access_key": "bench",
            "aws_region": "us-east-1",
            "aws_endpoint": self.endpoint,
            "allow_http": "true",
        }

    def create_bucket(self, name: str) -> None:
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        urllib.request.urlopen(request).close()

    def stop(self) -> None:
        self._server.shutdown()


@contextmanager
def counting_server(bucket: str) -> Iterator[CountingServer]:
    """A server with one bucket, for as long as it is needed."""
    server = CountingServer()
    server.create_bucket(bucket)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def distant_server(bucket: str, delay: float) -> Iterator[dict[str, str]]:
    """The storage options of a server in a process of its own, which answers each request after a delay."""
    command = [sys.executable, "-m", "benchmarks.s3server", bucket, str(delay)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.stdin.close()


def main() -> None:
    """Serve until the standard input closes."""
    server = CountingServer(float(sys.argv[2]))
    server.create_bucket(sys.argv[1])
    sys.stdout.write(json.dumps(server.storage_options) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
