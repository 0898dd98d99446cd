"""Fixtures of the tests of remote graphs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.running import make_graph


@pytest.fixture
def graph_place(tmp_path: Path) -> Path:
    """The place of a small graph."""
    make_graph(tmp_path / "g.omni")
    return tmp_path / "g.omni"
