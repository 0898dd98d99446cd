"""What disks, stores and the libraries below us raise, turned into StorageUnavailable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import BaseError

from omnigraph.errors import StorageUnavailable


def unavailable(where: str, error: BaseException) -> StorageUnavailable:
    """The error to raise: the first line of what was said, without places in other people's sources."""
    return StorageUnavailable(where, str(error).strip().split("\n")[0].split(", /")[0])


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise StorageUnavailable for whatever fails in this block."""
    try:
        yield
    except (BaseError, OSError, RuntimeError) as error:
        raise unavailable(where, error) from error
