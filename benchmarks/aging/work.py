"""The work that ages a store: one-row writes of nodes and edges, the same for every engine.

As much is deleted as is inserted, so that what changes with time is the number of commits and not that of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["insert", "update", "delete", "connect", "disconnect"]

BLOCK: Final = 10
"""How many steps a block has. It leaves two people and one edge, which the block after the next one deletes."""

POPULATION: Final = 1_000
"""How many people there are before the first step, each with an edge to the next one."""


@dataclass(frozen=True, slots=True)
class Step:
    """One write: a person is inserted, updated or deleted, or an edge from a person to another is."""

    kind: Kind
    name: str
    other: str = ""
    age: int = 0


def steps(writer: str, start: int = 0) -> Iterator[Step]:
    """The writes of one writer, from a position on, without end; no two writers touch the same person."""
    while True:
        yield step(writer, start)
        start += 1


def step(writer: str, position: int) -> Step:
    """The write at one position: five inserts of nodes and edges, an update, an edge and three nodes deleted."""
    block, turn = divmod(position, BLOCK)
    first, second, third = f"{writer}-{block}-a", survivor(writer, block), neighbour(writer, block)
    if turn >= BLOCK - 2 and block < 2:
        return Step("update", second, age=turn)
    return (
        Step("insert", first, age=1),
        Step("insert", second, age=2),
        Step("connect", first, second),
        Step("insert", third, age=3),
        Step("connect", second, third),
        Step("update", third, age=40),
        Step("disconnect", first, second),
        Step("delete", first),
        Step("delete", survivor(writer, block - 2)),
        Step("delete", neighbour(writer, block - 2)),
    )[turn]


def survivor(writer: str, block: int) -> str:
    """A person that a whole block left behind, with an edge to another one."""
    return f"{writer}-{block}-b"


def neighbour(writer: str, block: int) -> str:
    """The person to whom the survivor of a block has an edge; its age is 40."""
    return f"{writer}-{block}-c"
