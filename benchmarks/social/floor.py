"""The questions of the social benchmark by hand in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from benchmarks.contest import Row
from benchmarks.floor import Answering, Ints, Tables

Params = Mapping[str, Any]


def answering(tables: Tables) -> dict[str, Answering]:
    """The arrays are built here; the answers only read them."""
    network = Network(tables)
    return {
        "1": network.most_followed,
        "2": network.home_of_the_most_followed,
        "3": network.youngest_cities,
        "4": network.per_country,
        "5": network.men_in_a_city,
        "6": network.women_per_city,
        "7": network.state_with_most,
        "8": network.paths,
        "9": network.paths_with_ages,
        "10": network.person,
        "11": network.followed,
        "12": network.within_two_steps,
    }


class Network:
    """The graph as arrays; everybody lives in one city, every city is in one state, every state in one country."""

    def __init__(self, tables: Tables) -> None:
        persons, interests = tables.size("Person"), tables.size("Interest")
        self.names, self.age = tables.column("Person", "name"), tables.column("Person", "age")
        self.female = tables.column("Person", "gender") == "female"
        self.city, self.city_state, self.city_country = (
            tables.column("City", name) for name in ("city", "state", "country")
        )
        self.state, self.country = tables.column("State", "state"), tables.column("Country", "country")
        self.interest = tables.column("Interest", "interest")
        self.follows, self.followers = tables.forward("Follows", persons), tables.backward("Follows", persons)
        self.fans = tables.backward("HasInterest", interests)
        self.lives_in, self.city_in, self.state_in = (
            tables.single(edge) for edge in ("LivesIn", "CityIn", "StateIn")
        )

    def most_followed(self, _: Params) -> Sequence[Row]:
        counts = self.followers.degrees
        best = np.flatnonzero(counts >= np.partition(counts, -3)[-3])
        best = best[np.lexsort((best, -counts[best]))][:3]
        return [(int(one) + 1, self.names[one], int(counts[one])) for one in best]

    def home_of_the_most_followed(self, _: Params) -> Sequence[Row]:
        counts = self.followers.degrees
        best = int(counts.argmax())
        home = self.lives_in[best]
        place = (self.city[home], self.city_state[home], self.city_country[home])
        return [(best + 1, self.names[best], int(counts[best]), *place)]

    def youngest_cities(self, params: Params) -> Sequence[Row]:
        counts = np.bincount(self.lives_in, minlength=len(self.city))
        ages = np.bincount(self.lives_in, self.age, minlength=len(self.city))
        wanted = self.country[self.state_in[self.city_in]] == params["country"]
        cities = np.flatnonzero(wanted & (counts > 0))
        return sorted(
            zip(self.city[cities], (ages[cities] / counts[cities]).tolist(), strict=True), key=_by_second
        )[:5]

    def per_country(self, params: Params) -> Sequence[Row]:
        homes = self.lives_in[(self.age >= params["lower"]) & (self.age <= params["upper"])]
        cities = np.bincount(homes, minlength=len(self.city))
        counts = np.bincount(self.state_in[self.city_in], cities).astype(np.int64).tolist()
        return sorted(zip(self.country, counts, strict=True), key=lambda row: (-row[1], row[0]))[:3]

    def men_in_a_city(self, params: Params) -> Sequence[Row]:
        persons = self._fans(params)
        persons = persons[~self.female[persons]]
        cities = np.flatnonzero((self.city == params["city"]) & (self.city_country == params["country"]))
        return [(int(np.isin(self.lives_in[persons], cities).sum()),)]

    def women_per_city(self, params: Params) -> Sequence[Row]:
        persons = self._fans(params)
        counts = np.bincount(self.lives_in[persons[self.female[persons]]])
        best = np.flatnonzero(counts >= np.partition(counts, -5)[-5])
        rows = ((int(counts[one]), self.city[one], self.city_country[one]) for one in best)
        return sorted(rows, key=lambda row: (-row[0], row[1], row[2]))[:5]

    def state_with_most(self, params: Params) -> Sequence[Row]:
        persons = self._fans(params)
        ages = self.age[persons]
        persons = persons[(ages >= params["lower"]) & (ages <= params["upper"])]
        counts = np.bincount(self.city_in[self.lives_in[persons]], minlength=len(self.state))
        counts[self.country[self.state_in] != params["country"]] = 0
        best = np.flatnonzero(counts == counts.max())
        rows = ((int(counts[one]), self.state[one], self.country[self.state_in[one]]) for one in best)
        return [min(rows, key=lambda row: row[1])]

    def paths(self, _: Params) -> Sequence[Row]:
        return [(int(self.followers.degrees @ self.follows.degrees),)]

    def paths_with_ages(self, params: Params) -> Sequence[Row]:
        old = np.take(self.age > params["above"], self.follows.ends)
        good = np.diff(np.concatenate([[0], np.cumsum(old, dtype=np.int32)])[self.follows.starts])
        return [(int((self.followers.degrees * (self.age < params["below"])) @ good),)]

    def person(self, params: Params) -> Sequence[Row]:
        return [(self.names[params["id"] - 1], int(self.age[params["id"] - 1]))]

    def followed(self, params: Params) -> Sequence[Row]:
        return [(int(one) + 1, self.names[one]) for one in self._followed(params["id"] - 1)]

    def within_two_steps(self, params: Params) -> Sequence[Row]:
        start = params["id"] - 1
        near = self._followed(start)
        reached = np.unique(np.concatenate([near, *map(self._followed, near)]))
        return [(int((reached != start).sum()),)]

    def _followed(self, one: int) -> Ints:
        return self.follows.ends[self.follows.starts[one] : self.follows.starts[one + 1]]

    def _fans(self, params: Params) -> Ints:
        """Who has an interest."""
        interest = int(np.flatnonzero(self.interest == params["interest"])[0])
        return self.fans.ends[self.fans.starts[interest] : self.fans.starts[interest + 1]]


def _by_second(row: Row) -> Any:
    return row[1], row[0]
