"""Starting and stopping a server process."""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

import uvicorn

from omnigraph.errors import RequestError
from omnigraph.server.application import Server
from omnigraph.server.connections import Connection
from omnigraph.server.observing.logs import take_messages, write_log
from omnigraph.server.reloading import OperatorFiles, Reloaded
from omnigraph.server.workers import Supervisor

_BACKLOG: Final = 2_048
_LAST_PORT: Final = 65_535
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
LISTENING: Final = "OMNIGRAPH_LISTEN_ADDR"


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a server listens, and the files of its certificate if it speaks TLS."""

    host: str = "127.0.0.1"
    port: int = 8080
    certificate: Path | None = None
    key: Path | None = None


def host_and_port(text: str) -> tuple[str, int]:
    """An address that is written as `127.0.0.1:8080` or `[::1]:8080`; RequestError if it is not."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > _LAST_PORT:
        raise RequestError(f"'{text[:80]}' is no address to listen at; write HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


class _Uvicorn(uvicorn.Server):
    """Uvicorn that says when it listens, and tells the server that it stops before it waits for requests."""

    def __init__(self, config: uvicorn.Config, server: Server, address: str, files: Reloaded) -> None:
        super().__init__(config)
        self._files = files
        self._reloading: asyncio.Future[bool] | None = None
        self._server = server
        self._address = address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        sys.stdout.write(f"{LISTENING}={self._address}\n")
        sys.stdout.flush()
        is_tls = self.config.is_ssl
        self._server.log("listening", address=self._address, graphs=sorted(self._server.graphs), tls=is_tls)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop. A TLS connection is closed by both sides, and a caller that keeps an idle one does not answer."""
        for connection in list(self.server_state.connections) if self.config.is_ssl else ():
            answered: Any = getattr(connection, "cycle", None)
            if answered is None or answered.response_complete:
                connection.transport.abort()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal, and end as a program that has done its work."""
        loop = asyncio.get_running_loop()
        for sig in _SIGNALS:
            loop.add_signal_handler(sig, self.handle_exit, sig, None)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        try:
            yield
        finally:
            for sig in (*_SIGNALS, signal.SIGHUP):
                loop.remove_signal_handler(sig)

    def _reload(self) -> None:
        """Read the operator's files again, in a thread."""
        self._reloading = asyncio.ensure_future(asyncio.to_thread(self._files.reload, self._server))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._server.is_stopping = True
        self._server.log("stopping", signal=sig)
        super().handle_exit(sig, frame)


def run_workers(listening: Listening, count: int, arguments: Sequence[str]) -> None:
    """Serve by so many processes, which are this command with its arguments, until a signal says to stop."""
    take_messages(write_log)
    with _bound(listening) as bound:
        Supervisor(bound, count, arguments, write_log).run(f"{LISTENING}={_shown(bound)}")


def run_server(
    server: Server,
    listening: Listening,
    inherited: socket.socket | None = None,
    files: Reloaded | None = None,
) -> None:
    """Serve until a signal says to stop: then finish what was begun, and return.

    A line on standard output says where it listens, once it does. A worker has ``inherited`` its socket.
    SIGHUP makes it read the operator's files again.
    """
    config = uvicorn.Config(
        server.application,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        http=Connection,
        proxy_headers=False,
        backlog=_BACKLOG if inherited is None else 1,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
        timeout_graceful_shutdown=int(server.settings.shutdown_seconds),
    )
    try:
        config.load()
    except OSError as error:
        raise RequestError(f"the certificate cannot be used: {error}") from None
    _take_all_files()
    take_messages(server.log)
    bound = inherited or _bound(listening)
    asyncio.run(_Uvicorn(config, server, _shown(bound), files or OperatorFiles()).serve([bound]))
    server.log("stopped")


def _take_all_files() -> None:
    """Let this process have as many open connections as the machine allows it, which is more than by default."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _shown(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _bound(listening: Listening) -> socket.socket:
    """A socket at the address; RequestError if it is taken or does not exist."""
    try:
        found = socket.getaddrinfo(listening.host, listening.port, type=socket.SOCK_STREAM)[0]
        family, kind, protocol, _, address = found
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        raise RequestError(f"cannot listen at {listening.host}:{listening.port}: {error}") from None
    return bound
