"""An embedding server on this machine that fails on demand and records the requests it gets."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from omnigraph.embed.http import HttpClient
from omnigraph.embed.mock import MockClient
from omnigraph.embed.transport import RetryPolicy

QUICK = RetryPolicy(timeout=5.0, deadline=20.0, attempts=4, backoff=0.01)


@dataclass(frozen=True, slots=True)
class Reply:
    """How the server treats one request: an error, something else than vectors, or a way to be unreachable.

    ``trickles`` is the pause between two bytes of the body.
    """

    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: float = 0.0
    drops: bool = False
    trickles: float = 0.0


@dataclass
class Asked:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        if "input" in self.body:
            return list(self.body["input"])
        requests = self.body.get("requests", [self.body])
        return [one["content"]["parts"][0]["text"] for one in requests]


@dataclass
class EmbeddingServer:
    """Answers with the mock's vectors, three times as long. ``replies`` are for the requests that come next."""

    url: str = ""
    delay: float = 0.0
    replies: list[Reply] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    connections: set[tuple[str, int]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def texts(self) -> list[str]:
        return [text for asked in self.asked for text in asked.texts]

    def client(self, **settings: Any) -> HttpClient:
        return HttpClient("openai-compatible", "mini", self.url, "sk-secret", retry=QUICK, **settings)

    def forget(self) -> None:
        """Count anew."""
        self.asked.clear()
        self.connections.clear()
        self.most_in_flight = 0

    def take(self, asked: Asked) -> Reply:
        with self.lock:
            self.asked.append(asked)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            return self.replies.pop(0) if self.replies else Reply()

    def done(self) -> None:
        with self.lock:
            self.in_flight -= 1

    def answer(self, asked: Asked) -> dict[str, Any]:
        """The vectors, in the form in which the request wants them; those of OpenAI's in another order."""
        if "input" in asked.body:
            vectors = _long_vectors(asked.texts, asked.body.get("dimensions", 4))
            data = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
            return {"data": data[::-1], "model": asked.body["model"]}
        if "requests" in asked.body:
            width = asked.body["requests"][0]["outputDimensionality"]
            return {"embeddings": [{"values": vector} for vector in _long_vectors(asked.texts, width)]}
        [vector] = _long_vectors(asked.texts, asked.body["outputDimensionality"])
        return {"embedding": {"values": vector}}


def _long_vectors(texts: list[str], dimension: int) -> list[list[float]]:
    found: list[list[float]] = (3.0 * MockClient().embed(texts, dimension, "document")).tolist()
    return found


@contextmanager
def embedding_server(certificate: Path | None = None) -> Iterator[EmbeddingServer]:
    """A server for as long as the test runs, over TLS if it has a certificate with its key in one file."""
    server = EmbeddingServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.connections.add(self.client_address)
            asked = Asked(self.path, dict(self.headers.items()), body)
            reply = server.take(asked)
            try:
                time.sleep(server.delay + reply.hangs)
                if reply.drops:
                    self.close_connection = True
                    return
                content = reply.body
                if content is None:
                    content = json.dumps(server.answer(asked)).encode() if reply.status == 200 else b""
            finally:
                server.done()
            try:
                self.send_response(reply.status)
                for name, value in ({"Content-Length": str(len(content))} | dict(reply.headers)).items():
                    self.send_header(name, value)
                self.end_headers()
                for byte in content if reply.trickles else b"":
                    self.wfile.write(bytes([byte]))
                    time.sleep(reply.trickles)
                self.wfile.write(b"" if reply.trickles else content)
                self.close_connection = "Content-Length" in reply.headers
            except OSError:
                self.close_connection = True  # the client has not waited

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    with Server(("127.0.0.1", 0), Handler) as http:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            http.socket = context.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        server.url = f"{'http' if certificate is None else 'https'}://127.0.0.1:{http.server_port}/v1"
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
