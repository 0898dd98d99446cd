"""One server for the tests that leave each other alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.running import Served, make_graph, serving


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of a small graph. Its main is only read; tests that write make a branch of their own."""
    place = tmp_path_factory.mktemp("served") / "g.omni"
    make_graph(place)
    with serving(place) as server:
        yield server


@pytest.fixture
def graph_place(tmp_path: Path) -> Path:
    """The place of a small graph."""
    make_graph(tmp_path / "g.omni")
    return tmp_path / "g.omni"
