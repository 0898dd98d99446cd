"""A process that has imported the engine once and forks the children of tests, which so start in milliseconds.

Lance warns of forks because its threads do not survive them; this process has none, for it only imports. Run as a
module it takes requests from the socket that is its standard input, and ends when that closes.

A request is one byte with five descriptors: the child's three standard streams, a pipe with its pickled task, and
a socket on which the server answers with the child's process id and, when it has ended, with how.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import pickle
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.cli.main import leave

ROOT = Path(__file__).parents[1]
PRELOADED = (
    "pytest",
    "tests.recovery.scenes",
    "tests.server.running",
    "tests.manifest.support",
    "tests.stores",
    "pydantic.type_adapter",  # which a command imports to take a value that is not plain
)
"""What is imported besides the engine and its commands."""
_NUMBER = struct.Struct("i")


@dataclass(frozen=True, slots=True)
class Task:
    """A function at the top of a module, its arguments, and the environment it runs in."""

    module: str
    function: str
    arguments: tuple[Any, ...]
    environment: Mapping[str, str]

    def run(self) -> None:
        os.environ.clear()
        os.environ.update(self.environment)
        getattr(importlib.import_module(self.module), self.function)(*self.arguments)


class Forked:
    """A child of the server, and the other ends of its standard input and output."""

    def __init__(self, task: Task) -> None:
        stdin, write = os.pipe()
        read, stdout = os.pipe()
        self._answers, theirs = socket.socketpair()
        request(task, [stdin, stdout, 2], theirs.fileno())
        for descriptor in (stdin, stdout):
            os.close(descriptor)
        theirs.close()
        self.stdin = os.fdopen(write, "w")
        self.stdout = os.fdopen(read)
        self.pid = self._answer()
        self._code: int | None = None

    @property
    def code(self) -> int | None:
        """How the child has ended, if it has: its exit code, or minus the number of the signal that killed it."""
        if self._code is None and select.select([self._answers], [], [], 0)[0]:
            self._code = self._answer()
        return self._code

    def wait(self, timeout: float) -> int:
        """Wait for the child to end; its code."""
        if self._code is None:
            self._answers.settimeout(timeout)
            self._code = self._answer()
        return self._code

    def kill(self) -> None:
        """Kill the child unless it has ended."""
        if self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self._answers.close()
        self.stdin.close()
        self.stdout.close()

    def _answer(self) -> int:
        (number,) = _NUMBER.unpack(self._answers.recv(_NUMBER.size))
        assert isinstance(number, int)
        return number


def request(task: Task, streams: Sequence[int], answers: int) -> None:
    """Have a task run with these standard streams; the server answers on a socket."""
    server = _server(task.environment.get("LD_PRELOAD"))
    tasks, write_task = os.pipe()
    socket.send_fds(server, [b"x"], [*streams, tasks, answers])
    os.close(tasks)
    with os.fdopen(write_task, "wb") as file:
        pickle.dump(task, file)


@cache
def _server(preload: str | None) -> socket.socket:
    """A server of this process. Libraries that are preloaded have to be so from the beginning."""
    ours, theirs = socket.socketpair()
    environment = {"LANCE_LOG": "error"} | {name: os.environ[name] for name in os.environ if name != "LD_PRELOAD"}
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tests.forkserver"],
        stdin=theirs.fileno(),
        env=environment | ({"LD_PRELOAD": preload} if preload else {}),
        cwd=ROOT,
    )
    theirs.close()

    @atexit.register
    def end() -> None:
        ours.close()
        process.wait()

    return ours


def main() -> None:
    engine = (found.name for found in pkgutil.walk_packages(omnigraph.__path__, "omnigraph."))
    for module in (*PRELOADED, *(name for name in engine if not name.startswith("omnigraph.spark"))):
        importlib.import_module(module)
    gc.freeze()
    ended, wakeup = socket.socketpair()
    with socket.socket(fileno=os.dup(0)) as requests, ended, wakeup:
        wakeup.setblocking(False)
        signal.set_wakeup_fd(wakeup.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        given = _fork(requests, ended)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
    if given is not None:
        _become(given)


def _fork(requests: socket.socket, ended: socket.socket) -> list[int] | None:
    """Fork a child for each request, until they end. In a child, the descriptors it is given."""
    children: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([requests, ended], [], [])
        if ended in ready:
            ended.recv(4096)
            _report(children)
        if requests in ready:
            message, given, *_ = socket.recv_fds(requests, 1, 5)
            if not message:
                return None
            *descriptors, answers = given
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="lance is not fork-safe")
                pid = os.fork()
            for descriptor in (*children.values(), answers) if pid == 0 else descriptors:
                os.close(descriptor)
            if pid == 0:
                return descriptors
            children[pid] = answers
            os.write(answers, _NUMBER.pack(pid))


def _report(children: dict[int, int]) -> None:
    """Tell how those have ended that have."""
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        answers = children.pop(pid)
        with suppress(BrokenPipeError):  # the parent has closed its end
            os.write(answers, _NUMBER.pack(os.waitstatus_to_exitcode(status)))
        os.close(answers)


def _become(descriptors: list[int]) -> None:
    """Be a child: with standard streams of its own, run its task and end as commands do. The interpreter is not
    taken apart, because all of it, which the server shares, would be copied for that."""
    *streams, task = descriptors
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    with os.fdopen(task, "rb") as file:
        wanted: Task = pickle.load(file)
    try:
        wanted.run()
    except SystemExit as end:
        leave(end)
    leave(SystemExit(0))


if __name__ == "__main__":
    main()
