"""Several server processes behind one address: a supervisor that starts them, and starts them again if they die.

The supervisor holds the listening socket and opens no graph; each worker is the same command in a process of its
own, which inherits the socket. A worker stops when the supervisor says so, and also when the supervisor is gone.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Final

from omnigraph.errors import RequestError
from omnigraph.server.observing.logs import Log

WORKER: Final = "OMNIGRAPH_SERVER_WORKER"
"""The variable that makes a process a worker: the numbers of its socket and of the supervisor's pipe."""
METRICS: Final = "OMNIGRAPH_SERVER_METRICS"
"""The variable that tells workers the folder in which each keeps its counts."""
_MAIN: Final = "from omnigraph.cli.main import main; main()"
_PAUSE: Final = 0.1
_OTHERS_TURN: Final = 0.0002
"""A worker that has accepted a connection lets so many seconds pass before the next one."""
_SHORTEST_LIFE: Final = 5.0
"""A worker that dies sooner after its start than so many seconds is started again only after a while."""
_LONGEST_PAUSE: Final = 10.0


def inherited_socket() -> socket.socket | None:
    """In a worker: the socket of its supervisor, whose end it watches from now on. None in any other process."""
    given = os.environ.pop(WORKER, None)
    if given is None:
        return None
    listening, pipe = (int(number) for number in given.split(","))
    threading.Thread(target=_stop_with_supervisor, args=(pipe,), daemon=True).start()
    return SharedSocket(listening)


def metrics_folder() -> Path | None:
    """In a worker: the folder in which all workers keep their counts. None in any other process."""
    given = os.environ.get(METRICS)
    return None if given is None else Path(given)


def _stop_with_supervisor(pipe: int) -> None:
    """Stop this process as an operator would, when the other end of a pipe is closed."""
    os.read(pipe, 1)
    os.kill(os.getpid(), signal.SIGTERM)


class SharedSocket(socket.socket):
    """The listening socket of several workers. Of connections that come together each takes one, and then lets the
    others take some, so that they are not all taken by the first to wake."""

    def __init__(self, fileno: int, others_turn: float = _OTHERS_TURN) -> None:
        super().__init__(fileno=fileno)
        self._others_turn = others_turn
        self._ready = 0.0

    def listen(self, _: int = 0, /) -> None:
        """Do nothing: the supervisor listens already, with room for more than a worker accepts at a time."""

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection; BlockingIOError if there is none, or others are to take it."""
        if time.monotonic() < self._ready:
            raise BlockingIOError
        accepted = super().accept()
        self._ready = time.monotonic() + self._others_turn
        return accepted


class Supervisor:
    """The workers of one address."""

    def __init__(self, listening: socket.socket, count: int, arguments: Sequence[str], log: Log) -> None:
        self._listening = listening
        self._count = count
        self._arguments = arguments
        self._log = log
        self._workers: list[_Worker] = []
        self._is_stopping = False
        self._watched, self._alive = os.pipe()
        self._metrics = TemporaryDirectory(prefix="omnigraph-")

    def run(self, announce: str) -> None:
        """Serve until a signal says to stop. ``announce`` is printed when all workers take requests."""
        handlers = {each: signal.signal(each, self._stop) for each in (signal.SIGINT, signal.SIGTERM)}
        handlers[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._reload)
        try:
            self._workers = [self._start() for _ in range(self._count)]
            if all(each.is_ready() for each in self._workers):
                sys.stdout.write(announce + "\n")
                sys.stdout.flush()
            elif not self._is_stopping:
                raise RequestError("a worker of the server did not start; it has said why")
            while not self._is_stopping:
                time.sleep(_PAUSE)
                self._replace_dead()
        finally:
            for each in self._workers:
                each.process.terminate()
            for each in self._workers:
                each.process.wait()
            self._metrics.cleanup()
            os.close(self._alive)
            os.close(self._watched)
            for each_signal, handler in handlers.items():
                signal.signal(each_signal, handler)

    def _stop(self, signum: int, _: FrameType | None) -> None:
        self._is_stopping = True
        self._log("stopping", signal=signum)
        for each in self._workers:
            each.process.terminate()

    def _reload(self, signum: int, _: FrameType | None) -> None:
        """Let each worker read the operator's files again."""
        for each in self._workers:
            each.process.send_signal(signum)

    def _start(self, failures: int = 0) -> _Worker:
        inherited = (self._listening.fileno(), self._watched)
        process = subprocess.Popen(  # noqa: S603  this program, with the arguments that it was started with
            [sys.executable, "-c", _MAIN, *self._arguments],
            env={**os.environ, WORKER: ",".join(map(str, inherited)), METRICS: self._metrics.name},
            pass_fds=inherited,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        self._log("worker_started", process=process.pid)
        return _Worker(process, failures)

    def _replace_dead(self) -> None:
        """Start a worker for each one that has died, after a pause if it was its fault."""
        for place, dead in enumerate(self._workers):
            code = dead.process.poll()
            if code is None or self._is_stopping:
                continue
            failures = dead.failures + 1 if time.monotonic() - dead.started < _SHORTEST_LIFE else 0
            self._log("worker_died", process=dead.process.pid, code=code)
            if failures:
                time.sleep(min(_LONGEST_PAUSE, 0.1 * 2**failures))
            if not self._is_stopping:
                self._workers[place] = self._start(failures)
                threading.Thread(target=self._workers[place].is_ready, daemon=True).start()


class _Worker:
    """One worker process, and how often in a row it has died right after its start."""

    def __init__(self, process: subprocess.Popen[bytes], failures: int) -> None:
        self.process = process
        self.failures = failures
        self.started = time.monotonic()

    def is_ready(self) -> bool:
        """Wait until it takes requests, or has ended."""
        assert self.process.stdout is not None  # noqa: S101  it was started with a pipe
        with self.process.stdout as said:
            return bool(said.readline())
