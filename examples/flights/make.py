"""Make the data of the quickstart: a small twin of public flight data, the same each time it is made."""

from __future__ import annotations

import csv
import datetime as dt
import json
import random
from pathlib import Path

HERE = Path(__file__).parent
CITIES = [
    "Oslo",
    "Bergen",
    "Trondheim",
    "Stavanger",
    "Tromso",
    "Bodo",
    "Alesund",
    "Molde",
    "Kirkenes",
    "Alta",
    "Lisbon",
    "Porto",
    "Faro",
    "Madrid",
    "Seville",
    "Bilbao",
    "Paris",
    "Lyon",
    "Nice",
    "Rome",
    "Milan",
    "Turin",
    "Vienna",
    "Graz",
    "Berlin",
    "Munich",
    "Hamburg",
    "Prague",
    "Warsaw",
    "Krakow",
]
CARRIERS = ("NO", "LH", "AF", "TP", "IB", "OS")


def airports() -> list[dict[str, object]]:
    """Thirty airports; the code of each begins like its city."""
    drawn = random.Random(1)  # noqa: S311  no secret
    rows, taken = [], set()
    for city in CITIES:
        code = city[:3].upper()
        while code in taken:
            code = code[:2] + drawn.choice("QXYZ")
        taken.add(code)
        rows.append(
            {"code": code, "city": city, "runways": drawn.randint(1, 4), "lat": round(drawn.uniform(37, 70), 3)}
        )
    return rows


def flights(codes: list[str]) -> list[dict[str, object]]:
    """Six hundred flights of one week; a few go to airports that are not in the list."""
    drawn = random.Random(2)  # noqa: S311  no secret
    rows = []
    for number in range(600):
        origin, target = drawn.sample(codes, 2)
        if number % 60 == 59:
            target = "XX" + drawn.choice("ABC")
        day = dt.date(2024, 5, 13) + dt.timedelta(days=number % 7)
        rows.append(
            {
                "flight": f"{drawn.choice(CARRIERS)}{number:04}",
                "date": day.isoformat(),
                "origin": origin,
                "dest": target,
                "minutes": drawn.randint(35, 240),
                "delay": drawn.choice(["", "0", "5", "12", "45"]),
            }
        )
    return rows


def write(name: str, rows: list[dict[str, object]]) -> None:
    """Write rows as CSV."""
    with (HERE / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def records(nodes: list[dict[str, object]], edges: list[dict[str, object]]) -> None:
    """Write all of it as records of a load, without the flights to airports that are not in the list."""
    known = {row["code"] for row in nodes}
    with (HERE / "network.jsonl").open("w", encoding="utf-8") as file:
        for row in nodes:
            file.write(json.dumps({"type": "Airport", "data": row}) + "\n")
        for row in edges:
            values = {name: row[name] for name in ("flight", "date", "minutes")}
            values |= {"delay": int(str(row["delay"]))} if row["delay"] else {}
            if row["dest"] in known:
                file.write(
                    json.dumps({"edge": "Flies", "from": row["origin"], "to": row["dest"], "data": values}) + "\n"
                )


if __name__ == "__main__":
    known = airports()
    flown = flights([str(row["code"]) for row in known])
    write("airports.csv", known)
    write("flights.csv", flown)
    records(known, flown)
