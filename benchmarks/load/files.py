"""Files of one graph in JSON Lines, CSV or Parquet, as large as wanted, which are kept between runs.

People have a text of a dozen words and those who know each other a note of a few, some of which CSV has to quote.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from benchmarks.load.data import joined

SCHEMA: Final = """
node Person { name: String @key
  age: I32
  city: String
  score: F64
  joined: Date
  about: String }
edge Knows: Person -> Person { since: I32
  weight: F64
  note: String }
"""
JSONL: Final = "jsonl"
CSV: Final = "csv"
PARQUET: Final = "parquet"
FORMATS: Final = (JSONL, CSV, PARQUET)
TABLES: Final = ("Person", "Knows")

_RECORD_BYTES: Final = {JSONL: 162, CSV: 80, PARQUET: 39}
_EDGES_PER_NODE: Final = 4
_FEWEST: Final = 1_000
_CHUNK: Final = 250_000
_CITIES: Final = ("Amsterdam", "Berlin", "København", "Genève", "São Paulo", "東京")
_VOWELS: Final = ("a", "e", "i", "o", "u")
_CONSONANTS: Final = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z")
_SYLLABLES: Final = [first + second for first in _CONSONANTS for second in _VOWELS]
_WORDS: Final = [*(one + two for one in _SYLLABLES for two in _SYLLABLES[::3]), '"so-called"', "well,", "naïve"]


def made(megabytes: int, form: str) -> Path:
    """The folder with a graph of that size: ``lines.jsonl``, or one file for each type; made first if needed.

    Beside JSON Lines lie the same records as Parquet, for engines that do not read lines.
    """
    home = Path(tempfile.gettempdir()) / f"omnigraph-bench-files-{form}-{megabytes}-1"
    if not home.exists():
        part = home.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        _make(part, max(_FEWEST, megabytes * 1_000_000 // _RECORD_BYTES[form]), form)
        part.rename(home)
    return home


def size_of(home: Path, form: str) -> int:
    """How many bytes are loaded from a folder."""
    return sum(file.stat().st_size for file in home.glob(f"*.{form}"))


def _make(home: Path, records: int, form: str) -> None:
    nodes = max(1, records // (_EDGES_PER_NODE + 1))
    random = np.random.default_rng(11)
    chunks = _Chunks(random, nodes)
    with _Files(home, form) as files:
        for low in range(0, nodes, _CHUNK):
            high = min(nodes, low + _CHUNK)
            files.write(chunks.people(low, high), chunks.knows((high - low) * _EDGES_PER_NODE), random)


class _Chunks:
    def __init__(self, random: np.random.Generator, nodes: int) -> None:
        self.random, self.nodes = random, nodes

    def people(self, low: int, high: int) -> pa.Table:
        random, count = self.random, high - low
        return pa.table(
            {
                "name": joined("person-", np.arange(low, high)),
                "age": pa.array(random.integers(1, 99, count), pa.int32()),
                "city": pa.array(_CITIES).take(pa.array(random.integers(0, len(_CITIES), count))),
                "score": np.round(random.random(count), 4),
                "joined": pa.array(random.integers(10_000, 20_000, count).astype(np.int32)).cast(pa.date32()),
                "about": self._texts(count, 12),
            }
        )

    def knows(self, count: int) -> pa.Table:
        random = self.random
        return pa.table(
            {
                "from": joined("person-", random.integers(0, self.nodes, count)),
                "to": joined("person-", random.integers(0, self.nodes, count)),
                "since": pa.array(random.integers(1950, 2026, count), pa.int32()),
                "weight": np.round(random.random(count), 3),
                "note": self._texts(count, 7),
            }
        )

    def _texts(self, count: int, words: int) -> pa.Array:
        chosen = pa.array(_WORDS).take(pa.array(self.random.integers(0, len(_WORDS), count * words)))
        offsets = pa.array(np.arange(count + 1) * words, pa.int32())
        return pc.binary_join(pa.ListArray.from_arrays(offsets, chosen), " ")


class _Files:
    """The files of one graph, written chunk by chunk."""

    def __init__(self, home: Path, form: str) -> None:
        self.home, self.form = home, form
        self.tables: dict[str, pq.ParquetWriter] = {}

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        for table in self.tables.values():
            table.close()

    def write(self, people: pa.Table, knows: pa.Table, random: np.random.Generator) -> None:
        if self.form == JSONL:
            lines = pa.concat_arrays([_person_lines(people), _knows_lines(knows)])
            self._append("lines.jsonl", lines.take(pa.array(random.permutation(len(lines)))))
        for name, rows in zip(TABLES, (people, knows), strict=True):
            if self.form == CSV:
                self._append_csv(f"{name}.csv", rows)
            else:
                if name not in self.tables:
                    self.tables[name] = pq.ParquetWriter(self.home / f"{name}.parquet", rows.schema)
                self.tables[name].write_table(rows, row_group_size=100_000)

    def _append_csv(self, name: str, rows: pa.Table) -> None:
        if not (self.home / name).exists():
            (self.home / name).write_text(",".join(rows.column_names) + "\n")
        cells = [_quoted(column) if pa.types.is_string(column.type) else column for column in rows.columns]
        between = [part for cell in cells for part in (cell, ",")][:-1]
        self._append(name, joined(*between))

    def _append(self, name: str, lines: pa.Array) -> None:
        text = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "\n")[0].as_py()
        with (self.home / name).open("a") as file:
            file.write(text + "\n")


def _quoted(column: pa.ChunkedArray) -> pa.Array:
    """Cells of CSV, in quotes where they hold a comma or a quote."""
    texts = column.combine_chunks()
    quoted = joined('"', pc.replace_substring(texts, '"', '""'), '"')
    return pc.if_else(pc.match_substring_regex(texts, '[",]'), quoted, texts)


def _escaped(column: pa.ChunkedArray) -> pa.Array:
    return pc.replace_substring(column.combine_chunks(), '"', '\\"')


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
        ', "joined": "',
        rows["joined"],
        '", "about": "',
        _escaped(rows["about"]),
        '"}}',
    )


def _knows_lines(rows: pa.Table) -> pa.Array:
    return joined(
        '{"edge": "Knows", "from": "',
        rows["from"],
        '", "to": "',
        rows["to"],
        '", "data": {"since": ',
        rows["since"],
        ', "weight": ',
        rows["weight"],
        ', "note": "',
        _escaped(rows["note"]),
        '"}}',
    )
