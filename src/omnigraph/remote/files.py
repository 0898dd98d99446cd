"""Answers that go to a file, whole or not at all, or to a stream."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import urllib3
from ulid import ULID

from omnigraph.errors import ExportRefused
from omnigraph.remote.transport import pieces


def written(
    answer: urllib3.BaseHTTPResponse, target: str | os.PathLike[str] | BinaryIO, *, force: bool
) -> tuple[str | None, int]:
    """Write the body of an answer; the path of its file, None for a stream, and how many bytes it has."""
    if not isinstance(target, str | os.PathLike):
        return None, _copied(answer, target)
    path = Path(target).expanduser()
    if path.exists() and not force:
        raise ExportRefused(f"to {path}", "there is a file already; choose another place, or force it")
    draft = path.with_name(f".{path.name}.{ULID()}")
    try:
        with draft.open("xb") as file:
            size = _copied(answer, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise ExportRefused(f"to {path}", error.strerror or str(error)) from None
    finally:
        draft.unlink(missing_ok=True)
    return str(path), size


def _copied(answer: urllib3.BaseHTTPResponse, target: BinaryIO) -> int:
    size = 0
    for piece in pieces(answer):
        target.write(piece)
        size += len(piece)
    return size
