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


ON_SPARK = (
    "merge: rows are replaced as a whole",
    "merge: the last record wins",
    "overwrite: nodes go with their edges",
    "ids that are given, generated, and keys",
    "everything that is wrong is said at once",
    "merge: the last record counts",
    "merge: too few edges are left",
    "overwrite: nodes that edges still need",
    "overwrite: edges of nodes that are gone",
    "ids come twice",
    "ids exist already",
)


@pytest.mark.parametrize("scenario", [s for s in (*LOADED, *REFUSED) if s.name in ON_SPARK], ids=lambda s: s.name)
def test_on_spark_keys_in_memory_and_shuffled(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    cut_small(monkeypatch, 400)
    here = tried(tmp_path / "here", scenario, engine="local")
    assert tried(tmp_path / "memory", scenario, engine="spark", spark=spark) == here
    monkeypatch.setattr(checks, "KEY_BUDGET", 0)
    assert tried(tmp_path / "shuffled", scenario, engine="spark", spark=spark) == here
