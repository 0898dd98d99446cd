"""The files of a load, found by paths, directories and globs on disk or in a bucket, and cut into slices."""

from __future__ import annotations

import fnmatch
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

import obstore
import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.bulk.load.inputs import WILDCARDS
from omnigraph.bulk.ranges import open_file
from omnigraph.errors import OmniError, SourceUnusable
from omnigraph.formats.encoding import TABLE_KEY
from omnigraph.formats.format import FORMATS, Format, format_of
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.lang.schema.lookup import edge_type, node_type
from omnigraph.settings import BulkSettings
from omnigraph.storage.address import parse_address
from omnigraph.storage.control.remote import s3_store
from omnigraph.storage.unavailable import translated

_LARGEST_SLICE: Final = 256 << 20
_MAX_SLICES: Final = 10_000
_FILES_PER_TABLE: Final = 1_000
_MAX_ROWS_PER_FILE: Final = 1_000_000
_BYTES_PER_RECORD: Final = 100


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file to load. ``table_key`` is the type of all rows of a Parquet file."""

    name: str
    size: int
    format: Format
    compression: str | None = None
    table_key: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Slice:
    """The share of a file that one task reads: a range of bytes of JSON Lines, or of row groups of Parquet.

    A compressed file is one slice, of which ``read_bytes`` are unpacked at a time.
    """

    number: int
    file: SourceFile
    start: int
    stop: int
    read_bytes: int = BulkSettings().slice_bytes


Location = str | os.PathLike[str]
Frame = TypeVar("Frame")


def find_sources(
    catalog: Catalog,
    options: Mapping[str, str],
    data: Location | Sequence[Location] | None,
    nodes: Mapping[str, Frame | Location],
    edges: Mapping[str, Frame | Location],
) -> tuple[list[SourceFile], list[tuple[EntityType, Frame]]]:
    """The files that a caller named, and the DataFrames with the types of their rows."""
    locations = [] if data is None else [data] if isinstance(data, str | os.PathLike) else list(data)
    files = find_files(locations, catalog, options)
    frames: list[tuple[EntityType, Frame]] = []
    typed: list[tuple[EntityType, Frame | Location]] = []
    typed += ((node_type(catalog, name), source) for name, source in nodes.items())
    typed += ((edge_type(catalog, name), source) for name, source in edges.items())
    for entity, source in typed:
        if isinstance(source, str | os.PathLike):
            files += typed_files(source, entity.table_key, options)
        else:
            frames.append((entity, source))
    if not files and not frames:
        raise SourceUnusable("nothing", "give files, or DataFrames as nodes={TYPE: df} and edges={TYPE: df}")
    return files, frames


def find_files(locations: Iterable[Location], catalog: Catalog, options: Mapping[str, str]) -> list[SourceFile]:
    """The files at some locations, each once; those of a directory or a glob in the order of their names."""
    found: dict[str, SourceFile] = {}
    for location in locations:
        text = os.fspath(location)
        named = {text, str(_path(text))}
        for name, size in listed(text, options):
            found.setdefault(name, recognised(name, size, options, is_named=name in named))
    return [file if file.format is Format.JSONL else _typed(file, catalog) for file in found.values()]


def typed_files(location: Location, table_key: str, options: Mapping[str, str]) -> list[SourceFile]:
    """The Parquet files at a location, all of which hold rows of one type."""
    text = os.fspath(location)
    files = [recognised(name, size, options, is_named=False) for name, size in listed(text, options)]
    for file in files:
        if file.format is not Format.PARQUET:
            raise SourceUnusable(
                file.name, "rows of one type come as Parquet; JSON Lines name the type per record"
            )
    return [SourceFile(f.name, f.size, f.format, None, table_key, f.options) for f in files]


def listed(text: str, options: Mapping[str, str]) -> list[tuple[str, int]]:
    """The names and sizes of the files at a location."""
    return _in_bucket(text, options) if text.startswith("s3://") else _on_disk(text)


def _path(text: str) -> Path:
    """An absolute path, as workers have other working directories."""
    return Path(text.removeprefix("file://")).expanduser().absolute()


def _on_disk(text: str) -> list[tuple[str, int]]:
    path = _path(text)
    if path.is_dir():
        listed = sorted(_below(path))
        if not listed:
            raise SourceUnusable(text, "the directory has no files")
        return [(str(file), file.stat().st_size) for file in listed]
    if path.exists():
        return [(str(path), path.stat().st_size)]
    if WILDCARDS & set(text):
        matched = sorted(_matching(path))
        if not matched:
            raise SourceUnusable(text, "no file matches")
        return [entry for file in matched for entry in _on_disk(str(file))]
    raise SourceUnusable(text, "there is no such file or directory")


def _matching(pattern: Path) -> Iterable[Path]:
    """The files and directories that a glob names."""
    count = next(index for index, part in enumerate(pattern.parts) if WILDCARDS & set(part))
    fixed = Path(*pattern.parts[:count])
    for path in fixed.glob(str(PurePosixPath(*pattern.parts[count:]))):
        if _is_data(path.relative_to(fixed).parts):
            yield path


def _below(folder: Path) -> Iterable[Path]:
    """The files of a directory and those below."""
    for path in folder.rglob("*"):
        if path.is_file() and _is_data(path.relative_to(folder).parts):
            yield path


def _is_data(inner: Sequence[str]) -> bool:
    """Is a file data, by its path below the directory? Names with a leading dot or underscore are not."""
    return not any(part.startswith((".", "_")) for part in inner)


def _in_bucket(text: str, options: Mapping[str, str]) -> list[tuple[str, int]]:
    bucket, _, key = text.removeprefix("s3://").partition("/")
    address = parse_address(f"s3://{bucket}", options)
    store = s3_store(address)
    wild = next((index for index, letter in enumerate(key) if letter in WILDCARDS), None)
    with translated(text):
        if wild is None and key and not key.endswith("/"):
            try:
                return [(text, obstore.head(store, key)["size"])]
            except FileNotFoundError:
                pass
        prefix = key[: key.rfind("/", 0, wild) + 1] if wild is not None else (key.rstrip("/") + "/" if key else "")
        pages = list(obstore.list(store, prefix or None))
    entries = sorted((entry["path"], entry["size"]) for page in pages for entry in page)
    inner = [(path, size) for path, size in entries if _is_data(path.removeprefix(prefix).split("/"))]
    pattern = key.rstrip("/").split("/") if wild is not None else []
    matched = [(path, size) for path, size in inner if _fits(path.split("/"), pattern)]
    if not matched:
        raise SourceUnusable(
            text, "no object matches" if wild is not None else "there is no such object or prefix"
        )
    return [(f"s3://{bucket}/{path}", size) for path, size in matched]


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Does a glob match an object or one of its folders? As on disk, `*` stays within a folder, `**` does not."""
    if not pattern or not parts:
        return not pattern
    if pattern[0] == "**":
        return _fits(parts, pattern[1:]) or _fits(parts[1:], pattern)
    return fnmatch.fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def recognised(name: str, size: int, options: Mapping[str, str], *, is_named: bool) -> SourceFile:
    """A file with the format that its name tells. If the name tells none, a file that the caller named is JSON
    Lines, and one that was found in a directory is refused."""
    known, compression = format_of(name)
    if known is None and is_named:
        known = Format.JSONL
    if known is None:
        formats = ", ".join(sorted(FORMATS))
        raise SourceUnusable(name, f"its name does not say how its records are written; known are {formats}")
    if known is Format.PARQUET and compression is not None:
        raise SourceUnusable(name, f"Parquet compresses itself; unpack the {compression} around it")
    return SourceFile(name, size, known, compression, None, _reaching(name, options))


