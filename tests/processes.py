"""Other processes for tests: real ones, which can be killed, stopped and talked to.

`Child(work, store, 5)` runs ``work(store, 5)`` in a new interpreter. The function lives at the top of a module; it
says and hears lines of text, and so does its parent.
"""

from __future__ import annotations

import importlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

PATIENCE = float(os.environ.get("OMNIGRAPH_TEST_PATIENCE", "120"))
"""How long a parent waits for a line before it calls a child hung, in seconds."""


class Child:
    """A process that runs one function."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        task = b64encode(pickle.dumps((work.__module__, work.__name__, arguments))).decode()
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.processes", task],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        self._heard: queue.Queue[str | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._heard.put(line.rstrip("\n"))
        self._heard.put(None)

    @property
    def pid(self) -> int:
        return self._process.pid

    def hear(self) -> str:
        """The next line the child said."""
        line = self._heard.get(timeout=PATIENCE)
        assert line is not None, f"the child ended with {self._process.wait(PATIENCE)} and said nothing more"
        return line

    def say(self, line: str = "") -> None:
        """Send the child a line."""
        assert self._process.stdin
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """End the child as a power cut would."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def pause(self) -> None:
        """Freeze the child where it is."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen child go on."""
        os.kill(self.pid, signal.SIGCONT)

    def join(self) -> None:
        """Wait for the child to end well."""
        assert self._process.wait(PATIENCE) == 0

    def close(self) -> None:
        """Leave nothing of the child behind."""
        self._process.kill()
        self._process.wait(PATIENCE)
        self._listener.join(PATIENCE)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe
            pipe.close()


@contextmanager
def children(*tasks: Sequence[Any]) -> Iterator[list[Child]]:
    """One child for each task, a function and its arguments. None of them outlives the block."""
    with ExitStack() as stack:
        started = []
        for work, *arguments in tasks:
            child = Child(work, *arguments)
            stack.callback(child.close)
            started.append(child)
        yield started


def start_together(started: Sequence[Child]) -> None:
    """Wait until each child has called `ready`, then let all of them go at once."""
    for child in started:
        assert child.hear() == "ready"
    for child in started:
        child.say("go")


def say(line: object = "") -> None:
    """In a child: send the parent a line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def hear() -> str:
    """In a child: the next line from the parent."""
    return sys.stdin.readline().rstrip("\n")


def ready() -> None:
    """In a child: report for duty and wait for the others."""
    say("ready")
    hear()


def main() -> None:
    module, name, arguments = pickle.loads(b64decode(sys.argv[1]))
    getattr(importlib.import_module(module), name)(*arguments)


if __name__ == "__main__":
    main()
