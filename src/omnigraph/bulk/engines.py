"""Which engine a load takes: this process for small ones, Spark for everything else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from omnigraph.arguments import shortened
from omnigraph.bulk.load.options import LoadOptions
from omnigraph.bulk.runner import Engine
from omnigraph.errors import RequestError, StorageUnavailable
from omnigraph.formats.format import Format, format_of

SMALL_LOAD: Final = 32 << 20
"""Up to this many bytes a load runs in this process."""

WILD: Final = frozenset("*?[")


def takes_spark(data: object, typed: Mapping[str, Any], engine: str, options: LoadOptions) -> bool:
    """Does a load run on Spark? RequestError if it was asked to run where it cannot."""
    if data is None and not typed:
        raise RequestError("nothing to load: give records, files, or rows by type as nodes={…} and edges={…}")
    if options.max_errors is not None and options.max_errors < 1:
        raise RequestError(f"max_errors is {options.max_errors}; it is at least 1")
    reason = _reason_for_spark(data, typed, options)
    match Engine(engine):
        case Engine.SPARK if is_place(data) or typed or _are_places(data):
            return True
        case Engine.SPARK:
            raise RequestError("records in memory are loaded in this process; write them to a file for Spark")
        case Engine.LOCAL if reason is not None:
            raise RequestError(f"{reason} only on Spark; leave out engine='local', or give a JSON Lines file")
    return reason is not None


def _reason_for_spark(data: object, typed: Mapping[str, Any], options: LoadOptions) -> str | None:
    """Why a load runs on Spark; None if it may run in this process."""
    if typed:
        return "rows by type are loaded"
    if _are_places(data):
        return "several files are loaded"
    if not is_place(data):
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
            return "files of a glob are loaded" if WILD & set(text) else None
    except OSError as error:
        raise StorageUnavailable(shortened(text), error.strerror or str(error)) from error
    found, compression = format_of(text)
    if found is Format.PARQUET:
        return "Parquet is loaded"
    if compression is not None:
        return f"a {compression} file is loaded"
    return None if path.stat().st_size <= SMALL_LOAD else f"more than {SMALL_LOAD:,} bytes are loaded"


def is_place(data: object) -> bool:
    """Is a path, or a text that names one rather than being records itself?"""
    if isinstance(data, os.PathLike):
        return True
    return isinstance(data, str) and names_a_file(data)


def names_a_file(data: str) -> bool:
    """Is a text the name of a file, rather than records?"""
    text = data.removeprefix("\ufeff").lstrip()
    return bool(text) and "\n" not in data and not text.startswith(("{", "//"))


def _are_places(data: object) -> bool:
    return isinstance(data, list | tuple) and bool(data) and all(isinstance(e, str | os.PathLike) for e in data)
