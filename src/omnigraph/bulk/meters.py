"""How far running tasks are: each notes what it has read so far in a place of its own, where its runner can look.

The places are in a small file that tasks of other processes of this machine map into their memory too. A task on
another machine finds no such file; its progress is then known when it is done.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

_PLACE: Final = np.dtype([("rows", "<i8"), ("bytes", "<i8"), ("of", "<i8")])
"""What a task has read, and how many bytes it has to read; -1 once it is done and counted otherwise."""

_here: ContextVar[npt.NDArray[np.void] | None] = ContextVar("omnigraph_task_place", default=None)
_check: ContextVar[Callable[[], None] | None] = ContextVar("omnigraph_task_check", default=None)


@dataclass(frozen=True, slots=True)
class Partial:
    """What all running tasks together have done: rows, bytes, and how many tasks' worth of work that is."""

    rows: int = 0
    bytes: int = 0
    tasks: float = 0.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task notes how far it is; it can be sent to another process."""

    path: str
    number: int

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Let `note` of this thread write here, from nothing; without the file it goes unnoted."""
        try:
            with Path(self.path).open("r+b") as file:
                shared = mmap.mmap(file.fileno(), 0)
        except (OSError, ValueError):
            yield
            return
        place = np.frombuffer(shared, _PLACE, 1, self.number * _PLACE.itemsize)
        place[:] = 0
        before = _here.set(place)
        try:
            yield
        finally:
            _here.reset(before)
            place["of"] = -1


@contextmanager
def checked(check: Callable[[], None]) -> Iterator[None]:
    """Let `note` of this thread call a function, which may raise an error to end the task."""
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


def note(rows: int = 0, size: int = 0, of: int | None = None) -> None:
    """Say that the running task has done so many more rows and bytes, or how many bytes it has in all.

    If its job is to end, a task of this process ends here, with the error that says so."""
    check = _check.get()
    if check is not None:
        check()
    place = _here.get()
    if place is None:
        return
    place["rows"] += rows
    place["bytes"] += size
    if of is not None:
        place["of"] = of


class Meters:
    """The places of the tasks of one step, while it runs."""

    def __init__(self, tasks: int) -> None:
        self._file = tempfile.NamedTemporaryFile(prefix="omnigraph-progress-")  # noqa: SIM115  `close` closes it
        self._file.truncate(max(1, tasks) * _PLACE.itemsize)
        self._shared = mmap.mmap(self._file.fileno(), 0)
        self._places: npt.NDArray[np.void] = np.frombuffer(self._shared, _PLACE)

    def place(self, number: int) -> Place:
        return Place(self._file.name, number)

    def partial(self) -> Partial:
        """What the tasks that are not done have done so far."""
        running = self._places[self._places["of"] >= 0]
        known = running[running["of"] > 0]
        shares = np.minimum(known["bytes"] / known["of"], 1.0) if len(known) else np.zeros(0)
        return Partial(int(running["rows"].sum()), int(running["bytes"].sum()), float(shares.sum()))

    def close(self) -> None:
        """Remove the file."""
        self._file.close()
