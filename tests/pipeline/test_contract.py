"""A load on Spark is the same as one in this process: rows, counts, errors, lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipeline.loading import Outcome, cut_small, inline, left_behind, new_graph, outcome, write
from tests.pipeline.scenarios import LOADED, REFUSED, SCHEMA, Scenario

from omnigraph.pipeline import checks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["inline"]


def tried(place: Path, scenario: Scenario, **how: object) -> Outcome:
    """What a scenario comes to, and that nothing else is left of it."""
    graph = new_graph(place / "g", SCHEMA, scenario.base)
    path = write(place / "load.jsonl", scenario.load)
    found = outcome(graph, path, scenario.mode, shown=str(place), actor="me", message="said", **how)
    assert left_behind(graph) == []
    return found


@pytest.mark.parametrize("scenario", LOADED, ids=lambda s: s.name)
@pytest.mark.usefixtures("inline")
def test_loads(scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch, 90)
    here = tried(tmp_path / "here", scenario, engine="local")
    assert "rows" in here
    assert tried(tmp_path / "there", scenario, engine="spark") == here


@pytest.mark.parametrize("scenario", REFUSED, ids=lambda s: s.name)
@pytest.mark.usefixtures("inline")
def test_refusals(scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch, 90)
    here = tried(tmp_path / "here", scenario, engine="local")
    assert "error" in here
    assert tried(tmp_path / "there", scenario, engine="spark") == here


SHUFFLED = (
    "merge: the last record wins",
    "everything that is wrong is said at once",
    "merge: the last record counts",
    "overwrite: nodes that edges still need",
    "ids come twice",
    "ids exist already",
)
ON_SPARK = [s for s in (*LOADED, *REFUSED) if s.name in SHUFFLED]


@pytest.mark.parametrize("scenario", ON_SPARK, ids=lambda s: s.name)
def test_keys_that_need_a_shuffle(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    """On Spark itself, with every question asked as if its keys were too many for one task."""
    cut_small(monkeypatch, 400)
    here = tried(tmp_path / "here", scenario, engine="local")
    monkeypatch.setattr(checks, "KEY_BUDGET", 0)
    assert tried(tmp_path / "there", scenario, engine="spark", spark=spark) == here
