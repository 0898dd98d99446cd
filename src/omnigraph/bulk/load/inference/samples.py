"""The first rows of files, as tables: what a proposal of a schema is made from."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

from omnigraph.bulk.load.sources.files import listed
from omnigraph.bulk.ranges import open_file
from omnigraph.errors import SourceUnusable
from omnigraph.formats.format import Format, format_of

Location = str | os.PathLike[str]
_IRREGULAR: Final = {"people": "person", "children": "child", "men": "man", "women": "woman", "data": "data"}
_NUMBERED: Final = re.compile(r"(?i)(part|data|chunk|file)?[-_]?[0-9].*")
"""Names of files that are parts of something whose name is that of their folder."""
_WORD: Final = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Sample:
    """The first rows of one table of the data.

    ``is_text`` says that every cell is a text whose meaning is not known, as in CSV. ``kind`` is set for records
    that name their type themselves; such records need no mapping.
    """

    name: str
    sources: tuple[Any, ...]
    rows: pa.Table
    is_whole: bool
    is_text: bool = False
    kind: str | None = None


def read_samples(
    data: Location | Sequence[Location] | Mapping[str, Any], rows: int, options: Mapping[str, str]
) -> list[Sample]:
    """The samples of all data: files, directories and globs, or Arrow data and files by the name of their type."""
    given: list[tuple[str | None, Any]]
    if isinstance(data, Mapping):
        given = list(data.items())
    else:
        locations = [data] if isinstance(data, str | os.PathLike) else list(data)
        given = [(None, location) for location in locations]
    found: list[Sample] = []
    for name, source in given:
        if isinstance(source, str | os.PathLike):
            for path, _ in listed(os.fspath(source), options):
                found += _read(path, name, rows, options)
        else:
            found.append(_of_arrow(str(name), source, rows))
    if not found:
        raise SourceUnusable("nothing", "give files of CSV, Parquet or JSON Lines")
    return _merged(found)


def _of_arrow(name: str, source: Any, rows: int) -> Sample:
    """The first rows of anything that gives Arrow data."""
    if not hasattr(source, "__arrow_c_stream__"):
        raise SourceUnusable(name, f"a {type(source).__name__} is neither a path nor Arrow data")
    reader = pa.RecordBatchReader.from_stream(source)
    table, is_whole = _taken(reader, reader.schema, rows)
    return Sample(name, (source,), table, is_whole)


def _read(path: str, name: str | None, rows: int, options: Mapping[str, str]) -> list[Sample]:
    kind, compression = format_of(path)
    called = name or type_name(path)
    try:
        with open_file(path, options) as raw:
            stream = pa.CompressedInputStream(raw, compression) if compression else raw
            if kind in (Format.CSV, Format.TSV):
                table, is_whole = _of_csv(stream, "\t" if kind is Format.TSV else ",", rows)
                return [Sample(called, (path,), table, is_whole, is_text=True)]
            if kind is Format.PARQUET:
                file = pq.ParquetFile(raw)
                batches = file.iter_batches(batch_size=min(rows, 65_536))
                table, is_whole = _taken(batches, file.schema_arrow, rows)
                return [Sample(called, (path,), table, is_whole)]
            if kind is Format.JSONL:
                return _of_lines(stream, path, called, rows)
    except (pa.ArrowException, OSError) as error:
        raise SourceUnusable(path, f"it cannot be read: {error}") from error
    raise SourceUnusable(path, "a schema is inferred from CSV, TSV, Parquet and JSON Lines")


def _taken(batches: Iterator[pa.RecordBatch] | Any, schema: pa.Schema, rows: int) -> tuple[pa.Table, bool]:
    """The first rows of batches, and whether these are all."""
    taken: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if count + batch.num_rows > rows:
            taken.append(batch.slice(0, rows - count))
            return pa.Table.from_batches(taken, schema), False
        taken.append(batch)
        count += batch.num_rows
    return pa.Table.from_batches(taken, schema), True


def _of_csv(stream: pa.NativeFile, delimiter: str, rows: int) -> tuple[pa.Table, bool]:
    head = stream.read(1 << 20)
    line = head.split(b"\n", 1)[0].rstrip(b"\r") + b"\n"
    parsing = pv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    names = pv.read_csv(pa.BufferReader(line), parse_options=parsing).column_names
    converting = pv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True)
    whole = pa.PythonFile(_Joined(head, stream), mode="r")
    reader = pv.open_csv(whole, pv.ReadOptions(use_threads=False), parsing, converting)
    return _taken(reader, reader.schema, rows)


class _Joined:
    """A stream with the part of it that was read before."""

    closed = False

    def __init__(self, head: bytes, stream: pa.NativeFile) -> None:
        self._head = head
        self._stream = stream

    def read(self, count: int = -1) -> bytes:
        if self._head:
            part, self._head = self._head[:count], self._head[count:] if count >= 0 else b""
            return part
        return bytes(self._stream.read(count if count >= 0 else None))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


def _of_lines(stream: pa.NativeFile, path: str, called: str, rows: int) -> list[Sample]:
    """The tables of JSON Lines: one of plain objects, and one for each type that records name."""
    plain: list[dict[str, Any]] = []
    typed: dict[tuple[str, str], list[dict[str, Any]]] = {}
    is_whole = True
    for number, line in enumerate(_lines(stream), 1):
        if number > rows:
            is_whole = False
            break
        text = line.strip()
        if not text or text.startswith(b"//"):
            continue
        try:
            record = json.loads(text)
        except ValueError as error:
            raise SourceUnusable(path, f"line {number} is not JSON: {error}") from None
        if not isinstance(record, dict):
            raise SourceUnusable(path, f"line {number} is not a JSON object")
        kind = next((k for k in ("type", "edge") if isinstance(record.get(k), str) and _is_record(record)), None)
        if kind is None:
            plain.append(record)
        else:
            ends = {end: record[end] for end in ("from", "to") if end in record}
            typed.setdefault((kind, record[kind]), []).append({**ends, **record.get("data", {})})
    found = [
        Sample(name, (path,), _table(records), is_whole, kind="edge" if kind == "edge" else "node")
        for (kind, name), records in typed.items()
    ]
    return found + ([Sample(called, (path,), _table(plain), is_whole)] if plain or not found else [])


def _is_record(record: dict[str, Any]) -> bool:
    """Has an object the form of a record that a load takes, with its values in `data`?"""
    return record.keys() <= {"type", "edge", "from", "to", "data"} and isinstance(record.get("data", {}), dict)


def _lines(stream: pa.NativeFile) -> Iterator[bytes]:
    held = b""
    while chunk := stream.read(1 << 20):
        *whole, held = (held + chunk).split(b"\n")
        yield from whole
    if held:
        yield held


def _table(records: list[dict[str, Any]]) -> pa.Table:
    """Objects as columns. Values that have no type in common, and objects, become their JSON texts."""
    columns: dict[str, pa.Array] = {}
    for name in dict.fromkeys(name for record in records for name in record):
        values = [record.get(name) for record in records]
        try:
            column = pa.array(values)
            if pa.types.is_struct(column.type) or pa.types.is_map(column.type):
                column = pa.array([None if v is None else json.dumps(v) for v in values], pa.string())
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            column = pa.array(
                [v if v is None or isinstance(v, str) else json.dumps(v) for v in values], pa.string()
            )
        columns[name] = column
    return pa.table(columns)


def _merged(samples: list[Sample]) -> list[Sample]:
    """One sample for each type: files of one folder often are parts of one table."""
    found: dict[tuple[str | None, str], Sample] = {}
    for sample in samples:
        key = (sample.kind, sample.name)
        first = found.get(key, sample)
        found[key] = sample if first is sample else replace(first, sources=first.sources + sample.sources)
    return list(found.values())


def type_name(path: str) -> str:
    """A name for the type of the rows of a file: `flight_legs.csv.gz` holds `FlightLeg`s."""
    parts = [part for part in PurePosixPath(path).parts if "=" not in part]
    stem = parts[-1].split(".", 1)[0]
    if _NUMBERED.fullmatch(stem) and len(parts) > 1:
        stem = parts[-2]
    words = _WORD.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", stem)) or ["Row"]
    words[-1] = _singular(words[-1])
    name = "".join(word[0].upper() + word[1:] for word in words)
    return name if name[0].isalpha() else f"T{name}"


def _singular(word: str) -> str:
    lower = word.lower()
    if lower in _IRREGULAR:
        return _IRREGULAR[lower]
    if lower.endswith("ies") and len(lower) > 4:
        return f"{word[:-3]}y"
    if lower.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if lower.endswith("s") and not lower.endswith(("ss", "us", "is")) else word
