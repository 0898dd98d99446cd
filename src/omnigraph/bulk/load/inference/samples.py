"""The first rows of files, as tables: what a proposal of a schema is made from."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.bulk.load.inference.delimited import marks_of, open_texts, without_marks
from omnigraph.bulk.load.sources.files import listed, recognised
from omnigraph.bulk.load.sources.opening import arrow_stream, opened
from omnigraph.errors import SourceUnusable
from omnigraph.formats.cells import decoded, is_text
from omnigraph.formats.dialect import Dialect
from omnigraph.formats.format import Format, format_of

Location = str | os.PathLike[str]
_IRREGULAR: Final = {"people": "person", "children": "child", "men": "man", "women": "woman", "data": "data"}
_NUMBERED: Final = re.compile(r"(?i)(part|data|chunk|file)?[-_]?[0-9].*")
"""Names of files that are parts of something whose name is that of their folder."""
_WORD: Final = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Sample:
    """The first rows of one table of the data.

    ``is_text`` says that every cell is a text whose meaning is not known, as in CSV, of which ``dialect`` tells
    how it is written. ``kind`` is set for records that name their type themselves; such records need no mapping.
    ``series`` is the name of the type if the file is one of several with numbers in their names.
    """

    name: str
    sources: tuple[Any, ...]
    rows: pa.Table
    is_whole: bool
    is_text: bool = False
    kind: str | None = None
    dialect: Dialect | None = None
    series: str | None = None


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
    kind, _ = format_of(path)
    if kind is None:
        raise SourceUnusable(path, "a schema is inferred from CSV, TSV, Parquet, Arrow IPC and JSON Lines")
    called, file = name or type_name(path), recognised(path, 0, options, otherwise=None)
    if kind is Format.ARROW:
        with arrow_stream(file) as reader:
            found = [Sample(called, (path,), *_taken(reader, reader.schema, rows))]
    else:
        with opened(file) as stream:
            found = _of_file(kind, path, called, stream, rows)
    series = None if name is not None else _series_name(path)
    return [replace(sample, series=series) if sample.kind is None else sample for sample in found]


def _of_file(kind: Format, path: str, called: str, stream: pa.NativeFile, rows: int) -> list[Sample]:
    match kind:
        case Format.CSV:
            return [_of_csv(path, called, stream, ",", rows)]
        case Format.TSV:
            return [_of_csv(path, called, stream, "\t", rows)]
        case Format.PARQUET:
            file = pq.ParquetFile(stream)
            batches = file.iter_batches(batch_size=min(rows, 65_536))
            return [Sample(called, (path,), *_taken(batches, file.schema_arrow, rows))]
        case _:
            return _of_lines(stream, path, called, rows)


def _taken(batches: Iterator[pa.RecordBatch] | Any, schema: pa.Schema, rows: int) -> tuple[pa.Table, bool]:
    """The first rows of batches, and whether these are all."""
    taken: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if count + batch.num_rows > rows:
            taken.append(batch.slice(0, rows - count))
            return _plain(pa.Table.from_batches(taken, schema)), False
        taken.append(batch)
        count += batch.num_rows
    return _plain(pa.Table.from_batches(taken, schema)), True


def _plain(table: pa.Table) -> pa.Table:
    """A table without columns that are written in some shorter way."""
    for index, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        chunks = [decoded(chunk) for chunk in column.chunks]
        texts = [chunk.cast(pa.string()) if is_text(chunk.type) else chunk for chunk in chunks]
        table = table.set_column(index, name, pa.chunked_array(texts)) if texts else table
    return table


def _of_csv(path: str, called: str, stream: pa.NativeFile, delimiter: str, rows: int) -> Sample:
    texts = open_texts(stream, delimiter, path)
    table, is_whole = _taken(texts.reader, texts.reader.schema, rows)
    marks = marks_of(table)
    dialect = replace(texts.dialect, nulls=(*texts.dialect.nulls, *marks))
    return Sample(called, (path,), without_marks(table, marks), is_whole, is_text=True, dialect=dialect)


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
    """Objects as columns. Values that have no type in common become their JSON texts."""
    columns: dict[str, pa.Array] = {}
    for name in dict.fromkeys(name for record in records for name in record):
        values = [record.get(name) for record in records]
        try:
            column = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            column = pa.array(
                [v if v is None or isinstance(v, str) else json.dumps(v) for v in values], pa.string()
            )
        columns[name] = column
    return pa.table(columns)


def _merged(samples: list[Sample]) -> list[Sample]:
    """One sample for each type: files of one folder often are parts of one table, as those of years are."""
    columns: dict[str, set[tuple[str, ...]]] = {}
    for sample in samples:
        if sample.series is not None:
            columns.setdefault(sample.series, set()).add(tuple(sample.rows.column_names))
    alone = {name for name, count in Counter(s.series for s in samples).items() if count == 1}
    found: dict[tuple[str | None, str], Sample] = {}
    for sample in samples:
        is_part = sample.series is not None and sample.series not in alone and len(columns[sample.series]) == 1
        name = str(sample.series) if is_part else sample.name
        first = found.get((sample.kind, name))
        found[sample.kind, name] = replace(sample, name=name) if first is None else _joined(first, sample)
    return list(found.values())


def _joined(first: Sample, second: Sample) -> Sample:
    """Two samples of one type, with the rows of both if their columns can be put together."""
    try:
        rows = pa.concat_tables([first.rows, second.rows], promote_options="permissive")
    except pa.ArrowException:
        rows = first.rows
    dialect = first.dialect
    if dialect is not None and second.dialect is not None:
        dialect = replace(dialect, nulls=tuple(dict.fromkeys((*dialect.nulls, *second.dialect.nulls))))
    is_whole = first.is_whole and second.is_whole
    return replace(first, sources=first.sources + second.sources, rows=rows, is_whole=is_whole, dialect=dialect)


def _series_name(path: str) -> str | None:
    """The name of the type that a file holds a part of, if its name ends in a number: `flights-2015.csv`."""
    place = PurePosixPath(path)
    stem, _, rest = place.name.partition(".")
    bare = re.sub(r"[-_ ]*[0-9][-_0-9]*$", "", stem)
    if _NUMBERED.fullmatch(stem) or bare in ("", stem):
        return None
    return type_name(str(place.with_name(f"{bare}.{rest}")))


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
