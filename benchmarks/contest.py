"""Questions put to several engines: each in a process of its own, cold and warm, with answers that must agree.

Engines take turns, so that whatever else the machine does meets all of them alike. A question is answered when
Python has the rows. Opening its store is part of cold; importing an engine's modules is measured apart, in
processes that import nothing else, and added where a table says so.
"""

from __future__ import annotations

import importlib
import math
import multiprocessing as mp
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Protocol

Row = tuple[Any, ...]
FLOOR: Final = "floor"
OURS: Final = "omnigraph"
_PATIENCE: Final = 180.0


class CannotAnswer(Exception):
    """The engine has no way to say this question."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question in every dialect; ``refused`` says why a dialect has none."""

    name: str
    texts: Mapping[str, str]
    params: Mapping[str, object] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def number(self) -> str:
        return self.name.split()[0]

    def text(self, *dialects: str) -> str:
        """The question in the first of some dialects it exists in."""
        if dialects[0] in self.refused:
            raise CannotAnswer(self.refused[dialects[0]])
        return next(self.texts[dialect] for dialect in dialects if dialect in self.texts)


class Session(Protocol):
    """An engine with its store open."""

    def ask(self, question: Question) -> Sequence[Row]: ...


class Engine(Protocol):
    """A competitor, with a store of its own in the folder ``home``. Instances travel to other processes."""

    @property
    def name(self) -> str: ...

    @property
    def modules(self) -> Sequence[str]: ...

    def version(self) -> str: ...

    def store(self) -> str: ...

    def build(self, home: Path, to: Path) -> None: ...

    def open(self, home: Path) -> Session: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """How long each run took, and what came back; or what went wrong."""

    seconds: tuple[float, ...] = ()
    rows: tuple[Row, ...] = ()
    problem: str | None = None
    cpu: tuple[float, ...] = ()
    """Seconds of all processors in each run, threads included."""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


Answers = dict[tuple[str, str], Answer]
"""By engine and question."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a question is put: in rounds, among which the engines take turns, so many times each.

    An engine that has used its ``budget`` of seconds for a question is not asked again.
    """

    warmups: int = 3
    repeats: int = 5
    rounds: int = 3
    budget: float = 10.0
    cold: int = 3


class Worker:
    """An engine in a process of its own, which is replaced when it dies or does not answer."""

    def __init__(self, engine: Engine, home: Path) -> None:
        self.engine, self._home = engine, home
        self._context = mp.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self._pipe, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_serve, args=(self.engine, self._home, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def put(self, question: Question, warmups: int, repeats: int, budget: float) -> Answer:
        """The answer; a store not yet open is opened within the first run."""
        self._pipe.send((question, warmups, repeats, budget))
        try:
            if self._pipe.poll(_PATIENCE + budget):
                answer = self._pipe.recv()
                assert isinstance(answer, Answer)
                return answer
            problem = f"no answer within {_PATIENCE + budget:.0f} s"
        except (EOFError, ConnectionError):
            problem = "its process died"
        self._process.kill()
        self._process.join()
        self._start()
        return Answer(problem=problem)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()


def _serve(engine: Engine, home: Path, pipe: Connection) -> None:
    for module in engine.modules:
        importlib.import_module(module)
    session: Session | None = None
    while True:
        question, warmups, repeats, budget = pipe.recv()
        seconds: list[float] = []
        cpu: list[float] = []
        rows: Sequence[Row] = []
        try:
            for turn in range(warmups + repeats):
                start, used = time.perf_counter(), time.process_time()
                session = engine.open(home) if session is None else session
                rows = session.ask(question)
                seconds.append(time.perf_counter() - start)
                cpu.append(time.process_time() - used)
                if turn and sum(seconds) > budget:
                    break
        except CannotAnswer as error:
            pipe.send(Answer(problem=str(error)))
            continue
        except Exception as error:  # noqa: BLE001  whatever a peer raises is its answer
            pipe.send(Answer(problem=f"{type(error).__name__}: {error}"))
            continue
        some = slice(warmups if len(seconds) > warmups else 1, None)
        pipe.send(Answer(tuple(seconds[some]), tuple(rows), cpu=tuple(cpu[some])))


def warm(engines: Sequence[Engine], home: Path, questions: Sequence[Question], pace: Pace) -> Answers:
    """Every question to every engine, in processes that stay."""
    workers = [Worker(engine, home) for engine in engines]
    try:
        return {
            (worker.engine.name, question.name): answer
            for question in questions
            for worker, answer in zip(workers, _rounds(workers, question, pace), strict=True)
        }
    finally:
        for worker in workers:
            worker.close()


def _rounds(workers: Sequence[Worker], question: Question, pace: Pace) -> list[Answer]:
    answers = [worker.put(question, pace.warmups, pace.repeats, pace.budget) for worker in workers]
    for _ in range(pace.rounds - 1):
        for index, worker in enumerate(workers):
            so_far = answers[index]
            if so_far.problem is None and sum(so_far.seconds) < pace.budget:
                more = worker.put(question, 1, pace.repeats, pace.budget)
                answers[index] = more if more.problem else replace(more, seconds=so_far.seconds + more.seconds)
    return answers


def cold(engines: Sequence[Engine], home: Path, questions: Sequence[Question], pace: Pace) -> Answers:
    """Every question as the first one in a fresh process, opening included."""
    found: Answers = {}
    for question, _, engine in product(questions, range(pace.cold), engines):
        so_far = found.get((engine.name, question.name), Answer())
        if so_far.problem is None:
            again = _cold(engine, home, question, pace)
            found[engine.name, question.name] = replace(again, seconds=so_far.seconds + again.seconds)
    return found


def imports(engines: Sequence[Engine], rounds: int) -> dict[str, float]:
    """How long a bare process takes, from its start, until each engine's modules are imported: medians. It ends
    there, because the interpreter takes itself apart behind the first answer."""
    seconds: dict[str, list[float]] = {engine.name: [] for engine in engines}
    for _, engine in product(range(rounds), engines):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import os, {', '.join(engine.modules)}; os._exit(0)"], check=True)
        seconds[engine.name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def with_imports(answers: Answers, imported: Mapping[str, float]) -> Answers:
    """Cold answers with the time that their engine's imports take."""
    return {
        key: replace(answer, seconds=tuple(each + imported[key[0]] for each in answer.seconds))
        for key, answer in answers.items()
    }


def _cold(engine: Engine, home: Path, question: Question, pace: Pace) -> Answer:
    worker = Worker(engine, home)
    try:
        return worker.put(question, 0, 1, pace.budget)
    finally:
        worker.close()


def compiled_bytecode(folder: Path) -> dict[str, str]:
    """The environment in which Python keeps compiled bytecode in a folder: installed packages have theirs, so an
    environment that forbids Python to write it would count compiling."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder)}


def mismatches(answers: Answers, reference: str) -> Iterator[str]:
    """Where an engine says something else than the reference."""
    for (name, about), answer in answers.items():
        expected = answers[reference, about]
        if answer.problem is None and not _equal(answer.rows, expected.rows):
            yield f"{about}: {name} says {list(answer.rows)}, {reference} says {list(expected.rows)}"


def _equal(rows: Sequence[Row], others: Sequence[Row]) -> bool:
    return [len(row) for row in rows] == [len(row) for row in others] and all(
        _same(value, other) for pair in zip(rows, others, strict=True) for value, other in zip(*pair, strict=True)
    )


def _same(value: object, other: object) -> bool:
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=1e-9)
    return value == other
