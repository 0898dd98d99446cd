"""The files of a load: what is known of each, and how they are found on disk and in a bucket."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

import obstore

from omnigraph.arguments import shortened
from omnigraph.bulk.load.inputs import WILDCARDS
from omnigraph.errors import SourceUnusable, StorageUnavailable
from omnigraph.formats.dialect import PLAIN, Dialect
from omnigraph.formats.format import FORMATS, Format, format_of
from omnigraph.storage.address import parse_address
from omnigraph.storage.control.remote import s3_store
from omnigraph.storage.unavailable import translated

_UNPACKED: Final = 5
"""About how many times as large packed records are once they are unpacked."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file to load.

    If all its rows are of one type, ``table_key`` is that type, ``columns`` the column of the file that each
    column of the table is read from, and ``names`` are all columns of the file. ``ignores_others`` says that the
    caller chose the columns.
    """

    name: str
    size: int
    format: Format
    compression: str | None = None
    table_key: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    columns: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    dialect: Dialect = PLAIN
    ignores_others: bool = False

    @property
    def unpacked_size(self) -> int:
        """About how many bytes the records have once they are unpacked."""
        is_packed = self.compression is not None or self.format is Format.PARQUET
        return self.size * _UNPACKED if is_packed else self.size


def listed(text: str, options: Mapping[str, str]) -> list[tuple[str, int]]:
    """The names and sizes of the files at a location."""
    if text.startswith("s3://"):
        return _in_bucket(text, options)
    try:
        return _on_disk(text)
    except OSError as error:
        raise StorageUnavailable(shortened(text), error.strerror or str(error)) from error
    except ValueError as error:
        raise StorageUnavailable(shortened(text), str(error)) from error


def absolute(text: str) -> Path:
    """An absolute path, as workers have other working directories."""
    return Path(text.removeprefix("file://")).expanduser().absolute()


def _on_disk(text: str) -> list[tuple[str, int]]:
    path = absolute(text)
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


def recognised(
    name: str, size: int, options: Mapping[str, str], *, otherwise: Format | None, given: Format | None = None
) -> SourceFile:
    """A file with the format that the caller gave or its name tells; if neither does, with another one if that is
    allowed."""
    told, compression = format_of(name)
    known = given or told or otherwise
    if known is None:
        formats = ", ".join(sorted(FORMATS))
        reason = f"its name does not say how its records are written; known are {formats}, or give `format`"
        raise SourceUnusable(name, reason)
    return SourceFile(name, size, known, compression, options=_reaching(name, options))


def _reaching(name: str, options: Mapping[str, str]) -> Mapping[str, str]:
    """The storage options with which a worker reads a file in a bucket: those of this process."""
    if not name.startswith("s3://"):
        return {}
    bucket = name.removeprefix("s3://").partition("/")[0]
    return parse_address(f"s3://{bucket}", options).options
