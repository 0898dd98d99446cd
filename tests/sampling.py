"""Which cases of a large family run in `make test`; all of them run in `make test` or in `make long`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


def sampled(cases: Iterable[Any], kept: int) -> list[ParameterSet]:
    """The cases as parameters of a test; all but so many of them, evenly spread, are long."""
    everything = [case if isinstance(case, tuple) else (case,) for case in cases]
    quick = {number * len(everything) // kept for number in range(kept)}
    return [
        pytest.param(*case, marks=[] if number in quick else pytest.mark.long)
        for number, case in enumerate(everything)
    ]


def quick_and_long(quick: Any, thorough: Any) -> list[ParameterSet]:
    """Two sizes of one test, of which the larger is long."""
    some, many = (one if isinstance(one, tuple) else (one,) for one in (quick, thorough))
    return [pytest.param(*some, id="some"), pytest.param(*many, id="many", marks=pytest.mark.long)]


def examples(some: int, *, of: int) -> int:
    """How many examples of a property are tried: some, or all where `OMNIGRAPH_ALL_EXAMPLES` is set."""
    return of if os.environ.get("OMNIGRAPH_ALL_EXAMPLES") else some
