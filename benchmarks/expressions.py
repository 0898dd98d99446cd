"""Filters with arithmetic and functions over a million rows, beside DuckDB on the same values.

    python -m benchmarks.expressions [--rows 1000000] [--runs 15]

Both engines hold the values in memory. Runs alternate, the medians are printed, and the counts are compared.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import omnigraph

SCHEMA: Final = "node Flight { code: String @key  out: I64  back: I64?  fare: F64  carrier: String  day: Date }"
QUESTIONS: Final = {
    "integers": ("($f.out + $f.back) * 2 - 7 > 100", '("out" + back) * 2 - 7 > 100'),
    "floats": ("$f.fare * 1.19 - $f.out / 2.0 < 250.0", 'fare * 1.19 - "out" / 2.0 < 250.0'),
    "conditions": (
        "($f.out % 7 = 3 or $f.back is null) and not ($f.fare > 400.0)",
        '("out" % 7 = 3 or back is null) and not (fare > 400.0)',
    ),
    "text and dates": (
        'lower($f.carrier) = "lx" and year($f.day) = 2024',
        "lower(carrier) = 'lx' and year(day) = 2024",
    ),
}


def flights(rows: int) -> pa.Table:
    """Values that every run draws alike."""
    random = np.random.default_rng(7)
    back = random.integers(-60, 240, rows)
    return pa.table(
        {
            "code": pa.array([f"f{number}" for number in range(rows)]),
            "out": pa.array(random.integers(-60, 240, rows)),
            "back": pa.array(back, mask=back > 200),
            "fare": pa.array(random.uniform(20, 900, rows)),
            "carrier": pa.array(np.array(["LX", "BA", "SK", "AF"])[random.integers(0, 4, rows)]),
            "day": pa.array(random.integers(18_000, 20_500, rows).astype(np.int32)).view(pa.date32()),
        }
    )


def records(table: pa.Table) -> Iterator[bytes]:
    """The values as records, in parts that are loaded without Spark."""
    for batch in table.to_batches(200_000):
        rows = batch.set_column(5, "day", batch.column("day").cast(pa.string())).to_pylist()
        yield "\n".join(f'{{"type":"Flight","data":{json.dumps(row)}}}' for row in rows).encode()


def timed(ask: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = ask()
    return (time.perf_counter() - began) * 1e3, answer


def asked() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.expressions", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="how many rows (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=15, help="runs of each question (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Print one line per question."""
    given = asked()
    rows: int = given.rows
    table = flights(rows)
    with tempfile.TemporaryDirectory() as folder:
        graph = omnigraph.init(str(Path(folder) / "g"), SCHEMA)
        for part in records(table):
            graph.load(part, mode="append")
        database = importlib.import_module("duckdb").connect()
        database.register("given", table)
        database.execute("create table flight as select * from given")
        print(f"{rows:,} rows, milliseconds, medians of {given.runs} alternating runs")
        print(f"{'question':<16}{'omnigraph':>12}{'duckdb':>12}{'ratio':>8}")
        for name, (condition, sql) in QUESTIONS.items():
            query = f"query q() {{ match {{ $f: Flight  {condition} }} return {{ count(*) as n }} }}"
            ours: list[float] = []
            theirs: list[float] = []
            for _ in range(given.runs):
                spent, result = timed(lambda query=query: graph.query(query).rows[0]["n"])  # type: ignore[misc]
                ours.append(spent)
                counted = f"select count(*) from flight where {sql}"
                spent, expected = timed(lambda counted=counted: database.execute(counted).fetchall())  # type: ignore[misc]
                theirs.append(spent)
                if result != expected[0][0]:
                    sys.exit(f"{name}: {result} and {expected[0][0]}")
            mine, other = statistics.median(ours), statistics.median(theirs)
            print(f"{name:<16}{mine:>12.2f}{other:>12.2f}{mine / other:>8.2f}")


if __name__ == "__main__":
    main()
