"""Running the real command, as a user would."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples" / "aviation"
MAIN = "from omnigraph.cli.main import main; main()"
COMMAND = [sys.executable, "-W", "error", "-c", MAIN]


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object it printed."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


def omnigraph(*args: str, stdin: bytes = b"", cwd: Path = EXAMPLES, command: Sequence[str] = COMMAND) -> Ran:
    """Run the command with its output in pipes."""
    ran = subprocess.run(
        [*command, *args], input=stdin, capture_output=True, cwd=cwd, env=_environment(), check=False, timeout=60
    )
    return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


def omnigraph_on_terminal(*args: str, cwd: Path = EXAMPLES) -> str:
    """Run the command on a terminal of its own and return what the terminal received."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *args],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        env=_environment({"TERM": "xterm-256color", "COLUMNS": "100"}),
    )
    os.close(theirs)
    received = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:
            break
        if not chunk:
            break
        received += chunk
    os.close(ours)
    process.wait(timeout=60)
    return received.decode()


def _environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The user's environment without what would switch colours on or off."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return kept | dict(more or {})
