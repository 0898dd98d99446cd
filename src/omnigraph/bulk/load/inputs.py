"""The data of a load: whether it is the place of a file or records in memory, and the bytes of those."""

from __future__ import annotations

import datetime as dt
import json
import os
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from decimal import Decimal
from mmap import mmap
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from omnigraph.arguments import described, shortened
from omnigraph.errors import BadValue, InvalidArgument, ResourceLimit, SourceUnusable
from omnigraph.formats.rows import blob_text

Data = str | bytes | mmap | os.PathLike[str] | Iterable[Mapping[str, Any]]
_NOTHING: Final = ("NAType", "NaTType")
"""The types of what pandas has where there is no value."""
WILDCARDS: Final = frozenset("*?[")


def is_location(data: object) -> bool:
    """Is the data a path, or a text that names a file rather than being records?"""
    if isinstance(data, os.PathLike):
        return True
    return isinstance(data, str) and _names_a_file(data)


def _names_a_file(data: str) -> bool:
    text = data.removeprefix("\ufeff").lstrip()
    return bool(text) and "\n" not in data and not text.startswith(("{", "//"))


def read_data(data: Data, limit: int) -> tuple[bytes, str]:
    """The bytes of a load in this process without a byte-order mark, and the name of their source in errors.

    ResourceLimit if there are more than ``limit``.
    """
    content, source = _content(data, limit)
    return content.removeprefix(BOM_UTF8), source


def _content(data: Data, limit: int) -> tuple[bytes, str]:
    if isinstance(data, bytes | mmap):
        return _limited(data[:], limit), "<data>"
    if isinstance(data, str) and not _names_a_file(data):
        return _limited(data.encode(errors="surrogatepass"), limit), "<data>"
    if isinstance(data, str | os.PathLike):
        return _read_file(Path(data), limit)
    if not isinstance(data, Iterable):
        raise InvalidArgument("data", f"it is records, a text, bytes or a path, not {described(data)}")
    lines: list[bytes] = []
    size = 0
    for number, record in enumerate(data, 1):
        line = numbered_line(number, record)
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
    except FileNotFoundError:
        raise SourceUnusable(str(path), "there is no such file or directory") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise SourceUnusable(shortened(str(path)), f"it cannot be read: {reason or error}") from error


def _limited(content: bytes, limit: int) -> bytes:
    if len(content) > limit:
        raise ResourceLimit("bytes loaded in this process", limit, len(content))
    return content


def numbered_line(number: int, record: Mapping[str, Any]) -> bytes:
    """A dictionary as one line of JSON; BadValue says which record holds what none can hold."""
    try:
        return json_line(record)
    except BadValue as error:
        raise BadValue(f"record {number}: {error.reason}") from error


def json_line(record: Mapping[str, Any]) -> bytes:
    """A dictionary as one line of JSON. BadValue if it holds what no record can hold."""
    try:
        return json.dumps(record, ensure_ascii=False, default=_as_json).encode(errors="surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise BadValue(f"a record cannot be written as JSON: {error}") from error


def _as_json(value: Any) -> Any:
    """A Python value that JSON does not have, in the form in which a file of records has it."""
    if type(value).__name__ in _NOTHING:
        return None
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    if isinstance(value, UUID):
        return str(value)
    if getattr(getattr(value, "dtype", None), "kind", None) == "M" and value.dtype != "datetime64[D]":
        return value.astype("datetime64[us]").tolist()  # of nanoseconds NumPy would make a number
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
