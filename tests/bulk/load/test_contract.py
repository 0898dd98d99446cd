"""A load on Spark is the same as one in this process: rows, counts, errors, lines."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.bulk.loading import (
    Outcome,
    cut_small,
    edge,
    inline,
    left_behind,
    new_graph,
    node,
    outcome,
    rows_of,
    text_of,
    write,
)
from tests.bulk.scenarios import LOADED, REFUSED, SCHEMA, WORLD, Scenario

from omnigraph.bulk.load import checks, staging
from omnigraph.bulk.load import job as load_module
from omnigraph.errors import ConstraintViolation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["inline"]


CUTS = ("slices", "files", "packed")
"""A load is cut into many slices, or staged as many files, or comes out of a compressed file bit by bit."""


def cut_in(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    if way == "slices":
        cut_small(monkeypatch, 90)
    elif way == "files":
        monkeypatch.setattr(load_module, "rows_per_file", lambda _: 2)
    else:
        monkeypatch.setattr(staging, "SLICE_BYTES", 120)


def tried(place: Path, scenario: Scenario, *, packed: bool = False, **how: object) -> Outcome:
    """What a scenario comes to, and that nothing else is left of it."""
    graph = new_graph(place / "g", SCHEMA, scenario.base)
    content = text_of(scenario.load).encode()
    path = write(place / f"load.jsonl{'.gz' if packed else ''}", gzip.compress(content) if packed else content)
    found = outcome(graph, path, scenario.mode, shown=str(place), actor="me", message="said", **how)
    assert left_behind(graph) == []
    return found


def agree(scenario: Scenario, place: Path) -> Outcome:
    """What a scenario comes to on either engine, however the input of the pipeline is cut."""
    here = tried(place / "here", scenario, engine="local")
    for way in CUTS:
        with pytest.MonkeyPatch.context() as patched:
            cut_in(patched, way)
            assert tried(place / way, scenario, packed=way == "packed", engine="spark") == here, way
    return here


@pytest.mark.parametrize("scenario", LOADED, ids=lambda s: s.name)
@pytest.mark.usefixtures("inline")
def test_loads(scenario: Scenario, tmp_path: Path) -> None:
    assert "rows" in agree(scenario, tmp_path)


@pytest.mark.parametrize("scenario", REFUSED, ids=lambda s: s.name)
@pytest.mark.usefixtures("inline")
def test_refusals(scenario: Scenario, tmp_path: Path) -> None:
    assert "error" in agree(scenario, tmp_path)


@pytest.mark.usefixtures("inline")
def test_the_last_record_wins_across_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are loaded in the order in which they are named, those of a directory in the order of their names."""
    cut_small(monkeypatch, 90)
    first = write(tmp_path / "in/1.jsonl", [node("Person", name="ada", age=age) for age in (1, 2, 3)])
    second = write(tmp_path / "in/2.jsonl", [node("Person", name="ada", age=age) for age in (4, 5)])
    for places, age in ((tmp_path / "in", 5), ([second, first], 3), ([first, second], 5)):
        graph = new_graph(tmp_path / f"g{age}{isinstance(places, list)}", SCHEMA, WORLD)
        done = graph.load(places, mode="merge", engine="spark")
        assert dict(done.nodes) == {"Person": 5}
        assert [row["age"] for row in rows_of(graph)["node:Person"] if row["id"] == "ada"] == [age]


@pytest.mark.usefixtures("inline")
def test_what_is_wrong_across_files_is_told_by_file_and_line(tmp_path: Path) -> None:
    first = write(tmp_path / "1.jsonl", ["", node("Person", name="x"), node("Person", name="y", mail="m")])
    second = write(tmp_path / "2.jsonl", [node("Person", name="z", mail="m"), edge("Knows", "x", "nobody")])
    graph = new_graph(tmp_path / "g", SCHEMA, WORLD)
    with pytest.raises(ConstraintViolation) as raised:
        graph.load([first, second], mode="append", engine="spark")
    assert [(v.source, v.line, v.rule) for v in raised.value.violations] == [
        (str(second), 1, "unique"),
        (str(second), 2, "endpoint"),
    ]
    with pytest.raises(ConstraintViolation) as raised:
        graph.load([first, write(tmp_path / "3.jsonl", ["// again", node("Person", name="x")])], mode="append")
    assert [(v.source, v.line) for v in raised.value.violations] == [(str(tmp_path / "3.jsonl"), 2)]


SHUFFLED = (
    "everything that is wrong is said at once",
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
