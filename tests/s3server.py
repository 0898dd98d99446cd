"""An S3-compatible server for the tests: moto, answering one request at a time so that its conditions are atomic.

Run as a module with the name of a bucket it prints its ports and serves until its standard input closes: it never
outlives its parent.
The second port is the same server behind a proxy that drops conditions, as some stores do. The third is one that
refuses everybody, and the fourth one that refuses everybody after as many requests as its last `/patience/N` said.
The fifth obeys rules about single requests: see `tests.faults.store`.
"""

from __future__ import annotations

import io
import math
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import create_backend_app
from moto.s3.models import s3_backends
from tests.faults.requests import faulty
from tests.keptalive import Application, start_server


def one_at_a_time(application: Application) -> Application:
    """moto looks first and writes later; whole requests in turn make that one step."""
    turn = threading.Lock()

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length) if length else b"")
        with turn:
            return list(application(environ, start_response))

    return serve


def without_conditions(application: Application) -> Application:
    """A store that does what it is told, whatever the conditions."""

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        for header in ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"):
            environ.pop(header, None)
        return application(environ, start_response)

    return serve


def refuse(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A store that lets nobody in."""
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    answer = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
    start_response("403 Forbidden", [("Content-Type", "text/xml"), ("Content-Length", str(len(answer)))])
    return [b"" if environ["REQUEST_METHOD"] == "HEAD" else answer]


def moody(application: Application) -> Application:
    """A store that works for a while and then refuses."""
    left = math.inf

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        nonlocal left
        if environ["PATH_INFO"].startswith("/patience/"):
            left = float(environ["PATH_INFO"].removeprefix("/patience/"))
            start_response("200 OK", [("Content-Length", "0")])
            return []
        left -= 1
        return application(environ, start_response) if left >= 0 else refuse(environ, start_response)

    return serve


class Copies:
    """Copies of what the bucket holds, by the beginning of its keys. Restoring writes only what differs."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket
        self._saved: dict[str, dict[str, bytes]] = {}

    def save(self, prefix: str) -> None:
        self._saved[prefix] = self._present(prefix)

    def restore(self, prefix: str) -> None:
        backend, saved, present = self._backend(), self._saved[prefix], self._present(prefix)
        for key in present.keys() - saved.keys():
            backend.delete_object(self._bucket, key)
        for key, content in saved.items():
            if present.get(key) != content:
                backend.put_object(self._bucket, key, content)

    def _present(self, prefix: str) -> dict[str, bytes]:
        keys = self._backend().buckets[self._bucket].keys
        return {name: key.value for name, key in keys.items() if name.startswith(prefix)}

    def _backend(self) -> Any:
        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


def main() -> None:
    honest = one_at_a_time(create_backend_app("s3"))
    for application in (
        honest,
        without_conditions(honest),
        refuse,
        moody(honest),
        faulty(honest, Copies(sys.argv[1])),
    ):
        sys.stdout.write(f"{start_server(application)}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
