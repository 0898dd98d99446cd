"""The data of a load: whether it is locations of files or records in memory, and which engine loads it."""

from __future__ import annotations

import datetime as dt
import json
import os
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from omnigraph.arguments import described, shortened
from omnigraph.bulk.load.options import LoadOptions
from omnigraph.bulk.runner import Engine
from omnigraph.errors import BadValue, InvalidArgument, RequestError, ResourceLimit, StorageUnavailable
from omnigraph.formats.format import Format, format_of
from omnigraph.formats.rows import blob_text

Data = str | bytes | os.PathLike[str] | Iterable[Mapping[str, Any]]
WILDCARDS: Final = frozenset("*?[")


def needs_spark(data: object, typed: Mapping[str, object], engine: str, options: LoadOptions) -> bool:
    """Does a load run on Spark? RequestError if it cannot run on the engine that the caller named."""
    if data is None and not typed:
        raise RequestError("nothing to load: give records, files, or rows by type as nodes={…} and edges={…}")
    if options.max_errors is not None and options.max_errors < 1:
        raise RequestError(f"max_errors is {options.max_errors}; it is at least 1")
    reason = _reason_for_spark(data, typed, options)
    match Engine(engine):
        case Engine.SPARK if is_location(data) or typed or _are_locations(data):
            return True
        case Engine.SPARK:
            raise RequestError("records in memory are loaded in this process; write them to a file for Spark")
        case Engine.LOCAL if reason is not None:
            raise RequestError(f"{reason} only on Spark; leave out engine='local', or give a JSON Lines file")
    return reason is not None


def _reason_for_spark(data: object, typed: Mapping[str, object], options: LoadOptions) -> str | None:
    """Why a load runs on Spark; None if it may run in this process."""
    if typed:
        return "rows by type are loaded"
    if _are_locations(data):
        return "several files are loaded"
    if not is_location(data):
        if options.skip_bad or options.bad_records is not None:
            raise RequestError("bad records are set apart on Spark only; write the records to a file for that")
        return None
    if options.skip_bad or options.bad_records is not None:
        return "bad records are set apart"
    text = os.fspath(data)  # type: ignore[call-overload]
    if text.startswith("s3://"):
        return "a bucket is loaded"
    path = Path(text.removeprefix("file://")).expanduser()
    try:
        if path.is_dir():
            return "a directory is loaded"
        if not path.exists():
            return "files of a glob are loaded" if WILDCARDS & set(text) else None
    except OSError as error:
        raise StorageUnavailable(shortened(text), error.strerror or str(error)) from error
    found, compression = format_of(text)
    if found is Format.PARQUET:
        return "Parquet is loaded"
    if compression is not None:
        return f"a {compression} file is loaded"
    limit = options.settings.small_load
    return None if path.stat().st_size <= limit else f"more than {limit:,} bytes are loaded"


def is_location(data: object) -> bool:
    """Is the data a path, or a text that names a file rather than being records?"""
    if isinstance(data, os.PathLike):
        return True
    return isinstance(data, str) and _names_a_file(data)


def _names_a_file(data: str) -> bool:
    text = data.removeprefix("\ufeff").lstrip()
    return bool(text) and "\n" not in data and not text.startswith(("{", "//"))


def _are_locations(data: object) -> bool:
    return isinstance(data, list | tuple) and bool(data) and all(isinstance(e, str | os.PathLike) for e in data)


def read_data(data: Data, limit: int) -> tuple[bytes, str]:
    """The bytes of a load in this process without a byte-order mark, and the name of their source in errors.

    ResourceLimit if there are more than ``limit``.
    """
    content, source = _content(data, limit)
    return content.removeprefix(BOM_UTF8), source


def _content(data: Data, limit: int) -> tuple[bytes, str]:
    if isinstance(data, bytes):
        return _limited(data, limit), "<data>"
    if isinstance(data, str) and not _names_a_file(data):
        return _limited(data.encode(errors="surrogatepass"), limit), "<data>"
    if isinstance(data, str | os.PathLike):
        return _read_file(Path(data), limit)
    if not isinstance(data, Iterable):
        raise InvalidArgument("data", f"it is records, a text, bytes or a path, not {described(data)}")
    lines: list[bytes] = []
    size = 0
    for record in data:
        line = json.dumps(record, ensure_ascii=False, default=_as_json).encode(errors="surrogatepass")
        size += len(line) + 1
        if size > limit:
            raise ResourceLimit("bytes loaded in this process", limit, size)
        lines.append(line)
    return b"\n".join(lines), "<records>"


def _read_file(path: Path, limit: int) -> tuple[bytes, str]:
    try:
        size = path.stat().st_size
        if size > limit:
            raise ResourceLimit(f"bytes of {path} loaded in this process", limit, size)
        return path.read_bytes(), str(path)
    except OSError as error:
        raise StorageUnavailable(str(path), error.strerror or str(error)) from error
    except ValueError as error:
        raise StorageUnavailable(shortened(str(path)), str(error)) from error


def _limited(content: bytes, limit: int) -> bytes:
    if len(content) > limit:
        raise ResourceLimit("bytes loaded in this process", limit, len(content))
    return content


def _as_json(value: Any) -> Any:
    """A Python value that JSON does not have, in the form in which a file of records has it."""
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return blob_text(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise BadValue(f"a record cannot hold a {type(value).__name__}: {value!r:.60}")
