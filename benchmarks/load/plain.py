"""The floor of a load in the process: the same files through Arrow's readers into Lance tables, and nothing else.

Two threads take shares of the files, parse them with the types of the columns given, number the edges, and write
data files of as many rows as OmniGraph does. No value is checked, no key is compared and no end is looked up; a
bad file ends the floor with Arrow's error. Shares of text are cut at any line end, which is right only because no
value of these files holds one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.load.files import CSV, JSONL, TABLES

_THREADS: Final = 2
_LARGEST_SHARE: Final = 64 << 20
_PERSON: Final = pa.schema(
    [
        ("name", pa.string()),
        ("age", pa.int32()),
        ("city", pa.string()),
        ("score", pa.float64()),
        ("joined", pa.date32()),
        ("about", pa.string()),
    ]
)
_KNOWS: Final = pa.schema(
    [
        ("from", pa.string()),
        ("to", pa.string()),
        ("since", pa.int32()),
        ("weight", pa.float64()),
        ("note", pa.string()),
    ]
)
_GIVEN: Final = {"Person": _PERSON, "Knows": _KNOWS}
_ENDS: Final = ("from", "to")
_DAYS_AS_TEXT: Final = _PERSON.set(_PERSON.get_field_index("joined"), pa.field("joined", pa.string()))
_DATA: Final = pa.struct([*_DAYS_AS_TEXT, *(field for field in _KNOWS if field.name not in _ENDS)])
_RAW: Final = pa.schema([(name, pa.string()) for name in ("type", "edge", *_ENDS)] + [("data", _DATA)])
_STORED: Final = {
    "Person": pa.schema([("id", pa.string()), *_PERSON]),
    "Knows": pa.schema([("id", pa.string()), ("src", pa.string()), ("dst", pa.string()), *list(_KNOWS)[2:]]),
}

Share = Callable[[], dict[str, pa.Table]]
"""Reads the rows of a share of the files, by type."""


def load(home: Path, form: str, to: Path) -> None:
    """Write the tables of a graph's files."""
    import lance

    shutil.rmtree(to, ignore_errors=True)
    numbers = count()
    with ThreadPoolExecutor(_THREADS) as pool:
        parts = list(pool.map(lambda share: _written(share(), to, next(numbers)), _shares(home, form)))
    for name in TABLES:
        fragments = [fragment for part in parts for fragment in part.get(name, ())]
        lance.LanceDataset.commit(str(to / name), lance.LanceOperation.Overwrite(_STORED[name], fragments))


def _written(rows: dict[str, pa.Table], to: Path, number: int) -> dict[str, list[Any]]:
    from lance.fragment import write_fragments

    written: dict[str, list[Any]] = {}
    for name, found in rows.items():
        columns = {own: found[own] for own in found.column_names}
        if name == "Knows":
            ids = pa.array(np.arange(found.num_rows) + (number << 40)).cast(pa.string())
            columns |= {"id": ids, "src": found["from"], "dst": found["to"]}
        else:
            columns["id"] = found["name"]
        schema = _STORED[name]
        table = pa.table([columns[own] for own in schema.names], schema=schema)
        uri = str(to / name)
        written[name] = list(
            write_fragments(table, uri, mode="overwrite", schema=schema, max_rows_per_file=100_000)
        )
    return written


def _shares(home: Path, form: str) -> Iterator[Share]:
    if form == JSONL:
        for low, high in _cuts(home / "lines.jsonl", 0):
            yield partial(_read_lines, home / "lines.jsonl", low, high)
    for name in TABLES if form == CSV else ():
        file = home / f"{name}.csv"
        with file.open("rb") as text:
            header = len(text.readline())
        for low, high in _cuts(file, header):
            yield partial(_read_csv, name, file, low, high)
    for name in TABLES if form not in (JSONL, CSV) else ():
        yield from _row_groups(name, home / f"{name}.parquet")


def _cuts(file: Path, start: int) -> list[tuple[int, int]]:
    """Ranges of a file of lines that end where a line does; as many as threads, or more of a large file."""
    size = file.stat().st_size - start
    parts = max(_THREADS, -(-size // _LARGEST_SHARE))
    edges = [start]
    with file.open("rb") as text:
        for part in range(1, parts):
            text.seek(start + size * part // parts)
            text.readline()
            edges.append(text.tell())
    edges.append(start + size)
    return list(pairwise(edges))


def _bytes(file: Path, low: int, high: int) -> pa.BufferReader:
    with file.open("rb") as text:
        text.seek(low)
        return pa.BufferReader(text.read(high - low))


def _read_lines(file: Path, low: int, high: int) -> dict[str, pa.Table]:
    import pyarrow.json as pj

    rows = pj.read_json(
        _bytes(file, low, high),
        read_options=pj.ReadOptions(block_size=8 << 20, use_threads=False),
        parse_options=pj.ParseOptions(explicit_schema=_RAW, unexpected_field_behavior="error"),
    )
    found: dict[str, pa.Table] = {}
    for name, member in zip(TABLES, ("type", "edge"), strict=True):
        mine = rows.filter(pc.is_valid(rows[member]))
        given = _GIVEN[name]
        own = [mine[one] if one in _ENDS else pc.struct_field(mine["data"], one) for one in given.names]
        found[name] = pa.table(own, names=given.names).cast(given)
    return found


def _read_csv(name: str, file: Path, low: int, high: int) -> dict[str, pa.Table]:
    import pyarrow.csv as pv

    given = _GIVEN[name]
    rows = pv.read_csv(
        _bytes(file, low, high),
        read_options=pv.ReadOptions(block_size=8 << 20, use_threads=False, column_names=given.names),
        convert_options=pv.ConvertOptions(column_types=given),
    )
    return {name: rows}


def _row_groups(name: str, file: Path) -> Iterator[Share]:
    import pyarrow.parquet as pq

    groups = pq.read_metadata(file).num_row_groups
    parts = max(1, min(groups, _THREADS), groups // 8)
    for part in range(parts):
        mine = list(range(groups * part // parts, groups * (part + 1) // parts))
        yield partial(_read_groups, name, file, mine)


def _read_groups(name: str, file: Path, groups: list[int]) -> dict[str, pa.Table]:
    import pyarrow.parquet as pq

    return {name: pq.ParquetFile(file).read_row_groups(groups, use_threads=False)}
