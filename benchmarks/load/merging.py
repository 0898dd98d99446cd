"""Ten thousand rows merged into a million by their keys. Run with `python -m benchmarks.load.merging`.

Half of the rows replace others, half are new. Their keys lie side by side, or are spread over those of the table,
which is in the order of its keys. Printed are the median of the seconds, and the bytes that the process read, of
OmniGraph, of plain Lance with the same index on keys, and of duckdb with its own; what they hold afterwards is
compared.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.kept import apart
from rich.console import Console
from rich.table import Table

_SCHEMA: Final = """
node Person { name: String @key
  age: I32
  city: String
  score: F64 }
"""
_SPREADS: Final = ("side by side", "spread")


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge took, how many bytes were read for it, and what the table holds: rows, and the sum of ages."""

    seconds: float
    read: int
    rows: int
    ages: int


def main() -> int:
    """Fill a table with each engine, merge into copies of it in turns, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--merged", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    os.environ.setdefault("LANCE_LOG", "error")
    engines: dict[str, tuple[Callable[..., None], Callable[..., Merged]]] = {
        "omnigraph": (_fill_omnigraph, _merge_omnigraph),
        "lance": (_fill_lance, _merge_lance),
        "duckdb": (_fill_duckdb, _merge_duckdb),
    }
    found: dict[tuple[str, str], list[Merged]] = {}
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        home = Path(folder)
        for name, (fill, _) in engines.items():
            apart(fill, home / name, options.rows)
        for _ in range(options.repeats):
            for spread in _SPREADS:
                for name, (_, merge) in engines.items():
                    copy = _copied(home / name, home / "copy")
                    runs = found.setdefault((spread, name), [])
                    runs.append(apart(merge, copy, options.rows, options.merged, spread))
    held = {(merged.rows, merged.ages) for runs in found.values() for merged in runs}
    assert len(held) == 1, held
    Console(width=110).print(_table(found, options.rows, options.merged))
    return 0


def _table(found: dict[tuple[str, str], list[Merged]], rows: int, merged: int) -> Table:
    title = f"{merged:,} rows merged into {rows:,} by their keys"
    table = Table("keys", "engine", title=title, title_justify="left")
    for heading in ("ms", "MB read"):
        table.add_column(heading, justify="right")
    for (spread, name), runs in found.items():
        seconds = statistics.median(run.seconds for run in runs)
        read = statistics.median(run.read for run in runs)
        table.add_row(spread, name, f"{seconds * 1e3:,.0f}", f"{read / 1e6:,.1f}")
    return table


def _copied(source: Path, copy: Path) -> Path:
    shutil.rmtree(copy, ignore_errors=True)
    copy.unlink(missing_ok=True)
    if source.is_dir():
        shutil.copytree(source, copy)
    else:
        shutil.copy(source, copy)
    return copy


def _people(numbers: Any, age: int) -> pa.Table:
    """People with even numbers are there from the beginning; those with odd ones are new."""
    texts = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 8, "0")
    cities = pa.array(["Amsterdam", "Berlin", "東京"]).take(pa.array(numbers % 3))
    return pa.table(
        {
            "name": pc.binary_join_element_wise("person-", texts, ""),
            "age": pa.array(np.full(len(numbers), age), pa.int32()),
            "city": cities,
            "score": numbers / 7,
        }
    )


def _there(rows: int) -> pa.Table:
    return _people(np.arange(rows) * 2, 1)


def _merged(rows: int, merged: int, spread: str) -> pa.Table:
    random = np.random.default_rng(5)
    chosen = random.permutation(rows)[: merged // 2] if spread == "spread" else np.arange(merged // 2) + rows // 3
    return _people(random.permutation(np.concatenate([chosen * 2, chosen * 2 + 1])), 2)


def _measured(work: Callable[[], object]) -> tuple[float, int]:
    """The seconds of some work, and the bytes that this process reads in it."""
    before, start = _bytes_read(), time.perf_counter()
    work()
    return time.perf_counter() - start, _bytes_read() - before


def _bytes_read() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


def _records(rows: pa.Table) -> list[dict[str, Any]]:
    return [{"type": "Person", "data": row} for row in rows.to_pylist()]


def _fill_omnigraph(to: Path, rows: int) -> None:
    import omnigraph

    graph = omnigraph.init(to, _SCHEMA)
    people = _there(rows)
    for start in range(0, rows, 100_000):
        graph.load(_records(people.slice(start, 100_000)), mode="append")
    graph.ensure_indices()


def _merge_omnigraph(place: Path, rows: int, merged: int, spread: str) -> Merged:
    import omnigraph

    graph, records = omnigraph.open(place), _records(_merged(rows, merged, spread))
    seconds, read = _measured(lambda: graph.load(records, mode="merge"))
    answer = graph.query("query q() { match { $p: Person } return { count($p) as n, sum($p.age) as ages } }")
    return Merged(seconds, read, answer.rows[0]["n"], answer.rows[0]["ages"])


def _fill_lance(to: Path, rows: int) -> None:
    import lance

    people = _there(rows)
    lance.write_dataset(people, to, max_rows_per_file=100_000).create_scalar_index("name", "BTREE")


def _merge_lance(place: Path, rows: int, merged: int, spread: str) -> Merged:
    import lance

    table, people = lance.dataset(place), _merged(rows, merged, spread)

    def merge() -> None:
        table.merge_insert("name").when_matched_update_all().when_not_matched_insert_all().execute(people)

    seconds, read = _measured(merge)
    ages = lance.dataset(place).to_table(["age"])["age"]
    return Merged(seconds, read, len(ages), pc.sum(ages).as_py())


def _fill_duckdb(to: Path, rows: int) -> None:
    people = _there(rows)
    with importlib.import_module("duckdb").connect(str(to)) as connection:
        connection.register("people", people)
        connection.execute(
            "CREATE TABLE Person(name VARCHAR PRIMARY KEY, age INTEGER, city VARCHAR, score DOUBLE)"
        )
        connection.execute("INSERT INTO Person SELECT * FROM people")


def _merge_duckdb(place: Path, rows: int, merged: int, spread: str) -> Merged:
    with importlib.import_module("duckdb").connect(str(place)) as connection:
        connection.register("people", _merged(rows, merged, spread))

        def merge() -> None:
            connection.execute("INSERT OR REPLACE INTO Person SELECT * FROM people")
            connection.execute("CHECKPOINT")

        seconds, read = _measured(merge)
        count, ages = connection.execute("SELECT count(*), sum(age) FROM Person").fetchall()[0]
    return Merged(seconds, read, count, int(ages))


if __name__ == "__main__":
    sys.exit(main())
