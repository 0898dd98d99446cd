"""An S3-compatible server on this machine that counts what it is asked: operations and bytes, both ways."""

from __future__ import annotations

import logging
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

StartResponse = Callable[..., Any]


@dataclass(slots=True)
class Traffic:
    """What the server was asked since the last reset."""

    operations: Counter[str] = field(default_factory=Counter)
    received: int = 0
    sent: int = 0

    @property
    def total(self) -> int:
        return sum(self.operations.values())

    def reset(self) -> None:
        self.operations.clear()
        self.received = self.sent = 0


class CountingServer:
    """moto behind a counter."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._app = DomainDispatcherApplication(create_backend_app)
        self.traffic = Traffic()
        self._server = make_server("127.0.0.1", 0, self, threaded=True)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        listing = method == "GET" and "list-type=2" in environ.get("QUERY_STRING", "")
        self.traffic.operations["LIST" if listing else method] += 1
        self.traffic.received += int(environ.get("CONTENT_LENGTH") or 0)
        return self._counted(self._app(environ, start_response))

    def _counted(self, body: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in body:
            self.traffic.sent += len(chunk)
            yield chunk

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
