"""The same rows in every form in which a load takes them: files of each format, packed or not, and held rows."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

Rows = Sequence[Mapping[str, Any]]
_INTEGERS = {"height", "miles"}


def table_of(rows: Rows) -> pa.Table:
    """Rows with the types that a careful writer gives them; a column with other values is one of texts."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: _column(name, [row.get(name) for row in rows]) for name in names})


def _column(name: str, values: list[Any]) -> pa.Array:
    if name in _INTEGERS and not any(isinstance(value, str) for value in values):
        return pa.array(values, pa.int32())
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def delimited(mark: str) -> Callable[[Rows], bytes]:
    def written(rows: Rows) -> bytes:
        sink = pa.BufferOutputStream()
        pyarrow.csv.write_csv(table_of(rows), sink, pyarrow.csv.WriteOptions(delimiter=mark))
        return bytes(sink.getvalue())

    return written


def parquet(rows: Rows) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table_of(rows), sink, row_group_size=2)
    return bytes(sink.getvalue())


def arrow(rows: Rows) -> bytes:
    sink, table = pa.BufferOutputStream(), table_of(rows)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return bytes(sink.getvalue())


def arrow_stream(rows: Rows) -> bytes:
    sink, table = pa.BufferOutputStream(), table_of(rows)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return bytes(sink.getvalue())


def lines(rows: Rows) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


WRITERS: dict[str, Callable[[Rows], bytes]] = {
    "csv": delimited(","),
    "tsv": delimited("\t"),
    "parquet": parquet,
    "arrow": arrow,
    "arrows": arrow_stream,
    "jsonl": lines,
}
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda content: bytes(pa.Codec("zstd").compress(content)),
}


def file(home: Path, name: str, rows: Rows, kind: str, packing: str = "") -> Path:
    path = home / f"{name}.{kind}{packing}"
    path.write_bytes(PACKERS[packing](WRITERS[kind](rows)))
    return path


HELD: dict[str, Callable[[Rows], Any]] = {
    "table": table_of,
    "record batches": lambda rows: table_of(rows).to_batches(max_chunksize=2),
    "reader": lambda rows: table_of(rows).to_reader(),
    "pandas": lambda rows: table_of(rows).to_pandas(),
    "polars": lambda rows: pl.DataFrame(table_of(rows)),
    "lazy polars": lambda rows: pl.DataFrame(table_of(rows)).lazy(),
    "duckdb": lambda rows: duckdb.connect().from_arrow(table_of(rows)),
    "dictionaries": lambda rows: [dict(row) for row in rows],
    "generator": lambda rows: (dict(row) for row in rows),
}
