"""The flight data of everyday use in its full shape, loaded from CSV with one command and no program."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.cli.command import MAIN

import omnigraph

FLIGHTS = Path(__file__).parents[3] / "examples" / "flights"
AIRPORTS, ALL, MISSING = 1_458, 329_174, 7_602


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data, the schema and the mapping file."""
    folder = tmp_path_factory.mktemp("twin")
    subprocess.run([sys.executable, FLIGHTS / "twin.py", folder], check=True, timeout=120)
    for name in ("schema.pg", "map.yaml"):
        shutil.copy(FLIGHTS / name, folder)
    return folder


def omnigraph_command(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.long
def test_flights_to_airports_that_do_not_exist(place: Path) -> None:
    """One load says what is wrong and loads nothing; the next one loads the rest, and writes down what is bad."""
    with (place / "airports.csv").open(newline="") as file:
        codes = {row["code"] for row in csv.DictReader(file)}
    with (place / "flights.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    bad = [row for row in rows if not {row["origin"], row["dest"]} <= codes]
    assert (len(codes), len(rows), len(bad)) == (AIRPORTS, ALL, MISSING)
    wrong = {end: Counter(row[end] for row in rows if row[end] not in codes) for end in ("origin", "dest")}

    assert omnigraph_command(place, "init", "--schema", "schema.pg", "flights.omni").returncode == 0
    refused = omnigraph_command(place, "load", "--map", "map.yaml", "--mode", "append")
    assert refused.returncode == 1
    total = sum(counted.total() for counted in wrong.values())
    assert f"{total:,} in all:" in refused.stderr or f"{total} in all:" in refused.stderr
    for side, end in (("src", "origin"), ("dst", "dest")):
        found = re.search(rf"([\d,]+) × {side} of edge Flies not found in Airport", refused.stderr)
        assert found is not None
        assert int(found[1].replace(",", "")) == wrong[end].total()
        code, often = min(wrong[end].items(), key=lambda pair: (-pair[1], pair[0]))
        assert f"{often} × {code}, first at " in refused.stderr
    assert "--skip-bad" in refused.stderr
    graph = omnigraph.open(place / "flights.omni")
    assert graph.snapshot().rows("node:Airport") == 0
    assert graph.jobs() == []

    done = omnigraph_command(
        place, "load", "--map", "map.yaml", "--mode", "append", "--skip-bad", "--bad-records", "bad.jsonl"
    )
    assert done.returncode == 0, done.stderr
    state = omnigraph.open(place / "flights.omni").snapshot()
    assert (state.rows("node:Airport"), state.rows("edge:Flies")) == (AIRPORTS, ALL - MISSING)
    listed = [json.loads(line) for line in (place / "bad.jsonl").read_text().splitlines()]
    assert len(listed) == MISSING
    flights = dict(enumerate(rows, start=2))
    for entry in listed[:: MISSING // 50]:
        row = flights[entry["line"]]
        assert not {row["origin"], row["dest"]} <= codes
