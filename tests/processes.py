"""Other processes for tests: real ones, which can be killed, stopped and talked to.

`Child(work, store, 5)` runs ``work(store, 5)`` in a process of its own. The function lives at the top of a module;
it says and hears lines of text, and so does its parent.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.forkserver import Forked, Task

from omnigraph import failpoints

PATIENCE = float(os.environ.get("OMNIGRAPH_TEST_PATIENCE", "120"))
"""How long a parent waits for a line before it calls a child hung, in seconds."""


class Child:
    """A process that runs one function."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        self._process = Forked(Task(work.__module__, work.__name__, arguments, dict(os.environ)))
        self._heard: queue.Queue[str | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
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

    def heard(self) -> list[str]:
        """All lines that the child has said when it has ended, in whichever way."""
        return list(iter(partial(self._heard.get, timeout=PATIENCE), None))

    def say(self, line: str = "") -> None:
        """Send the child a line."""
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

    @property
    def is_frozen(self) -> bool:
        return "\nState:\tT" in Path(f"/proc/{self.pid}/status").read_text()

    def join(self) -> None:
        """Wait for the child to end well."""
        code = self._process.wait(PATIENCE)
        assert code == 0, f"the child ended with {code}"

    def join_killed(self) -> None:
        """Wait for the child to be killed."""
        assert self._process.wait(PATIENCE) == -signal.SIGKILL

    def close(self) -> None:
        """Leave nothing of the child behind."""
        self.kill()
        self._listener.join(PATIENCE)
        self._process.close()


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


def see_killed(failpoint: str, work: Callable[..., None], *arguments: Any) -> None:
    """Run a function in a process of its own and see it die at a failpoint."""
    with children((_be_killed, failpoint, work, *arguments)) as (child,):
        child.join_killed()


def _be_killed(failpoint: str, work: Callable[..., None], *arguments: Any) -> None:
    with failpoints.armed(failpoint, failpoints.die):
        work(*arguments)


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
