"""Engines that are written to and asked in turn, each in a process of its own with a copy of its store."""

from __future__ import annotations

import multiprocessing as mp
import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Protocol

from benchmarks.contest import Question, Row

_PATIENCE: Final = 600.0


class Engine(Protocol):
    """A store that is written to and asked in turn."""

    def ask(self, question: Question) -> Sequence[Row]: ...

    def write(self, kind: str, number: int) -> None: ...


class Maker(Protocol):
    """Fills a store of its own in a folder."""

    def store(self) -> str: ...

    def build(self, home: Path, to: Path) -> None: ...


@dataclass(frozen=True, slots=True)
class Contestant:
    """An engine: the package it needs, how its store is filled, how that is opened, and the data it was filled
    from."""

    name: str
    package: str
    maker: Maker
    open: Callable[[Path, Path], Engine]
    data: Path

    def fill(self, home: Path) -> None:
        """Fill the store in a process of its own, unless it is there."""
        store = home / self.maker.store()
        if store.exists():
            return
        part = home / f"part-{self.maker.store()}"
        (shutil.rmtree if part.is_dir() else Path.unlink)(part) if part.exists() else None
        process = mp.get_context("spawn").Process(target=self.maker.build, args=(home, part))
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(f"{self.name} could not be filled")
        part.rename(store)


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds: of the warm question, of the write, of the question after it; and the last answer. Or what is in
    the way of an answer."""

    warm: float = 0.0
    write: float = 0.0
    after: float = 0.0
    rows: Sequence[Row] = ()
    problem: str | None = None

    def __str__(self) -> str:
        if self.problem is not None:
            return "n/a"
        times = " / ".join(f"{seconds * 1e3:.1f}" for seconds in (self.warm, self.write, self.after))
        return f"{times} (×{self.after / self.warm:.1f})"


class Served:
    """A contestant in a process of its own."""

    def __init__(self, contestant: Contestant, home: Path, work: Path) -> None:
        self.name = contestant.name
        store, copy = home / contestant.maker.store(), work / contestant.maker.store()
        (shutil.copytree if store.is_dir() else shutil.copy)(store, copy)
        context = mp.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = (contestant.open, copy, contestant.data, theirs)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def measured(self, question: Question, kind: str, rounds: int, first: int) -> Measured:
        """Medians of some rounds."""
        try:
            self._pipe.send((question, kind, rounds, first))
            if self._pipe.poll(_PATIENCE):
                found = self._pipe.recv()
                assert isinstance(found, Measured)
                return found
        except (EOFError, ConnectionError):
            return Measured(problem="its process died")
        return Measured(problem=f"no answer within {_PATIENCE:.0f} s")

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()


def _serve(open_: Callable[[Path, Path], Engine], store: Path, data: Path, pipe: Connection) -> None:
    engine = open_(store, data)
    while True:
        asked = pipe.recv()
        try:
            pipe.send(_measured(engine, *asked))
        except Exception as error:  # noqa: BLE001  whatever a peer raises is its answer
            pipe.send(Measured(problem=f"{type(error).__name__}: {error}"))


def _measured(engine: Engine, question: Question, kind: str, rounds: int, first: int) -> Measured:
    warm, writes, after = [], [], []
    engine.ask(question)
    rows: Sequence[Row] = []
    for number in range(first, first + rounds):
        warm.append(_timed(lambda: engine.ask(question))[0])
        writes.append(_timed(lambda number=number: engine.write(kind, number))[0])  # type: ignore[misc]
        seconds, rows = _timed(lambda: engine.ask(question))
        after.append(seconds)
    median = statistics.median
    return Measured(median(warm), median(writes), median(after), rows)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    found = work()
    return time.perf_counter() - begin, found
