"""Computations that fail in a worker: the driver reads the error from the text that Spark gives it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from omnigraph.errors import ComputationFailed, DivisionByZero, NumberOverflow, SumOverflow

_MARK: Final = "omnigraph computation failed: "
_MARKED: Final = re.compile(re.escape(_MARK) + r"(\[.*?\])\s*(?:SQLSTATE: \w+)?\s*$", re.MULTILINE)
_FAILURES: Final = {one.__name__: one for one in (ComputationFailed, DivisionByZero, NumberOverflow, SumOverflow)}


@contextmanager
def failing_in_words() -> Iterator[None]:
    """Make an error of a computation one that the driver can read from the text that Spark gives it."""
    try:
        yield
    except ComputationFailed as error:
        raise RuntimeError(in_words(error)) from None


def in_words(error: ComputationFailed | SumOverflow) -> str:
    """An error as a text that the driver can read: first for people, then for the driver."""
    return f"{error}; {_MARK}{json.dumps([type(error).__name__, *error.args])}"


def computation_failure(error: BaseException) -> ComputationFailed | SumOverflow | None:
    """The error of a computation in a worker, if a failed Spark job has one."""
    found = _MARKED.search(str(error))
    if found is None:
        return None
    name, *args = json.loads(found[1])
    return _FAILURES[name](*args)
