"""Answers that go to a file, whole or not at all, or to a stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import urllib3
from ulid import ULID

from omnigraph.bulk.export.targets import parse_target
from omnigraph.errors import ExportRefused
from omnigraph.formats.format import Format
from omnigraph.remote.transport import pieces
from omnigraph.storage.files.durability import sync


def written(
    answer: urllib3.BaseHTTPResponse, target: str | os.PathLike[str] | BinaryIO, *, force: bool
) -> tuple[str | None, int]:
    """Write the body of an answer; the path of its file, None for a stream, and how many bytes it has."""
    size = 0
    with destination(target, force=force) as (path, stream):
        for piece in pieces(answer):
            stream.write(piece)
            size += len(piece)
    return path, size


@contextmanager
def destination(
    target: str | os.PathLike[str] | BinaryIO, *, force: bool
) -> Iterator[tuple[str | None, BinaryIO]]:
    """Where bytes go: a stream, or a file, by its path. A file gets its name when all of it is safely on the disk,
    and is not there if anything goes wrong before."""
    if not isinstance(target, str | os.PathLike):
        yield None, target
        return
    place = parse_target(target, Format.JSONL)
    if place.is_remote or place.is_directory:
        raise ExportRefused(f"to {place}", "what a server sends is written to one local file")
    place.prepare(force=force)
    path = Path(place.root)
    draft = path.with_name(f".{path.name}.{ULID()}")
    try:
        with draft.open("xb") as file:
            yield str(path), file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync(path.parent)
    except OSError as error:
        raise ExportRefused(f"to {path}", error.strerror or str(error)) from None
    finally:
        draft.unlink(missing_ok=True)
