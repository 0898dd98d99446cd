"""The floor of a contest: answers written by hand in NumPy, over adjacency arrays that are built beforehand.

Nothing that plans, checks and explains itself gets below it with the same arrays, so it shows what is left to win.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from benchmarks.contest import FLOOR, Question, Row, Session

Ints = npt.NDArray[np.int64]
Answering = Callable[[Mapping[str, Any]], Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Neighbours in one direction: those of ``i`` are ``ends[starts[i]:starts[i + 1]]``, in ascending order."""

    starts: Ints
    ends: Ints

    @property
    def degrees(self) -> Ints:
        return np.diff(self.starts)

    @property
    def sources(self) -> Ints:
        """The other end of each of ``ends``."""
        return np.repeat(np.arange(len(self.starts) - 1), self.degrees)


def adjacency(src: Ints, dst: Ints, nodes: int) -> Adjacency:
    """Edges by their source."""
    order = np.lexsort((dst, src))
    starts = np.concatenate([[0], np.cumsum(np.bincount(src, minlength=nodes))])
    return Adjacency(starts.astype(np.int64), dst[order])


@dataclass(frozen=True, slots=True)
class Tables:
    """The columns of a graph's Parquet files. Ids count from one in the files and from zero in the arrays."""

    home: Path

    def column(self, table: str, name: str) -> Any:
        """A column as an array; texts as objects."""
        return pq.read_table(self.home / "tables" / f"{table}.parquet", columns=[name])[name].to_numpy()

    def size(self, table: str) -> int:
        """How many rows there are."""
        return int(pq.read_metadata(self.home / "tables" / f"{table}.parquet").num_rows)

    def forward(self, edge: str, nodes: int) -> Adjacency:
        """From source to target."""
        return adjacency(self.column(edge, "src") - 1, self.column(edge, "dst") - 1, nodes)

    def backward(self, edge: str, nodes: int) -> Adjacency:
        """From target to source."""
        return adjacency(self.column(edge, "dst") - 1, self.column(edge, "src") - 1, nodes)

    def single(self, edge: str) -> Ints:
        """The one target of every source."""
        return np.asarray(self.column(edge, "dst")[np.argsort(self.column(edge, "src"))] - 1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Floor:
    """The floor as a competitor. ``module`` has a function ``answering`` from tables to answers by question."""

    module: str
    name: str = FLOOR

    @property
    def modules(self) -> Sequence[str]:
        return [self.module]

    def version(self) -> str:
        return f"NumPy {version('numpy')}"

    def store(self) -> str:
        return "tables"

    def build(self, home: Path, to: Path) -> None:
        """The tables are there before anything is built."""

    def open(self, home: Path) -> Session:
        answers: Mapping[str, Answering] = importlib.import_module(self.module).answering(Tables(home))
        return _FloorSession(answers)


@dataclass(frozen=True, slots=True)
class _FloorSession:
    answers: Mapping[str, Answering]

    def ask(self, question: Question) -> Sequence[Row]:
        return self.answers[question.number](question.params)
