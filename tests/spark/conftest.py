"""What tests on Spark have in common."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _active_session(request: pytest.FixtureRequest) -> None:
    """Make the shared session active again: that is where Spark looks for sinks, and other tests make sessions."""
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").createDataFrame([(1,)], "n int")
