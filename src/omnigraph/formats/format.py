"""Which formats records come in, and how a file's name tells its format."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final

from omnigraph.errors import RequestError


class Format(StrEnum):
    """How records are written."""

    JSONL = "jsonl"
    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    ARROW = "arrow"

    @property
    def is_table(self) -> bool:
        """Do files of this format hold rows of one type, which the file itself may not name?"""
        return self is not Format.JSONL

    @property
    def is_delimited(self) -> bool:
        """Is it text with a delimiter between its cells?"""
        return self in (Format.CSV, Format.TSV)


FORMATS: Final = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSONL,
    ".csv": Format.CSV,
    ".tsv": Format.TSV,
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".arrow": Format.ARROW,
    ".arrows": Format.ARROW,
    ".feather": Format.ARROW,
    ".ipc": Format.ARROW,
}
EXPORTED: Final = (Format.JSONL, Format.PARQUET)
"""The formats that an export writes."""
_COMPRESSIONS: Final = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd"}


def format_of(name: str) -> tuple[Format | None, str | None]:
    """The format and the compression that a file's name tells."""
    *_, before, suffix = ("", "", *PurePosixPath(name.lower()).suffixes)
    compression = _COMPRESSIONS.get(suffix)
    return FORMATS.get(before if compression else suffix), compression


def format_named(value: str) -> Format:
    """The format that a caller named."""
    try:
        return Format(value)
    except ValueError:
        raise RequestError(f"'{value}' is no format of records; there are {', '.join(Format)}") from None


def export_format(value: str) -> Format:
    """The format of an export that a caller named."""
    if value not in EXPORTED:
        raise RequestError(f"'{value}' is no format of an export; there are {', '.join(EXPORTED)}")
    return Format(value)
