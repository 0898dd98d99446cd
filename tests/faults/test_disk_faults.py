"""Whatever the disk does to an operation: the graph opens, what was acknowledged is there, and writing goes on."""

from __future__ import annotations

import pytest
from tests.faults.disk import heard_from
from tests.faults.operations import OPERATIONS
from tests.faults.trials import tell

SOME = 12
"""Of the several hundred faults of an operation this many, evenly spread, are tried in every test run."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_some_faults_of(name: str) -> None:
    found = heard_from(tell, name, SOME)
    assert not found, "\n".join(found)


@pytest.mark.long
@pytest.mark.parametrize("name", OPERATIONS)
def test_all_faults_of(name: str) -> None:
    found = heard_from(tell, name, None)
    assert not found, "\n".join(found)
