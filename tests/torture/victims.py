"""Running writers, as the one who started them sees them: they are stopped, continued and killed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tests.faults import disk
from tests.forkserver import Forked, Task
from tests.processes import PATIENCE
from tests.torture.arenas import Arena
from tests.torture.check import Broken
from tests.torture.fates import Fate
from tests.torture.writers import live


class Victim:
    """A writer in a process of its own, and what is still going to happen to it."""

    def __init__(self, arena: Arena, log: Path, name: str, fate: Fate) -> None:
        self.role = fate.role
        self._name, self._fate, self._log = name, fate, log
        task = Task(live.__module__, live.__name__, (arena.store, name, fate, log), disk.environment())
        self._process = Forked(task)
        self._launched = time.monotonic()
        self._began: float | None = None
        self._stopped_since: float | None = None
        self._stop_due = fate.stopped_when is not None

    def watch(self, counts: Counter[str]) -> bool:
        """Do what is due; False when the writer's time is over. Its clock runs from its first note on."""
        now = time.monotonic()
        if self._process.code is not None:
            return False
        if self._began is None:
            if self._log.exists():
                self._began = now
            return now - self._launched < PATIENCE
        if self._is_stopped():
            self._stopped_since = self._stopped_since or now
            if now - self._stopped_since > self._fate.stopped_for:
                self._send(signal.SIGCONT)
                self._stopped_since = None
                counts["stops"] += 1
        elif self._stop_due and now - self._began > (self._fate.stopped_when or 0.0):
            self._stop_due = False
            self._send(signal.SIGSTOP)
        return now - self._began < self._fate.lifetime + self._fate.stopped_for

    def _send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def _is_stopped(self) -> bool:
        try:
            return Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        except OSError:
            return False

    def end(self) -> str:
        """Kill it if it still lives; where it died. A writer that ends by itself has met a problem."""
        died = self._process.code
        stopped = died is None and self._is_stopped()
        self._process.kill()
        self._process.wait(PATIENCE)
        self._process.close()
        if died is None:
            return "while stopped" if stopped else "any moment"
        if died != -signal.SIGKILL:
            raise Broken(f"writer {self._name} ended with {died}; what it met is on standard error")
        return str(self._fate.killed_at)


class Orphans:
    """The children that writers have forked and left behind."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._ended: set[Path] = set()

    def end(self) -> int:
        """Hear what each child was told when it tried to use the graph, and end it; how many there were."""
        found = 0
        for log in sorted(set(self._logs.glob("*.fork")) - self._ended):
            self._ended.add(log)
            if log.read_text():  # otherwise the writer died before it forked
                found += 1
                self._end_one(log)
        return found

    def _end_one(self, log: Path) -> None:
        deadline = time.monotonic() + PATIENCE
        while len(lines := log.read_text().splitlines()) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        with suppress(ProcessLookupError):
            os.kill(json.loads(lines[0])["pid"], signal.SIGKILL)
        if len(lines) < 2:
            raise Broken(f"the forked child of {log.stem} got no answer")
        answers = json.loads(lines[1])["answers"]
        if set(answers) != {"ForkedProcess"}:
            raise Broken(f"the forked child of {log.stem} was told {answers}")
