"""Fuzzing both languages for a while: `python -m tests.fuzz.run --seconds 60 [--seed N]`.

An input that ends in anything but an answer or a LanguageError, or that takes far longer for its size than
others, is saved in `tests/fuzz/crashes` with the seed that found it, and the run fails.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
import traceback
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from tests.fuzz.mutations import mutate
from tests.fuzz.seeds import Seed, seeds
from tests.fuzz.target import Outcome, exercise_queries, exercise_schema

CRASHES: Final = Path(__file__).parent / "crashes"
TOO_SLOW: Final = 50
"""An input may take this many times the usual time per byte."""

_NO_TEXT: Final = ("P005",)
_OVERHEAD_BYTES: Final = 400
_SLOW_SECONDS: Final = 0.05
_LARGEST_CORPUS: Final = 5000


@dataclass(slots=True)
class Fuzzer:
    """One run: what it starts from, what it has seen, and what it has found."""

    corpus: list[Seed]
    seed: int
    random: Random
    executions: int = 0
    rates: list[float] = field(default_factory=list)
    outcomes: set[tuple[str, Outcome]] = field(default_factory=set)
    crashes: dict[str, str] = field(default_factory=dict)

    def step(self) -> None:
        """Change one input at random and run it."""
        chosen = self.random.choice(self.corpus)
        others = [self.random.choice(self.corpus).text for _ in range(4)]
        self.run(Seed(chosen.language, mutate(chosen.text, others, self.random), chosen.catalog))

    def run(self, given: Seed) -> None:
        """Run one input; keep it if its outcome is new, and save it if it is a bug."""
        self.executions += 1
        started = time.thread_time()
        try:
            outcome = exercise(given)
        except Exception:  # noqa: BLE001  any exception is a finding
            self.save(given, traceback.format_exc())
            return
        if outcome != _NO_TEXT:
            self._judge_speed(given, time.thread_time() - started)
        key = given.language, outcome
        if key not in self.outcomes and len(self.corpus) < _LARGEST_CORPUS:
            self.outcomes.add(key)
            self.corpus.append(given)

    def _judge_speed(self, given: Seed, seconds: float) -> None:
        """Compare with the usual rate; what looks slow is run again, since machines have pauses."""
        size = len(given.text) + _OVERHEAD_BYTES
        usual = self.rates[len(self.rates) // 2] if len(self.rates) > 100 else None
        if usual is not None and seconds > _SLOW_SECONDS and seconds / size > TOO_SLOW * usual:
            seconds = min(seconds, *(_seconds(given) for _ in range(3)))
            if seconds > _SLOW_SECONDS and seconds / size > TOO_SLOW * usual:
                self.save(given, f"{seconds:.3f} s for {len(given.text)} bytes, usually {usual * size:.4f} s")
        if self.executions % 20 == 0 and len(self.rates) < 10_000:
            insort(self.rates, seconds / size)

    def save(self, given: Seed, reason: str) -> None:
        """Write an input down so that it can be run again; each reason once."""
        if reason in self.crashes.values():
            return
        name = hashlib.sha256(given.text).hexdigest()[:16]
        self.crashes[name] = reason
        CRASHES.mkdir(exist_ok=True)
        header = f"seed {self.seed}\nlanguage {given.language}\nbytes {given.text!r}\n\n"
        body = header + reason + "\n\n" + given.text.decode("utf-8", "replace")
        (CRASHES / f"{name}.txt").write_text(body, encoding="utf-8")


def exercise(given: Seed) -> Outcome:
    """Everything there is to do with an input."""
    if given.language == "pg":
        return exercise_schema(given.text)
    return exercise_queries(given.text, given.catalog)


def _seconds(given: Seed) -> float:
    started = time.thread_time()
    exercise(given)
    return time.thread_time() - started


def fuzz(seconds: float, seed: int) -> Fuzzer:
    """Run all seeds once, and then mutations of them until the time is over."""
    corpus = seeds()
    fuzzer = Fuzzer(corpus=list(corpus), seed=seed, random=Random(seed))
    for given in corpus:
        fuzzer.run(given)
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        fuzzer.step()
    return fuzzer


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz, say what was done, and fail if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description="Fuzz both languages.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="repeat the run that used this seed")
    given = parser.parse_args(arguments)
    seed = given.seed if given.seed is not None else time.time_ns() % 2**32
    started = time.monotonic()
    fuzzer = fuzz(given.seconds, seed)
    for name, reason in fuzzer.crashes.items():
        sys.stdout.write(f"\n{CRASHES / name}.txt\n{reason}\n")
    rate = fuzzer.executions / (time.monotonic() - started)
    sys.stdout.write(
        f"{fuzzer.executions:,} inputs, {rate:,.0f} per second, {len(fuzzer.outcomes):,} different outcomes, "
        f"{len(fuzzer.crashes)} findings, seed {seed}\n"
    )
    return 1 if fuzzer.crashes else 0


if __name__ == "__main__":
    sys.exit(main())
