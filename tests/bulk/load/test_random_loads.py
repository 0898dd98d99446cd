"""Random loads: in this process, with keys in a task's memory, with keys through a shuffle, it is all the same."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from tests.bulk.loading import (
    Outcome,
    Record,
    edge,
    left_behind,
    new_graph,
    node,
    outcome,
    small_slices,
    write,
)
from tests.sampling import sampled

from omnigraph.settings import BulkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
node Person { name: String @key  mail: String? @unique  x: I32?  y: F64?  @unique(x, y)  @range(x, 0..6) }
node Thing { label: String? @unique }
edge Knows: Person -> Person { at: String? @unique }
edge Owns: Person -> Thing @card(0..2)
edge Uses: Thing -> Person @card(1..3)
"""
MODES: tuple[Literal["append", "merge", "overwrite"], ...] = ("append", "merge", "overwrite")


class World:
    """Makes records about few names and few values, so that they meet; no two worlds share any.

    A careful world breaks no rule; ``once`` is one that never names the same thing twice.
    """

    def __init__(self, dice: random.Random, name: str, *, careful: bool, once: bool) -> None:
        self.dice, self.name, self.careful, self.once = dice, name, careful, once
        self.count = 100

    def old(self, kind: str, most: int = 6) -> str:
        return f"{kind}{self.name}{self.dice.randrange(most)}"

    def new(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.name}{self.count}"

    def own(self, kind: str) -> str:
        return self.new(kind) if self.once or self.dice.random() < 0.3 else self.old(kind)

    def value(self, name: str, kind: str) -> dict[str, Any]:
        if self.dice.random() < 0.5:
            return {}
        return {name: self.new(kind) if self.careful else self.old(kind)}

    def record(self) -> Record:
        dice = self.dice
        own_id = {"id": self.own("i")} if dice.random() < 0.5 else {}
        match dice.choice(["Person", "Person", "Thing", "Knows", "Owns", "Uses"]):
            case "Person":
                numbers: dict[str, Any] = {"x": dice.randrange(7)}
                if not self.careful:
                    # The numbers of a world are its own, and zero has two signs.
                    numbers = {"x": dice.randrange(8), "y": dice.choice([0.0, -0.0, 1.5]) + 10 * int(self.name)}
                return node("Person", name=self.own("p"), **self.value("mail", "m"), **numbers)
            case "Thing":
                return node("Thing", **own_id, **self.value("label", "l"))
            case "Knows":
                return edge("Knows", self.old("p"), self.old("p"), **own_id, **self.value("at", "a"))
            case "Owns":
                return edge("Owns", self.new("p") if self.careful else self.old("p"), self.old("i"), **own_id)
            case _:
                return edge("Uses", self.new("i") if self.careful else self.old("i"), self.old("p"), **own_id)

    def records(self, count: int, there: list[Record]) -> list[Record]:
        """Records, of which some are there already, which a careful world knows."""
        made = [self.record() for _ in range(count)]
        return closed(made, there) if self.careful else made


def closed(records: list[Record], there: list[Record]) -> list[Record]:
    """The records with all nodes that their edges name and that are not there."""
    ends = {str(record[end]) for record in records if "edge" in record for end in ("from", "to")}
    known = {r["data"].get("name") or r["data"].get("id") for r in (*records, *there) if "type" in r}
    missing = sorted(ends - known)
    people = [node("Person", name=name) for name in missing if name.startswith("p")]
    return [*records, *people, *(node("Thing", id=name) for name in missing if name.startswith("i"))]


def base_of(worlds: list[str], dice: random.Random) -> list[Record]:
    """A few records of each world that fit together, each id and each value once."""
    return [
        record
        for world in worlds
        for record in (
            *(
                node("Person", name=f"p{world}{i}", mail=f"m{world}{i}", x=i % 7, y=float(world) * 10)
                for i in range(3)
            ),
            *(node("Thing", id=f"i{world}{i}", label=f"l{world}{i}") for i in range(3)),
            edge("Knows", f"p{world}0", f"p{world}1", id=f"i{world}0", at=f"a{world}0"),
            edge("Owns", f"p{world}0", f"i{world}{dice.randrange(3)}", id=f"i{world}0"),
            edge("Uses", f"i{world}0", f"p{world}0", id=f"i{world}0"),
        )
    ]


def tried(
    place: Path,
    base: list[Record],
    load: list[Record],
    mode: Any,
    settings: BulkSettings | None = None,
    **how: Any,
) -> Outcome:
    graph = new_graph(place / "g", SCHEMA, base, settings)
    path = write(place / "load.jsonl", load)
    found = outcome(graph, path, mode, shown=str(place), max_errors=10_000, **how)
    assert left_behind(graph) == []
    return _sorted(found)


def _sorted(found: Outcome) -> Outcome:
    """Objections in an order of their own: which of two comes first at one place is nobody's promise."""
    if "error" in found and found["error"][0] == "ConstraintViolation":
        kind, total, listed = found["error"]
        return {**found, "error": (kind, total, sorted(listed, key=repr))}
    return found


@pytest.mark.parametrize("seed", sampled(range(30), 5))
def test_thirty_small_loads(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    settings = small_slices(dice.choice([60, 200, 2000]))
    base = base_of(["0"], dice) if seed % 5 else []
    world = World(dice, "0", careful=dice.random() < 0.5, once=dice.random() < 0.7)
    mode = MODES[seed % 3]
    load = world.records(dice.randrange(1, 25), [] if mode == "overwrite" else base)
    here = tried(tmp_path / "here", base, load, mode, engine="local")
    assert tried(tmp_path / "there", base, load, mode, settings, engine="tasks") == here


@pytest.mark.parametrize(
    ("mode", "careful"),
    [("merge", True), ("merge", False), ("append", False), ("overwrite", False)],
    ids=["merge, fits", "merge", "append", "overwrite"],
)
def test_ten_worlds_at_once_through_a_shuffle(
    mode: Any, careful: bool, tmp_path: Path, spark: SparkSession
) -> None:
    """Worlds share no names and no values, so that each is a load of its own, and one job tries all of them."""
    dice = random.Random(f"{mode} {careful}")
    worlds = [str(number) for number in range(10, 20)]
    base = base_of(worlds, dice)
    made = [World(dice, name, careful=careful, once=mode != "merge") for name in worlds]
    there = [] if mode == "overwrite" else base
    load = [record for world in made for record in world.records(12, there)]
    here = tried(tmp_path / "here", base, load, mode, engine="local")
    assert ("rows" in here) == careful
    settings = small_slices(4000, key_budget=0)
    assert tried(tmp_path / "there", base, load, mode, settings, engine="spark", spark=spark) == here
