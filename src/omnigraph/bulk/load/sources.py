"""What a load is given: files, directories, globs, on disk or in a bucket, and how they are cut into slices."""

from __future__ import annotations

import fnmatch
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Final

import obstore
import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.bulk.engines import WILD
from omnigraph.bulk.ranges import open_file
from omnigraph.errors import OmniError, SourceUnusable
from omnigraph.formats.encoding import TABLE_KEY
from omnigraph.formats.format import FORMATS, Format, format_of
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.storage.address import parse_address
from omnigraph.storage.control.remote import s3_store
from omnigraph.storage.files.datafiles import ROWS_PER_FILE
from omnigraph.storage.unavailable import translated

SLICE_BYTES: Final = 64 << 20
SMALLEST_SLICE: Final = 1 << 20
_LARGEST_SLICE: Final = 256 << 20
_MOST_SLICES: Final = 10_000
_FEW_FILES: Final = 1_000
_MOST_ROWS_PER_FILE: Final = 1_000_000
_BYTES_PER_RECORD: Final = 100


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file to load. ``table_key`` is the type of all its rows, for Parquet."""

    name: str
    size: int
    format: Format
    compression: str | None = None
    table_key: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Slice:
    """The share of a file that one task reads: bytes of JSON Lines, or row groups of Parquet.

    ``first_row`` counts the rows of a Parquet file before the slice; the lines before a range of bytes are not
    known before the ranges in front of it have been read.
    """

    number: int
    file: SourceFile
    start: int
    stop: int
    first_row: int = 0


def find_files(
    places: Iterable[str | os.PathLike[str]], catalog: Catalog, options: Mapping[str, str]
) -> list[SourceFile]:
    """The files that places name, each directory's and glob's in the order of their names, and none twice."""
    found: dict[str, SourceFile] = {}
    for place in places:
        text = os.fspath(place)
        named = {text, str(_path(text))}
        for name, size in _listed(text, options):
            found.setdefault(name, recognised(name, size, options, is_named=name in named))
    return [file if file.format is Format.JSONL else _typed(file, catalog) for file in found.values()]


def typed_files(place: str | os.PathLike[str], table_key: str, options: Mapping[str, str]) -> list[SourceFile]:
    """The Parquet files of a place that all hold rows of one type."""
    text = os.fspath(place)
    files = [recognised(name, size, options, is_named=False) for name, size in _listed(text, options)]
    for file in files:
        if file.format is not Format.PARQUET:
            raise SourceUnusable(
                file.name, "rows of one type come as Parquet; JSON Lines name the type per record"
            )
    return [SourceFile(f.name, f.size, f.format, None, table_key, f.options) for f in files]


def _listed(text: str, options: Mapping[str, str]) -> list[tuple[str, int]]:
    """The names and sizes of the files of one place."""
    return _in_bucket(text, options) if text.startswith("s3://") else _on_disk(text)


def _path(text: str) -> Path:
    """A path that means the same to workers, wherever they run."""
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
    if WILD & set(text):
        matched = sorted(_matching(path))
        if not matched:
            raise SourceUnusable(text, "no file matches")
        return [entry for file in matched for entry in _on_disk(str(file))]
    raise SourceUnusable(text, "there is no such file or directory")


def _matching(pattern: Path) -> Iterable[Path]:
    """The files and directories that a glob names."""
    count = next(index for index, part in enumerate(pattern.parts) if WILD & set(part))
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
    """Is something data by its path below what was named? A dot or an underscore in front says that it is not."""
    return not any(part.startswith((".", "_")) for part in inner)


def _in_bucket(text: str, options: Mapping[str, str]) -> list[tuple[str, int]]:
    bucket, _, key = text.removeprefix("s3://").partition("/")
    address = parse_address(f"s3://{bucket}", options)
    store = s3_store(address)
    wild = next((index for index, letter in enumerate(key) if letter in WILD), None)
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
    """Does a glob name an object or a folder it is in? As on a disk `*` stays within a folder, `**` does not."""
    if not pattern or not parts:
        return not pattern
    if pattern[0] == "**":
        return _fits(parts, pattern[1:]) or _fits(parts[1:], pattern)
    return fnmatch.fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def recognised(name: str, size: int, options: Mapping[str, str], *, is_named: bool) -> SourceFile:
    """A file with its format by its name. One that the user named is JSON Lines if its name does not say; one that
    was found in a directory is refused then, because something else may be meant."""
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
    """The settings with which a worker reaches a file: in a bucket those of this process."""
    if not name.startswith("s3://"):
        return {}
    bucket = name.removeprefix("s3://").partition("/")[0]
    return parse_address(f"s3://{bucket}", options).options


def _typed(file: SourceFile, catalog: Catalog) -> SourceFile:
    """A Parquet file with the type of its rows: what its metadata say, or the folder or file it is named for."""
    noted = (parquet_schema(file).metadata or {}).get(TABLE_KEY)
    key = noted.decode(errors="replace") if noted is not None else _named_type(file.name)
    known = {f"node:{name}" for name in catalog.nodes} | {f"edge:{name}" for name in catalog.edges}
    if key not in known:
        said = (
            f"its rows are of {key}, which the schema has not" if key else "it does not say the type of its rows"
        )
        remedy = "put it below nodes/TYPE or edges/TYPE, or name its type: --nodes TYPE=PATH, --edges TYPE=PATH"
        raise SourceUnusable(file.name, f"{said}; {remedy}")
    return SourceFile(file.name, file.size, file.format, None, key, file.options)


def _named_type(name: str) -> str | None:
    """The type that the innermost of the folders `nodes` and `edges` has below it."""
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


def rows_per_file(files: Sequence[SourceFile]) -> int:
    """How many rows a staged file gets: few, because a later change of one row costs what its file has; but more
    where a table would otherwise get thousands of files, as every commit lists them all."""
    records = sum(file.size for file in files) // _BYTES_PER_RECORD
    return min(_MOST_ROWS_PER_FILE, max(ROWS_PER_FILE, records // _FEW_FILES))


def cut(files: Sequence[SourceFile], cores: int, size: int = SLICE_BYTES) -> list[Slice]:
    """Slices of about that size, as many as keep all cores busy to the end; larger ones where they would be too
    many for one driver."""
    total = sum(file.size for file in files)
    size = min(_LARGEST_SLICE, max(size, total // _MOST_SLICES))
    rounds = max(1, math.ceil(total / size / cores))
    wanted = max(SMALLEST_SLICE, math.ceil(total / (rounds * cores)))
    slices: list[Slice] = []
    for file in files:
        cutter: Callable[[SourceFile, int], list[tuple[int, int, int]]]
        cutter = _row_groups if file.format is Format.PARQUET else _byte_ranges
        slices += [Slice(len(slices) + i, file, *part) for i, part in enumerate(cutter(file, wanted))]
    return slices


def _byte_ranges(file: SourceFile, wanted: int) -> list[tuple[int, int, int]]:
    if file.compression is not None:
        return [(0, file.size, 0)]
    parts = max(1, round(file.size / wanted))
    edges = [file.size * part // parts for part in range(parts + 1)]
    return [(low, high, 0) for low, high in pairwise(edges)]


def _row_groups(file: SourceFile, wanted: int) -> list[tuple[int, int, int]]:
    metadata = _parquet(file).metadata
    parts: list[tuple[int, int, int]] = []
    start = size = rows = first = 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        size += group.total_byte_size
        rows += group.num_rows
        if size >= wanted or index == metadata.num_row_groups - 1:
            parts.append((start, index + 1, first))
            start, size, first = index + 1, 0, first + rows
            rows = 0
    return parts
