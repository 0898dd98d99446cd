"""The social network: persons who follow each other, live in cities and have interests, as Arrow tables.

The shape is that of the public "kuzudb-study" benchmark; the same size and seed always give the same graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]

CITIES: Final = 7_100
STATES: Final = {"United States": 51, "United Kingdom": 209, "Canada": 13}
SUPER_NODES: Final = 0.005
TODAY: Final = 2026_02_16

LARGE: Final = {
    "United States": {
        "Arizona": ["Phoenix"],
        "California": ["Los Angeles", "Riverside", "Sacramento", "San Diego", "San Francisco", "San Jose"],
        "Colorado": ["Denver"],
        "Florida": ["Jacksonville", "Miami", "Orlando", "Tampa"],
        "Georgia": ["Atlanta"],
        "Illinois": ["Chicago"],
        "Indiana": ["Indianapolis"],
        "Maryland": ["Baltimore"],
        "Massachusetts": ["Boston"],
        "Michigan": ["Detroit"],
        "Minnesota": ["Minneapolis"],
        "Missouri": ["Kansas City", "Saint Louis"],
        "Nevada": ["Las Vegas"],
        "New York": ["Bronx", "Brooklyn", "Manhattan", "New York", "Queens"],
        "North Carolina": ["Charlotte"],
        "Ohio": ["Cincinnati", "Cleveland", "Columbus"],
        "Oregon": ["Portland"],
        "Pennsylvania": ["Philadelphia", "Pittsburgh"],
        "Tennessee": ["Memphis", "Nashville"],
        "Texas": ["Austin", "Dallas", "Fort Worth", "Houston", "San Antonio"],
        "Utah": ["Salt Lake City"],
        "Washington": ["Seattle"],
        "Wisconsin": ["Milwaukee"],
    },
    "United Kingdom": {
        "Glasgow City": ["Glasgow"],
        "Greater London": ["London"],
        "Greater Manchester": ["Manchester"],
        "Merseyside": ["Liverpool"],
        "West Midlands": ["Birmingham"],
        "West Yorkshire": ["Leeds"],
    },
    "Canada": {
        "Alberta": ["Calgary", "Edmonton"],
        "British Columbia": ["Vancouver"],
        "Manitoba": ["Winnipeg"],
        "Ontario": ["London", "Ottawa", "Toronto"],
        "Quebec": ["Montreal"],
    },
}

_INTERESTS: Final = (
    "Anime,Archery,Artificial Intelligence,Baking,Basketball,Bird Watching,Board Games,Camping,Ceramics,Chess,"
    "Classical Music,Cooking,Cricket,Cycling,Dancing,Economics,Fashion,Fine Dining,Fishing,Football,Gardening,"
    "Golf,Hiking,History,Jazz,Karaoke,Knitting,Literature,Martial Arts,Meditation,Movies,Painting,Philosophy,"
    "Photography,Running,Sailing,Science Fiction,Swimming,Tennis,Travel,Yoga"
)
_FIRST: Final = "Ada Ben Cleo Dan Eva Finn Gia Hugo Iris Jack Kim Leo Mia Noah Olga Paul Rita Sam Tess Uma"
_LAST: Final = "Adler Brown Cruz Diaz Evans Ford Gray Hall Ito Jones Khan Lopez Meyer Novak Ortiz Perez Quinn Ross"


def generate(persons: int, seed: int) -> dict[str, pa.Table]:
    """Every table of the graph: nodes have an ``id``, edges ``src`` and ``dst``."""
    rng = np.random.default_rng(seed)
    places, large = _places(rng)
    interests = _INTERESTS.split(",")
    return {
        "Person": _persons(rng, persons),
        **{label: places[label] for label in ("City", "State", "Country")},
        "Interest": pa.table({"id": np.arange(1, len(interests) + 1), "interest": interests}),
        "Follows": _follows(rng, persons),
        "LivesIn": edges(np.arange(1, persons + 1), rng.choice(large, persons)),
        **{label: places[label] for label in ("CityIn", "StateIn")},
        "HasInterest": _has_interest(rng, persons, len(interests)),
    }


def edges(src: Ints, dst: Ints) -> pa.Table:
    """Edges ordered by source and target."""
    order = np.lexsort((dst, src))
    return pa.table({"src": src[order].astype(np.int64), "dst": dst[order].astype(np.int64)})


def _persons(rng: np.random.Generator, count: int) -> pa.Table:
    first, last = np.datetime64("1970-01-01"), np.datetime64("2000-12-31")
    born = first + rng.integers(0, (last - first).astype(int) + 1, count)
    halves = np.arange(count) % 2
    first_names, last_names = rng.choice(_FIRST.split(), count), rng.choice(_LAST.split(), count)
    return pa.table(
        {
            "id": np.arange(1, count + 1),
            "name": [" ".join(pair) for pair in zip(first_names, last_names, strict=True)],
            "gender": np.array(["female", "male"])[rng.permutation(halves)],
            "age": _age(born).astype(np.int32),
            "isMarried": rng.permutation(halves).astype(bool),
            "birthday": pa.array(born.astype("datetime64[D]")),
        }
    )


def _age(born: npt.NDArray[np.datetime64]) -> Ints:
    """Full years at TODAY: the difference of the dates written as numbers, 20260216."""
    months = born.astype("datetime64[M]")
    days = (born - months.astype("datetime64[D]")).astype(np.int64) + 1
    years = born.astype("datetime64[Y]").astype(np.int64) + 1970
    number = years * 10_000 + (months.astype(np.int64) % 12 + 1) * 100 + days
    return np.asarray((TODAY - number) // 10_000, dtype=np.int64)


def _places(rng: np.random.Generator) -> tuple[dict[str, pa.Table], Ints]:
    """Cities in states in countries, and the ids of the large cities."""
    states: list[tuple[str, str]] = []
    cities: list[tuple[str, int]] = []
    for country, wanted in STATES.items():
        named = LARGE[country]
        for state in [*named, *(f"{country} region {number}" for number in range(wanted - len(named)))]:
            states.append((state, country))
            cities += [(city, len(states)) for city in named.get(state, ())]
    large = np.arange(1, len(cities) + 1)
    homes = rng.integers(1, len(states) + 1, CITIES - len(cities))
    cities += [(f"Town {number}", int(home)) for number, home in enumerate(homes)]
    ids, within = np.arange(1, len(cities) + 1), np.array([state for _, state in cities])
    population = np.where(
        ids <= len(large), rng.integers(1_000_000, 9_000_000, CITIES), rng.integers(1_000, 999_999, CITIES)
    )
    countries = list(STATES)
    tables = {
        "City": pa.table(
            {
                "id": ids,
                "city": [city for city, _ in cities],
                "state": [states[state - 1][0] for state in within],
                "country": [states[state - 1][1] for state in within],
                "population": population,
            }
        ),
        "State": pa.table({"id": np.arange(1, len(states) + 1), **_columns(states, ("state", "country"))}),
        "Country": pa.table({"id": np.arange(1, len(countries) + 1), "country": countries}),
        "CityIn": edges(ids, within),
        "StateIn": edges(
            np.arange(1, len(states) + 1), np.array([countries.index(country) + 1 for _, country in states])
        ),
    }
    return tables, large


def _columns(rows: Sequence[tuple[str, ...]], names: Sequence[str]) -> dict[str, list[str]]:
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _follows(rng: np.random.Generator, persons: int) -> pa.Table:
    """Ten random pairs per person, and a few whom many follow; nobody twice, nobody themselves."""
    src, dst = rng.integers(1, persons + 1, (2, 10 * persons))
    stars = rng.choice(persons, max(int(persons * SUPER_NODES), 1), replace=False) + 1
    sizes = rng.integers(max(persons // 200, 1), max(persons // 20, 2), len(stars))
    fans = [rng.choice(persons, size, replace=False) + 1 for size in sizes]
    src, dst = np.concatenate([src, *fans]), np.concatenate([dst, np.repeat(stars, sizes)])
    pairs = np.unique((src * (persons + 1) + dst)[src != dst])
    return edges(pairs // (persons + 1), pairs % (persons + 1))


def _has_interest(rng: np.random.Generator, persons: int, interests: int) -> pa.Table:
    """One to four different interests each."""
    ranked = np.argsort(rng.random((persons, interests)), axis=1)[:, :4] + 1
    taken = np.arange(4) < rng.integers(1, 5, persons)[:, None]
    who = np.broadcast_to(np.arange(1, persons + 1)[:, None], ranked.shape)
    return edges(who[taken], ranked[taken])
