"""Writing to a store in processes of its own, and measuring what it costs to use, each time in a fresh process."""

from __future__ import annotations

import gc
import json
import multiprocessing as mp
import statistics
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

from benchmarks.aging.engines import Engine, Session
from benchmarks.aging.work import BLOCK, neighbour, step, steps, survivor

OPENS: Final = 5
WARM: Final = 10
"""How many steps go before those that are measured."""


class Meter(Protocol):
    """Counts what a process asks of its store. Instances travel to other processes."""

    def read(self) -> tuple[int, int]:
        """Requests and bytes, both ways, since the start."""


@dataclass(frozen=True, slots=True)
class ServerMeter:
    """Asks the server on which the store lies."""

    endpoint: str

    def read(self) -> tuple[int, int]:
        with urllib.request.urlopen(f"{self.endpoint}/-/traffic") as answer:
            traffic: dict[str, Any] = json.loads(answer.read())
        return sum(traffic["operations"].values()), traffic["received"] + traffic["sent"]


@dataclass(frozen=True, slots=True)
class ProcessMeter:
    """Asks the kernel how often this process has read and written files. Memory maps are not counted."""

    def read(self) -> tuple[int, int]:
        lines = (line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
        io = {name: int(value) for name, value in lines}
        return io["syscr"] + io["syscw"], io["rchar"] + io["wchar"]


@dataclass(frozen=True, slots=True)
class Cost:
    """The medians of one verb: milliseconds, requests and bytes of its store."""

    milliseconds: float
    requests: float
    bytes: float


Costs = Mapping[str, Cost]
"""By verb: open, write, look-up, one hop."""


@dataclass(slots=True)
class _Samples:
    meter: Meter
    taken: dict[str, list[tuple[float, int, int]]]

    def of(self, verb: str, work: Callable[[], object]) -> object:
        """Do a piece of work and keep what it took."""
        before, again = self.meter.read(), self.meter.read()
        began = time.perf_counter()
        made = work()
        seconds = time.perf_counter() - began
        after = self.meter.read()
        # Reading the meter may count as well, each time as much.
        requests, size = (end - 2 * start + first for first, start, end in zip(before, again, after, strict=True))
        self.taken.setdefault(verb, []).append((seconds * 1000, requests, size))
        return made

    def costs(self) -> Costs:
        return {
            verb: Cost(*map(statistics.median, zip(*taken, strict=True))) for verb, taken in self.taken.items()
        }


def apart(work: Callable[..., object], calls: Sequence[tuple[object, ...]]) -> None:
    """Do some work in fresh processes, all at once."""
    with ProcessPoolExecutor(len(calls), mp_context=mp.get_context("spawn")) as pool:
        for task in [pool.submit(work, *arguments) for arguments in calls]:
            task.result()


def measured(engine: Engine, meter: Meter, writer: str, window: int) -> Costs:
    """What opening, writing and reading cost, in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=mp.get_context("spawn")) as pool:
        return pool.submit(_measure, engine, meter, writer, window).result()


def write(engine: Engine, writer: str, start: int, count: int) -> None:
    """Make the next writes of a writer, one commit each."""
    session = engine.open()
    for each in islice(steps(writer, start), count):
        session.do(each)
    session.close()


def _measure(engine: Engine, meter: Meter, writer: str, window: int) -> Costs:
    """Writes of a writer of its own, and reads of what those have left, each after another write."""
    samples = _Samples(meter, {})
    engine.open().close()
    gc.disable()
    for _ in range(OPENS):
        session = samples.of("open", engine.open)
        session.close()  # type: ignore[attr-defined]
        gc.collect()
    session = engine.open()
    for each in islice(steps(writer), WARM):
        session.do(each)
    _use(session, samples, writer, window)
    session.close()
    return samples.costs()


def _use(session: Session, samples: _Samples, writer: str, window: int) -> None:
    for position in range(WARM, WARM + window):
        block = position // BLOCK - 1
        samples.of("write", lambda at=position: session.do(step(writer, at)))  # type: ignore[misc]
        age = samples.of("look-up", lambda at=block: session.age(neighbour(writer, at)))  # type: ignore[misc]
        known = samples.of("one hop", lambda at=block: session.known(survivor(writer, at)))  # type: ignore[misc]
        if age != [40] or known != [neighbour(writer, block)]:
            raise AssertionError(f"{writer} found {age} and {known} after write {position}")
