"""Bytes of files below an allowed directory, never through a symbolic link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from typing import Final

from omnigraph.errors import BlobSourceUnavailable

_PIECE: Final = 1 << 20
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def file_pieces(base: str, path: str) -> Generator[bytes | int]:
    """The size of a file below a directory, then its bytes, piece by piece.

    The directory itself may be reached through links; below it each step is opened by itself and none may be one.
    """
    uri = f"file://{path}"
    steps = path.removeprefix(base).split("/")
    try:
        opened = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise BlobSourceUnavailable(uri, f"the allowed directory cannot be opened: {error.strerror}") from None
    try:
        for step, flags in [*((each, _DIRECTORY) for each in steps[:-1]), (steps[-1], _FILE)]:
            below = os.open(step, flags, dir_fd=opened)
            os.close(opened)
            opened = below
        about = os.fstat(opened)
        if not stat.S_ISREG(about.st_mode):
            raise BlobSourceUnavailable(uri, "it is not a file")
        yield about.st_size
        while piece := os.read(opened, _PIECE):
            yield piece
    except OSError as error:
        reason = "a symbolic link leads to it" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise BlobSourceUnavailable(uri, reason) from None
    finally:
        os.close(opened)
