"""Running the command: in this process, which is quick, or in one of its own, as a user would.

`tests/cli/test_processes.py` checks that both give the same.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

from omnigraph.cli.main import app, run

EXAMPLES = Path(__file__).parents[2] / "examples" / "aviation"
MAIN = "import sys; sys.argv[0] = 'omnigraph'; from omnigraph.cli.main import main; main()"
COMMAND = [sys.executable, "-W", "error", "-c", MAIN]
UNSET = ("NO_COLOR", "FORCE_COLOR", "COLUMNS")
"""What would switch colours on or off."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run of the command left behind."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        return self.stdout.decode()

    @property
    def err(self) -> str:
        return self.stderr.decode()

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object it printed."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


def every_command() -> set[str]:
    """All commands by the words that call them: `query`, `branch list`, …"""
    found = set()
    for verb, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        found |= {f"{verb} {each}" for each in getattr(command, "commands", ())} or {verb}
    return found


class _Pipe(io.TextIOWrapper):
    """A standard stream that ends in memory, with the error handler Python gives that stream."""

    def __init__(self, content: bytes = b"", errors: str = "strict") -> None:
        self.memory = io.BytesIO(content)
        super().__init__(self.memory, encoding="utf-8", errors=errors, newline="", write_through=True)


def omnigraph(*args: str, stdin: bytes = b"", cwd: Path = EXAMPLES) -> Ran:
    """Run the command in this process, with its standard streams in memory; a warning is an error."""
    given, out, err = _Pipe(stdin), _Pipe(), _Pipe(errors="backslashreplace")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in UNSET:
            patch.delenv(name, raising=False)
        patch.setenv("COLUMNS", "80")  # what a pipe has
        patch.setitem(sys.modules, "__main__", ModuleType("__main__"))  # whose package would be in usage messages
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["omnigraph", *args])
        patch.setattr(sys, "stdin", given)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                run()
                code: object = 0
            except SystemExit as exit_:
                code = exit_.code or 0
    assert isinstance(code, int)
    return Ran(code, out.memory.getvalue(), err.memory.getvalue())


def omnigraph_process(
    *args: str, stdin: bytes = b"", cwd: Path = EXAMPLES, command: Sequence[str] = COMMAND
) -> Ran:
    """Run the command in a process of its own, with its output in pipes."""
    ran = subprocess.run(
        [*command, *args], input=stdin, capture_output=True, cwd=cwd, env=_environment(), check=False, timeout=60
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


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
    kept = {k: v for k, v in os.environ.items() if k not in UNSET}
    return kept | dict(more or {})
