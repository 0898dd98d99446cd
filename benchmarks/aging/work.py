"""The work that ages a store: one-row writes of nodes and edges, the same for every engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["insert", "update", "delete", "connect", "disconnect"]

BLOCK: Final = 10
"""How many steps a block has. It leaves two people and one edge behind."""


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
    """The write at one position: five inserts of nodes and edges, two updates, an edge and a node deleted."""
    block, turn = divmod(position, BLOCK)
    first, second, third = (f"{writer}-{block}-{part}" for part in "abc")
    return (
        Step("insert", first, age=1),
        Step("insert", second, age=2),
        Step("connect", first, second),
        Step("update", first, age=30),
        Step("insert", third, age=3),
        Step("connect", second, third),
        Step("update", third, age=40),
        Step("connect", third, first),
        Step("disconnect", first, second),
        Step("delete", first),
    )[turn]


def survivor(writer: str, block: int) -> str:
    """A person that a whole block left behind, with an edge to another one."""
    return f"{writer}-{block}-b"


def neighbour(writer: str, block: int) -> str:
    """The person to whom the survivor of a block has an edge; its age is 40."""
    return f"{writer}-{block}-c"
