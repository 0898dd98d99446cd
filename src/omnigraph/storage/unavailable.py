"""What disks, stores and the libraries below us raise, turned into StorageUnavailable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from obstore.exceptions import BaseError

from omnigraph.errors import StorageUnavailable

_FAILURES = (BaseError, OSError, RuntimeError, ValueError, pa.ArrowException)
"""What the libraries raise when a store fails, and when what they read from it makes no sense."""


def unavailable(where: str, error: BaseException) -> StorageUnavailable:
    """The error to raise: the first line of what was said, without places in other people's sources."""
    return StorageUnavailable(where, str(error).strip().split("\n")[0].split(", /")[0])


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise StorageUnavailable for whatever fails in this block."""
    try:
        yield
    except _FAILURES as error:
        raise unavailable(where, error) from error
    except BaseException as error:
        if is_panic(error):
            raise unavailable(where, error) from error
        raise


def is_panic(error: BaseException) -> bool:
    """Did Rust code give up? Its panics are no Exceptions, so that they are not caught by accident."""
    return type(error).__name__ == "PanicException"
