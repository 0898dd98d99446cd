"""A load by tasks is the same as one in the memory of this process: rows, counts, errors, lines."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.bulk.loading import (
    Outcome,
    edge,
    left_behind,
    load_by_tasks,
    new_graph,
    node,
    outcome,
    rows_of,
    small_slices,
    text_of,
    write,
)
from tests.bulk.scenarios import LOADED, REFUSED, SCHEMA, WORLD, Scenario

from omnigraph.errors import ConstraintViolation
from omnigraph.settings import BulkSettings

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet
    from pyspark.sql import SparkSession


CUTS = {
    "slices": small_slices(90),
    "files": BulkSettings(rows_per_file=2),
    "packed": BulkSettings(slice_bytes=120),
}
"""A load is cut into many slices, or staged as many files, or comes out of a compressed file bit by bit."""


def tried(
    place: Path,
    scenario: Scenario,
    *,
    engine: str,
    packed: bool = False,
    settings: BulkSettings | None = None,
    **options: object,
) -> Outcome:
    """What a scenario comes to, and that nothing else is left of it."""
    graph = new_graph(place / "g", SCHEMA, scenario.base, settings)
    content = text_of(scenario.load).encode()
    path = write(place / f"load.jsonl{'.gz' if packed else ''}", gzip.compress(content) if packed else content)
    found = outcome(
        graph, path, scenario.mode, shown=str(place), engine=engine, actor="me", message="said", **options
    )
    assert left_behind(graph) == []
    return found


def agree(scenario: Scenario, place: Path, ways: tuple[str, ...]) -> Outcome:
    """What a scenario comes to in this process and by tasks, in whichever of these ways their input is cut."""
    here = tried(place / "here", scenario, engine="local")
    for way in ways:
        settings = CUTS[way]
        by_tasks = tried(place / way, scenario, engine="tasks", packed=way == "packed", settings=settings)
        assert by_tasks == here, way
    return here


def cut(scenarios: Iterable[Scenario]) -> list[ParameterSet]:
    """Each scenario with its input cut in one way, and, which takes longer, in the others."""
    ways = tuple(CUTS)
    found = []
    for number, scenario in enumerate(scenarios):
        one = ways[number % len(ways)]
        others = tuple(way for way in ways if way != one)
        found.append(pytest.param(scenario, (one,), id=f"{scenario.name} in {one}"))
        found.append(pytest.param(scenario, others, id=scenario.name, marks=pytest.mark.long))
    return found


@pytest.mark.parametrize(("scenario", "ways"), cut(LOADED))
def test_loads(scenario: Scenario, ways: tuple[str, ...], tmp_path: Path) -> None:
    assert "rows" in agree(scenario, tmp_path, ways)


@pytest.mark.parametrize(("scenario", "ways"), cut(REFUSED))
def test_refusals(scenario: Scenario, ways: tuple[str, ...], tmp_path: Path) -> None:
    assert "error" in agree(scenario, tmp_path, ways)


def test_the_last_record_wins_across_files(tmp_path: Path) -> None:
    """Files are loaded in the order in which they are named, those of a directory in the order of their names."""
    first = write(tmp_path / "in/1.jsonl", [node("Person", name="ada", age=age) for age in (1, 2, 3)])
    second = write(tmp_path / "in/2.jsonl", [node("Person", name="ada", age=age) for age in (4, 5)])
    for places, age in ((tmp_path / "in", 5), ([second, first], 3), ([first, second], 5)):
        graph = new_graph(tmp_path / f"g{age}{isinstance(places, list)}", SCHEMA, WORLD, small_slices(90))
        done = load_by_tasks(graph, places, mode="merge")
        assert dict(done.nodes) == {"Person": 5}
        assert [row["age"] for row in rows_of(graph)["node:Person"] if row["id"] == "ada"] == [age]


def test_what_is_wrong_across_files_is_told_by_file_and_line(tmp_path: Path) -> None:
    first = write(tmp_path / "1.jsonl", ["", node("Person", name="x"), node("Person", name="y", mail="m")])
    second = write(tmp_path / "2.jsonl", [node("Person", name="z", mail="m"), edge("Knows", "x", "nobody")])
    graph = new_graph(tmp_path / "g", SCHEMA, WORLD)
    with pytest.raises(ConstraintViolation) as raised:
        load_by_tasks(graph, [first, second], mode="append")
    assert [(v.source, v.line, v.rule) for v in raised.value.violations] == [
        (str(second), 1, "unique"),
        (str(second), 2, "endpoint"),
    ]
    with pytest.raises(ConstraintViolation) as raised:
        load_by_tasks(
            graph, [first, write(tmp_path / "3.jsonl", ["// again", node("Person", name="x")])], mode="append"
        )
    assert [(v.source, v.line) for v in raised.value.violations] == [(str(tmp_path / "3.jsonl"), 2)]


SHUFFLED = (
    "everything that is wrong is said at once",
    "overwrite: nodes that edges still need",
    "ids come twice",
    "ids exist already",
)
ON_SPARK = [s for s in (*LOADED, *REFUSED) if s.name in SHUFFLED]


@pytest.mark.parametrize("scenario", ON_SPARK, ids=lambda s: s.name)
def test_keys_that_need_a_shuffle(scenario: Scenario, tmp_path: Path, spark: SparkSession) -> None:
    """On Spark itself, with every check run as if its keys were too many for one task."""
    here = tried(tmp_path / "here", scenario, engine="local")
    settings = small_slices(400, key_budget=0)
    assert tried(tmp_path / "there", scenario, engine="spark", settings=settings, spark=spark) == here