def _reaching(name: str, options: Mapping[str, str]) -> Mapping[str, str]:
    """The storage options with which a worker reads a file in a bucket: those of this process."""
    if not name.startswith("s3://"):
        return {}
    bucket = name.removeprefix("s3://").partition("/")[0]
    return parse_address(f"s3://{bucket}", options).options


def _typed(file: SourceFile, catalog: Catalog) -> SourceFile:
    """A Parquet file with the type of its rows, from its metadata or from the folder it is in."""
    stored = (parquet_schema(file).metadata or {}).get(TABLE_KEY)
    key = stored.decode(errors="replace") if stored is not None else _type_of_folder(file.name)
    known = {f"node:{name}" for name in catalog.nodes} | {f"edge:{name}" for name in catalog.edges}
    if key not in known:
        reason = (
            f"its rows are of {key}, which the schema has not" if key else "it does not say the type of its rows"
        )
        remedy = "put it below nodes/TYPE or edges/TYPE, or name its type: --nodes TYPE=PATH, --edges TYPE=PATH"
        raise SourceUnusable(file.name, f"{reason}; {remedy}")
    return SourceFile(file.name, file.size, file.format, None, key, file.options)


def _type_of_folder(name: str) -> str | None:
    """The type that a path names: the part below the innermost folder `nodes` or `edges`."""
    kinds = {"nodes": "node", "edges": "edge"}
    for folder, inner in reversed(list(pairwise(name.split("/")))):
        if folder in kinds:
            return f"{kinds[folder]}:{inner.partition('.')[0]}"
    return None


