"""An HTTP server for WSGI applications whose connections stay open between requests, as those of a store do.

The one of werkzeug closes each connection behind its answer, so that every request takes another one and a thread.
"""

from __future__ import annotations

import io
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any
from urllib.parse import unquote

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_FAILED = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def start_server(application: Application) -> int:
    """Serve an application for as long as this process lives; the port."""
    server = _Server(("127.0.0.1", 0), _Connection)
    server.application = application
    # It looks up only to see whether it should end.
    threading.Thread(target=server.serve_forever, args=(3600,), daemon=True).start()
    port: int = server.server_address[1]
    return port


class _Server(ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128
    application: Application

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell what is wrong with the server; clients may go at any time."""
        if not isinstance(sys.exception(), ConnectionError):
            traceback.print_exc()


class _Connection(StreamRequestHandler):
    """Answers requests until the client or the application ends the connection.

    An application ends it without an answer by raising a ConnectionError."""

    disable_nagle_algorithm = True
    server: _Server

    def handle(self) -> None:
        while (request_line := self.rfile.readline()) and self._answer(request_line.decode("latin-1")):
            pass

    def _answer(self, request_line: str) -> bool:
        """Answer one request; whether there may be another."""
        method, target, _ = request_line.split()
        environ = self._environ(method, target)
        self._read_headers(environ)
        if environ.get("HTTP_EXPECT") == "100-continue":
            self.wfile.write(_CONTINUE)
        environ["wsgi.input"] = io.BytesIO(self.rfile.read(int(environ.get("CONTENT_LENGTH", 0))))
        try:
            answer = self._asked(environ)
        except ConnectionError:
            return False
        except Exception:
            self.wfile.write(_FAILED)
            raise
        self.wfile.write(answer)
        return bool(environ.get("HTTP_CONNECTION", "").lower() != "close")

    def _environ(self, method: str, target: str) -> dict[str, Any]:
        path, _, query = target.partition("?")
        host, port = self.server.server_address[:2]
        return {
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote(path).encode().decode("latin-1"),
            "QUERY_STRING": query,
            "REQUEST_URI": target,
            "RAW_URI": target,
            "REMOTE_ADDR": self.client_address[0],
            "SERVER_NAME": host,
            "SERVER_PORT": str(port),
            "SERVER_PROTOCOL": "HTTP/1.1",
        }

    def _read_headers(self, environ: dict[str, Any]) -> None:
        while line := self.rfile.readline().decode("latin-1").rstrip("\r\n"):
            name, _, value = line.partition(":")
            key = name.upper().replace("-", "_")
            environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value.strip()
        if "HTTP_TRANSFER_ENCODING" in environ:
            raise NotImplementedError("no client of the tests sends chunks")

    def _asked(self, environ: dict[str, Any]) -> bytes:
        """What the application answers, as it is sent."""
        status, headers = "", list[tuple[str, str]]()

        def start_response(given: str, sent: list[tuple[str, str]], *_: Any) -> None:
            nonlocal status, headers
            status, headers = given, sent

        content = b"".join(self.server.application(environ, start_response))
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers)]
        has_length = any(name.lower() == "content-length" for name, _ in headers)
        if not has_length and environ["REQUEST_METHOD"] != "HEAD" and status[:3] not in ("204", "304"):
            lines.append(f"Content-Length: {len(content)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + content
