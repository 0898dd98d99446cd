"""Make a twin of public flight data in its full shape: the same each time, in the files that `map.yaml` names.

    python twin.py FOLDER

1,458 airports and 329,174 flights, of which 7,602 name airports that are not in the list: as in the public data,
where one month has numbers in the place of codes.
"""

from __future__ import annotations

import csv
import random
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from string import ascii_uppercase

AIRPORTS, FLIGHTS, MISSING = 1_458, 329_174, 7_602
CARRIERS = ("AA", "AS", "B6", "DL", "EV", "F9", "HA", "MQ", "NK", "OO", "UA", "US", "VX", "WN")


def airports() -> list[str]:
    """The codes of all airports."""
    codes = ["".join(letters) for letters in product(ascii_uppercase, repeat=3)]
    return random.Random(1).sample(codes, AIRPORTS)  # noqa: S311  no secret


def flights(codes: list[str]) -> Iterator[tuple[object, ...]]:
    """All flights; of every three with a missing airport one lacks its start, one its end, and one both."""
    drawn = random.Random(2)  # noqa: S311  no secret
    bad = {number: index for index, number in enumerate(sorted(drawn.sample(range(FLIGHTS), MISSING)))}
    for number in range(FLIGHTS):
        start, end = drawn.sample(codes, 2)
        if number in bad:
            lacking = bad[number] % 3
            start = start if lacking == 1 else str(drawn.randint(10_000, 10_300))
            end = end if lacking == 0 else str(drawn.randint(10_000, 10_300))
        minutes, delay = drawn.randint(30, 400), drawn.choice(("", -8, -3, 0, 0, 4, 17, 95))
        day = f"2015-{number * 12 // FLIGHTS + 1:02}-{number % 28 + 1:02}"
        yield f"{drawn.choice(CARRIERS)}{number}", day, start, end, minutes, delay


def write(folder: Path) -> None:
    """Write the files."""
    drawn, codes = random.Random(3), airports()  # noqa: S311  no secret
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "airports.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["code", "city", "runways", "lat"])
        for code in codes:
            city = f'{code.title()}, "{drawn.choice(("North", "South"))}"'
            writer.writerow([code, city, drawn.randint(1, 6), round(drawn.uniform(-60, 70), 4)])
    with (folder / "flights.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["flight", "date", "origin", "dest", "minutes", "delay"])
        writer.writerows(flights(codes))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
