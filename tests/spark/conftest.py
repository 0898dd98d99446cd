"""What tests on Spark have in common."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _active_session(request: pytest.FixtureRequest) -> None:
    """Make the shared session the active one again: a sink is looked up there, and other tests make sessions too."""
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").createDataFrame([(1,)], "n int")
