"""The input of the loads: people who know each other, as JSON Lines, and the same as Parquet for the peers."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SCHEMA: Final = """
node Person { name: String @key
  age: I32
  city: String
  score: F64 }
edge Knows: Person -> Person { since: I32
  weight: F64 }
"""
FILES: Final = 8
_CITIES: Final = ("Amsterdam", "Berlin", "København", "Genève", "São Paulo", "東京")


def made(nodes: int, edges: int) -> Path:
    """The folder with the input of that size, made first if it is not there."""
    home = Path(tempfile.gettempdir()) / f"omnigraph-bench-load-{nodes}-{edges}-1"
    if not home.exists():
        part = home.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        _make(part, nodes, edges)
        part.rename(home)
    return home


def _make(home: Path, nodes: int, edges: int) -> None:
    """Files in which nodes and edges are mixed, as exports of other systems have them."""
    (home / "lines").mkdir(parents=True)
    (home / "tables").mkdir()
    random = np.random.default_rng(7)
    people: list[pa.Table] = []
    knows: list[pa.Table] = []
    for number in range(FILES):
        people.append(_people(random, nodes * number // FILES, nodes * (number + 1) // FILES))
        knows.append(_knows(random, nodes, edges * (number + 1) // FILES - edges * number // FILES))
        lines = pa.concat_arrays([_person_lines(people[-1]), _knows_lines(knows[-1])])
        mixed = lines.take(pa.array(random.permutation(len(lines))))
        joined = pc.binary_join(pa.ListArray.from_arrays([0, len(mixed)], mixed), "\n")[0].as_py()
        (home / "lines" / f"part-{number}.jsonl").write_text(joined + "\n")
    pq.write_table(pa.concat_tables(people), home / "tables" / "Person.parquet")
    pq.write_table(pa.concat_tables(knows), home / "tables" / "Knows.parquet")


def _people(random: np.random.Generator, low: int, high: int) -> pa.Table:
    count = high - low
    return pa.table(
        {
            "name": joined("person-", np.arange(low, high)),
            "age": pa.array(random.integers(1, 99, count), pa.int32()),
            "city": pa.array(_CITIES).take(pa.array(random.integers(0, len(_CITIES), count))),
            "score": np.round(random.random(count), 4),
        }
    )


def _knows(random: np.random.Generator, nodes: int, count: int) -> pa.Table:
    return pa.table(
        {
            "src": joined("person-", random.integers(0, nodes, count)),
            "dst": joined("person-", random.integers(0, nodes, count)),
            "since": pa.array(random.integers(1950, 2026, count), pa.int32()),
            "weight": np.round(random.random(count), 3),
        }
    )


def _person_lines(rows: pa.Table) -> pa.Array:
    return joined(
        '{"type": "Person", "data": {"name": "',
        rows["name"],
        '", "age": ',
        rows["age"],
        ', "city": "',
        rows["city"],
        '", "score": ',
        rows["score"],
        "}}",
    )


def _knows_lines(rows: pa.Table) -> pa.Array:
    return joined(
        '{"edge": "Knows", "from": "',
        rows["src"],
        '", "to": "',
        rows["dst"],
        '", "data": {"since": ',
        rows["since"],
        ', "weight": ',
        rows["weight"],
        "}}",
    )


def joined(*parts: Any) -> pa.Array:
    """Texts and columns side by side, as texts."""
    texts = [part if isinstance(part, str) else _texts(part) for part in parts]
    return pc.binary_join_element_wise(*texts, "")


def _texts(values: Any) -> pa.Array:
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else pa.array(values)
    return array.cast(pa.string())
