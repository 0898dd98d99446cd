"""Errors in bulk are summarised by rule and by missing id, the same in memory, by staged files and by joins."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.bulk.loading import load_by_tasks, new_graph
from tests.cli.command import omnigraph as run

from omnigraph.errors import ConstraintViolation, ErrorGroup, RecordError
from omnigraph.graph import Graph
from omnigraph.settings import BulkSettings

SCHEMA = """
node Airport { code: String @key  name: String? @unique  height: I32?  @range(height, -500..9000) }
edge Flies: Airport -> Airport
"""
ENGINES = {"in memory": BulkSettings(), "staged": BulkSettings(small_load=0, slice_bytes=200, smallest_slice=1)}


@pytest.fixture(params=["in memory", "staged", "tasks"])
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def graph(tmp_path: Path, engine: str) -> Graph:
    return new_graph(tmp_path / "g", SCHEMA, settings=ENGINES.get(engine, ENGINES["staged"]))


def load(engine: str, graph: Graph, nodes: Path, edges: Path | None = None) -> None:
    given: dict[str, Any] = {"Flies": edges} if edges else {}
    if engine == "tasks":
        load_by_tasks(graph, nodes={"Airport": nodes}, edges=given, mode="append")
    else:
        graph.load(nodes={"Airport": nodes}, edges=given, mode="append", engine="local")


def airports(home: Path, rows: str = "AMS,\nJFK,\n") -> Path:
    path = home / "airports.csv"
    path.write_text(f"code,height\n{rows}")
    return path


def flights(home: Path) -> Path:
    """70 flights to airports that do not exist: 40 to X, 25 to Y, and 5 to others; 30 are good."""
    ends = ["AMS"] * 30 + ["Y"] * 25 + ["X"] * 40 + [f"z{number}" for number in range(5)]
    path = home / "flights.csv"
    path.write_text("from,to\n" + "".join(f"JFK,{end}\n" for end in ends))
    return path


def place(group: ErrorGroup) -> tuple[str, int, int | None]:
    return group.reason, group.count, None if group.first is None else group.first.line


def test_missing_ends_are_counted_by_id(engine: str, graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(ConstraintViolation) as raised:
        load(engine, graph, airports(tmp_path), flights(tmp_path))
    error = raised.value
    assert (error.total, len(error.violations)) == (70, 20)
    (group,) = error.groups
    assert place(group) == ("dst of edge Flies not found in Airport", 70, 32)
    assert [place(one) for one in group.ids] == [
        ("X", 40, 57),
        ("Y", 25, 32),
        *[(f"z{n}", 1, 97 + n) for n in range(3)],
    ]
    assert pickle.loads(pickle.dumps(error)).groups == error.groups


def test_each_rule_is_counted(engine: str, graph: Graph, tmp_path: Path) -> None:
    high = "".join(f"H{number},9999\n" for number in range(30))
    with pytest.raises(ConstraintViolation) as raised:
        load(engine, graph, airports(tmp_path, f"AMS,\nJFK,\n{high}"), flights(tmp_path))
    assert [place(group) for group in raised.value.groups] == [
        ("dst of edge Flies not found in Airport", 70, 32),
        ("@range violation on Airport.height: … is not in -500..9000", 30, 4),
    ]


def test_keys_that_are_there_twice(engine: str, graph: Graph, tmp_path: Path) -> None:
    twice = "".join(f"K{number},\n" for number in range(25)) * 2
    with pytest.raises(ConstraintViolation) as raised:
        load(engine, graph, airports(tmp_path, twice))
    assert [place(group) for group in raised.value.groups] == [("@unique violation on Airport.code", 25, 27)]


def test_unreadable_records_are_counted_by_reason(engine: str, graph: Graph, tmp_path: Path) -> None:
    rows = "".join(f"A{number},low\n" for number in range(25)) + "B\nC\n"
    with pytest.raises(RecordError) as raised:
        load(engine, graph, airports(tmp_path, rows))
    assert [place(group) for group in raised.value.groups] == [
        ("Airport.height is I32?: …", 25, 2),
        ("the row has 1 cell, and the header 2", 2, 27),
    ]


def test_the_text_ends_with_the_summary_and_the_hint(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "g", SCHEMA)
    path = flights(tmp_path)
    with pytest.raises(ConstraintViolation) as raised:
        graph.load(nodes={"Airport": airports(tmp_path)}, edges={"Flies": path}, mode="append")
    assert str(raised.value).splitlines()[20:] == [
        "… and 50 more",
        "70 in all:",
        f"70 × dst of edge Flies not found in Airport, first at {path}:32",
        f"  40 × X, first at {path}:57",
        f"  25 × Y, first at {path}:32",
        *[f"  1 × z{number}, first at {path}:{97 + number}" for number in range(3)],
        "hint: --skip-bad (skip_bad=True) loads the rest, "
        "--bad-records PATH (bad_records=PATH) writes all of them to a file",
    ]
    with pytest.raises(ConstraintViolation) as raised:
        graph.load(edges={"Flies": path}, mode="append", bad_records=tmp_path / "bad.jsonl")
    assert (
        raised.value.hint
        == f"all of them are in {tmp_path / 'bad.jsonl'}; --skip-bad (skip_bad=True) loads the rest"
    )


def test_the_command_line_prints_both_as_text_and_as_json(tmp_path: Path) -> None:
    place = new_graph(tmp_path / "g", SCHEMA).address
    words = ["load", place, "--node", f"Airport={airports(tmp_path)}", "--edge", f"Flies={flights(tmp_path)}"]
    text = run(*words, "--mode", "append")
    assert text.code == 1
    assert "  40 × X, first at" in text.err
    assert "hint: --skip-bad" in text.err
    told = run(*words, "--mode", "append", "--json").json
    (group,) = told["groups"]
    assert (told["total"], group["rule"], group["count"], group["line"]) == (70, "endpoint", 70, 32)
    assert [(one["id"], one["count"], one["line"]) for one in group["ids"]][:2] == [("X", 40, 57), ("Y", 25, 32)]
    assert told["hint"].startswith("--skip-bad")
