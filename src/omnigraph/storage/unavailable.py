"""What disks, stores and the libraries below us raise, turned into StorageUnavailable."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pyarrow as pa

from omnigraph.errors import StorageUnavailable

_FAILURES = (OSError, RuntimeError, ValueError, pa.ArrowException)
"""What disks and the libraries raise when a store fails, and when what they read from it makes no sense."""


def unavailable(where: str, error: BaseException) -> StorageUnavailable:
    """The error to raise: the first line of what was said, without places in other people's sources."""
    return StorageUnavailable(where, str(error).strip().split("\n")[0].split(", /")[0])


class _Translated:
    """A block whose failures are raised as StorageUnavailable. Queries enter several: a generator takes longer."""

    __slots__ = ("_where",)

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None and (isinstance(error, _FAILURES) or is_panic(error) or _is_of_a_bucket(error)):
            raise unavailable(self._where, error) from error


def translated(where: str) -> AbstractContextManager[None]:
    """Raise StorageUnavailable for whatever fails in this block."""
    return _Translated(where)


def _is_of_a_bucket(error: BaseException) -> bool:
    """Was an error raised by the library that talks to buckets? It is imported to find out; disks need none."""
    from obstore.exceptions import BaseError

    return isinstance(error, BaseError)


def is_panic(error: BaseException) -> bool:
    """Did Rust code give up? Its panics are no Exceptions, so that they are not caught by accident."""
    return type(error).__name__ == "PanicException"
