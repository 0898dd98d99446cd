"""Whatever the disk does to an operation: the graph opens, what was acknowledged is there, and writing goes on."""

from __future__ import annotations

import os

import pytest
from tests.faults.disk import heard_from
from tests.faults.operations import OPERATIONS
from tests.faults.trials import tell

SOME = 3
"""This many of the several hundred faults of an operation, evenly spread, are tried in every test run, and only of
some operations."""

MORE = None if os.environ.get("OMNIGRAPH_ALL_FAULTS") else 16
"""This many of each operation are tried in `make long`, and all of them if that is asked for."""

QUICK = (
    "open",
    "merge on main",
    "branch delete",
    "merge of a branch",
    "schema change on main",
    "optimize",
    "cleanup",
    "ingest into a missing branch",
)


@pytest.mark.parametrize("name", QUICK)
def test_some_faults_of(name: str) -> None:
    found = heard_from(tell, name, SOME)
    assert not found, "\n".join(found)


@pytest.mark.long
@pytest.mark.parametrize("name", OPERATIONS)
def test_more_faults_of(name: str) -> None:
    found = heard_from(tell, name, MORE)
    assert not found, "\n".join(found)
