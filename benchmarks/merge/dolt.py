"""DoltLite's part of the benchmark, in a process of its own: its library replaces that of `sqlite3`."""

from __future__ import annotations

import doltlite  # its library has to be there before sqlite3 is imported

# isort: split

import json
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from benchmarks.merge.cost import Cost, measured
from benchmarks.merge.shapes import SIDES, Delta

TABLE = "CREATE TABLE docs (name TEXT PRIMARY KEY, part TEXT, title TEXT, score REAL, embedding BLOB)"


def build(path: Path, documents: Path) -> None:
    """A repository with the documents."""
    connection = sqlite3.connect(path)
    connection.execute(TABLE)
    for batch in pq.ParquetFile(documents).iter_batches(50_000):
        connection.executemany("INSERT INTO docs VALUES (?, ?, ?, ?, ?)", _rows(batch.to_pylist()))
        connection.commit()
    _commit(connection, "documents")
    connection.close()


def _rows(records: Iterable[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    for row in records:
        vector = np.asarray(row["embedding"], np.float32).tobytes()
        yield row["name"], row["part"], row["title"], row["score"], vector


def change(connection: sqlite3.Connection, delta: Delta) -> None:
    """Both branches, made from main and changed."""
    for side in SIDES:
        connection.execute("SELECT dolt_checkout('main')")
        connection.execute("SELECT dolt_checkout('-b', ?)", (f"{side}-{delta.rows}",))
        connection.executemany("INSERT INTO docs VALUES (?, ?, ?, ?, ?)", _rows(delta.inserted(side)))
        connection.execute("UPDATE docs SET score = -1.0 WHERE part = ?", (delta.part(side, "update"),))
        connection.execute("DELETE FROM docs WHERE part = ?", (delta.part(side, "delete"),))
        connection.commit()
        _commit(connection, f"changes on the {side}")


def costs(path: Path, delta: Delta) -> Iterator[tuple[str, Cost]]:
    """The same questions as to OmniGraph, each through a new connection."""
    left, right = f"left-{delta.rows}", f"right-{delta.rows}"
    question = "SELECT * FROM dolt_diff_docs WHERE from_ref = ? AND to_ref = ?"
    yield "diff", _cost(path, question, "main", left)
    connection = sqlite3.connect(path)
    connection.execute("SELECT dolt_checkout(?)", (left,))
    yield "merge", measured(lambda: connection.execute("SELECT dolt_merge(?)", (right,)).fetchall())
    connection.close()


def _cost(path: Path, question: str, *values: str) -> Cost:
    connection = sqlite3.connect(path)
    try:
        return measured(lambda: connection.execute(question, values).fetchall())
    finally:
        connection.close()


def _commit(connection: sqlite3.Connection, message: str) -> None:
    connection.execute("SELECT dolt_commit('-A', '-m', ?)", (message,))


def main() -> None:
    """Print one JSON object per cost: `python -m benchmarks.merge.dolt STORE DOCUMENTS 1,100,10000`."""
    store, documents = Path(sys.argv[1]), Path(sys.argv[2])
    build(store, documents)
    for rows in sys.argv[3].split(","):
        delta = Delta(int(rows))
        connection = sqlite3.connect(store)
        change(connection, delta)
        connection.close()
        for name, cost in costs(store, delta):
            print(json.dumps({"delta": delta.rows, "work": name, **cost.as_json()}), flush=True)


if __name__ == "__main__":
    doltlite.bootstrap()
    main()
