"""Which formats records come in, and how a file's name tells its format."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final


class Format(StrEnum):
    """How records are written."""

    JSONL = "jsonl"
    PARQUET = "parquet"


FORMATS: Final = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSONL,
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
}
_COMPRESSIONS: Final = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd"}


def format_of(name: str) -> tuple[Format | None, str | None]:
    """The format and the compression that a file's name tells."""
    *_, before, suffix = ("", "", *PurePosixPath(name.lower()).suffixes)
    compression = _COMPRESSIONS.get(suffix)
    return FORMATS.get(before if compression else suffix), compression
