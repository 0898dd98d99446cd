"""Standard output and error of a command: full, closed or read by nobody.

What a command has done is not undone by a report that finds no room. A report that cannot be written is told in
one line; what goes to standard error, as progress does, is left out if it cannot be written.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, Final, TextIO

_INPUT, _OUTPUT, _ERROR = range(3)
UNWRITTEN: Final = 1
"""The exit code of a command whose output cannot be written."""


class OutputFailed(Exception):
    """Standard output takes no more."""


class _Output(io.FileIO):
    """Standard output, whose failures are no others'. That a reader has gone away stays what it is."""

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputFailed(error.strerror or str(error)) from None


class _Notes(io.FileIO):
    """Standard error, which may fail."""

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except OSError:
            return len(memoryview(content).cast("B"))


def take_over() -> None:
    """Use this process's standard streams by these rules from now on."""
    _open_closed()
    sys.stdout = _text(_Output(_OUTPUT, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Notes(_ERROR, "w", closefd=False), sys.stderr)


def tell(failure: OutputFailed) -> None:
    """Say that standard output takes no more."""
    done = "what the command has done stays done"
    sys.stderr.write(f"error: standard output cannot be written: {failure}; {done}\n")
    sys.stderr.flush()


def _open_closed() -> None:
    """Keep the numbers of closed streams from files: a library that writes a message would write into one."""
    for number in (_INPUT, _OUTPUT, _ERROR):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free


def _text(raw: io.FileIO, before: TextIO | None) -> io.TextIOWrapper:
    """A text stream over a raw one, like the one before it; None is one that was closed. What was not buffered, as
    with PYTHONUNBUFFERED, goes out line by line, so that nothing is lost if only a part of it can be written."""
    old = before if isinstance(before, io.TextIOWrapper) else None
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if old is None else old.encoding,
        errors="backslashreplace" if old is None else old.errors,
        line_buffering=old is None or old.line_buffering or old.write_through,
    )