def parquet_schema(file: SourceFile) -> pa.Schema:
    """The columns of a Parquet file."""
    return _parquet(file).schema_arrow


def _parquet(file: SourceFile) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(open_file(file.name, file.options))
    except OmniError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise SourceUnusable(file.name, f"it cannot be read as Parquet: {error}") from error


def rows_per_file(files: Sequence[SourceFile], settings: BulkSettings) -> int:
    """How many rows a staged file gets: few, as a later change of one row costs as much as its file has; more
    where a table would otherwise get thousands of files, all of which every commit lists."""
    records = sum(file.size for file in files) // _BYTES_PER_RECORD
    return max(settings.rows_per_file, min(_MAX_ROWS_PER_FILE, records // _FILES_PER_TABLE))


def slices_of(files: Sequence[SourceFile], cores: int, settings: BulkSettings) -> list[Slice]:
    """The files in slices of about the same size, in multiples of the cores; larger ones where a driver would have
    to schedule too many."""
    total = sum(file.size for file in files)
    size = min(_LARGEST_SLICE, max(settings.slice_bytes, total // _MAX_SLICES))
    rounds = max(1, math.ceil(total / size / cores))
    target = max(settings.smallest_slice, math.ceil(total / (rounds * cores)))
    slices: list[Slice] = []
    for file in files:
        ranges = _row_groups(file, target) if file.format is Format.PARQUET else _byte_ranges(file, target)
        slices += [
            Slice(number, file, start, stop, settings.slice_bytes)
            for number, (start, stop) in enumerate(ranges, len(slices))
        ]
    return slices


def _byte_ranges(file: SourceFile, target: int) -> list[tuple[int, int]]:
    if file.compression is not None:
        return [(0, file.size)]
    parts = max(1, round(file.size / target))
    edges = [file.size * part // parts for part in range(parts + 1)]
    return list(pairwise(edges))


def _row_groups(file: SourceFile, target: int) -> list[tuple[int, int]]:
    metadata = _parquet(file).metadata
    ranges: list[tuple[int, int]] = []
    start = size = 0
    for index in range(metadata.num_row_groups):
        size += metadata.row_group(index).total_byte_size
        if size >= target or index == metadata.num_row_groups - 1:
            ranges.append((start, index + 1))
            start, size = index + 1, 0
    return ranges
