"""The six joins by hand in NumPy. The columns are numbers already, equal for equal texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.contest import Row
from benchmarks.floor import Answering, Ints, Tables


def answering(tables: Tables) -> dict[str, Answering]:
    """The numbers are made here; the answers only read them."""
    joins = Joins(tables)
    answers: dict[str, Callable[[], list[Row]]] = {
        "1": joins.pairs,
        "2": joins.by_age,
        "3": joins.one_to_one,
        "4": joins.by_both,
        "5": joins.without,
        "6": joins.listed,
    }
    return {number: _answer(count) for number, count in answers.items()}


def _answer(count: Callable[[], list[Row]]) -> Answering:
    def answer(_: object) -> Sequence[Row]:
        return count()

    return answer


class Joins:
    """The columns of both tables; -1 stands for no town."""

    def __init__(self, tables: Tables) -> None:
        self.town, self.place = _numbered(tables.column("Person", "town"), tables.column("Shop", "place"))
        self.code, self.other = _numbered(tables.column("Person", "code"), tables.column("Shop", "code"))
        self.age, self.years = tables.column("Person", "age").astype(np.int64), tables.column("Shop", "years")
        self.towns = int(max(self.town.max(), self.place.max())) + 1
        self.shops = np.bincount(self.place, minlength=self.towns)
        self.near = np.where(self.town < 0, 0, self.shops[self.town])

    def pairs(self) -> list[Row]:
        counts = np.bincount(self.town[self.town >= 0])
        return [(int(counts @ counts),)]

    def by_age(self) -> list[Row]:
        counts = np.bincount(self.age, self.near).astype(np.int64)
        return [(age, int(counts[age])) for age in np.flatnonzero(counts).tolist()]

    def one_to_one(self) -> list[Row]:
        places = np.full(int(max(self.code.max(), self.other.max())) + 1, -1)
        places[self.code] = np.arange(len(self.code))
        found = places[self.other]
        held = found >= 0
        return [(int(self.age[found[held]].sum()), int(self.years[held].sum()))]

    def by_both(self) -> list[Row]:
        person, shop = _pairs(
            np.where(self.town < 0, -1, self.town * 128 + self.age), self.place * 128 + self.years
        )
        return [(int(person.max()) + 1, int(shop.max()) + 1, len(person))]

    def without(self) -> list[Row]:
        return [(int((self.near == 0).sum()),)]

    def listed(self) -> list[Row]:
        people, shops = np.flatnonzero(self.age == 40), np.flatnonzero(self.years == 100)
        person, shop = _pairs(self.town[people], self.place[shops])
        found = np.sort(people[person] * len(self.place) + shops[shop])[:20]
        return [(one // len(self.place) + 1, one % len(self.place) + 1) for one in found.tolist()]


def _numbered(left: object, right: object) -> tuple[Ints, Ints]:
    both = pc.dictionary_encode(pa.concat_arrays([pa.array(left, pa.string()), pa.array(right, pa.string())]))
    numbers = pc.fill_null(both.indices, -1).to_numpy().astype(np.int64)
    return numbers[: len(left)], numbers[len(left) :]  # type: ignore[arg-type]


def _pairs(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """The rows that have equal numbers; a negative one equals none."""
    order = np.argsort(right, kind="stable")
    ascending = right[order]
    low = np.searchsorted(ascending, left)
    counts = np.where(left < 0, 0, np.searchsorted(ascending, left, side="right") - low)
    owners = np.repeat(np.arange(len(left)), counts)
    within = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    return owners, order[low[owners] + within]
