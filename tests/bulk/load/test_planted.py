"""Twenty thousand records with a few planted errors: all are found and named, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.bulk import planted
from tests.bulk.loading import edge, left_behind, load_by_tasks, new_graph, node, rows_of, small_slices
from tests.bulk.planted import BASE, FILES, GZIP, PLAIN, SCHEMA, UNENDED, Field, fresh_field, person

from omnigraph.errors import ConstraintViolation, KeyConflict, RecordError
from omnigraph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLICE = 30_000
PLACES = [(file, number) for file in FILES for number in (100, 700, 1500, 1600, 4000)]
"""Lines among people and among edges of each file."""

_clean = fresh_field()


@pytest.fixture
def field() -> Field:
    return Field(dict(_clean.lines))


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph that cuts the files of a load into many slices."""
    return new_graph(tmp_path / "g", SCHEMA, BASE, small_slices(SLICE))


def refused(graph: Graph, folder: Path, **how: Any) -> Any:
    """What an append objects to, with all that it lists."""
    with pytest.raises((ConstraintViolation, RecordError, KeyConflict)) as raised:
        load_by_tasks(graph, folder, mode="append", **({"max_errors": 1000} | how))
    assert left_behind(graph) == []
    return raised.value


def named(found: Any) -> set[tuple[str | None, int | None]]:
    """Files and lines that an error lists."""
    listed = found.problems if isinstance(found, RecordError) else found.violations
    assert len(listed) == found.total
    return {(None if p.source is None else Path(p.source).name, p.line) for p in listed}


def reasons(found: Any) -> set[str]:
    """Why a record cannot be read, or which rule it breaks."""
    return (
        {p.message for p in found.problems}
        if isinstance(found, RecordError)
        else {v.rule for v in found.violations}
    )


def expected_rows(records: list[dict[str, Any]]) -> dict[str, list[tuple[Any, ...]]]:
    """What must be in the graph after records were added, without ids that are generated."""
    people = [(r["data"]["name"], r["data"].get("mail")) for r in records if r.get("type") == "Person"]
    return {
        "node:Person": sorted([*people, *((str(p["data"]["name"]), p["data"]["mail"]) for p in BASE)]),
        "node:Base": sorted((r["data"]["code"],) for r in records if r.get("type") == "Base"),
        "edge:Knows": sorted((r["from"], r["to"]) for r in records if r.get("edge") == "Knows"),
        "edge:Leads": sorted((r["from"], r["to"]) for r in records if r.get("edge") == "Leads"),
    }


def actual_rows(graph: Graph) -> dict[str, list[tuple[Any, ...]]]:
    columns = {
        "node:Person": ("id", "mail"),
        "node:Base": ("id",),
        "edge:Knows": ("src", "dst"),
        "edge:Leads": ("src", "dst"),
    }
    return {
        key: sorted(tuple(row[c] for c in columns[key]) for row in rows) for key, rows in rows_of(graph).items()
    }


def test_without_errors_all_is_loaded(field: Field, graph: Graph, tmp_path: Path) -> None:
    """Files are cut inside of lines and inside of letters, and nothing of that is to be seen."""
    folder = field.write(tmp_path / "in")
    content = (folder / PLAIN).read_bytes()
    parts = round(len(content) / SLICE)
    cuts = [len(content) * part // parts for part in range(1, parts)]
    assert any(content[cut - 1 : cut] != b"\n" for cut in cuts)
    assert any(content[cut] & 0xC0 == 0x80 for cut in cuts)
    done = load_by_tasks(graph, folder, mode="append")
    files = len(FILES)
    assert dict(done.nodes) == {"Base": files, "Person": files * planted.PEOPLE_PER_FILE}
    assert dict(done.edges) == {"Knows": files * planted.EDGES_PER_FILE}
    assert done.total_entities > 20_000
    assert actual_rows(graph) == expected_rows(field.records())
    assert left_behind(graph) == []


def bad_type(file: str, number: int) -> Any:
    return node("Person", name=f"bad {file} {number}", age="old")


def wrong_enum(file: str, number: int) -> Any:
    return node("Person", name=f"bad {file} {number}", mood="odd")


def dangling(file: str, number: int) -> Any:
    return edge("Knows", person(file, 7), f"nobody {number}")


def repeated_key(file: str, number: int) -> Any:
    """The first of them is in the first file."""
    return node("Person", name=person(PLAIN, 10 * PLACES.index((file, number))))


def repeated_mail(file: str, number: int) -> Any:
    """Some are in the first file, some in the graph."""
    index = PLACES.index((file, number))
    return node(
        "Person", name=f"zz{file}{number}", mail=f"old{index}@x" if index < 10 else f"{PLAIN}{3 * index + 1}@x"
    )


def broken_json(file: str, number: int) -> Any:
    return '{"type": "Person", "data": {"name": "é'


def not_utf8(file: str, number: int) -> Any:
    return b'{"type": "Person", "data": {"name": "\xc3"}}'


@pytest.mark.parametrize(
    ("error", "rule"),
    [
        (bad_type, 'Person.age is I32?: "old" is not an integer'),
        (broken_json, "not JSON: Unterminated string starting at"),
        (not_utf8, "not UTF-8: byte 0xc3"),
        (wrong_enum, "enum"),
        (dangling, "endpoint"),
        (repeated_key, "unique"),
        (repeated_mail, "unique"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_class_of_errors_alone(
    error: Callable[[str, int], Any],
    rule: str,
    field: Field,
    graph: Graph,
    tmp_path: Path,
) -> None:
    for file, number in PLACES:
        if error is not repeated_key or file != PLAIN:
            field.plant(file, number, error(file, number))
    found = refused(graph, field.write(tmp_path / "in"))
    assert named(found) == field.planted
    assert reasons(found) == {rule}
    assert actual_rows(graph) == expected_rows([])


def test_too_many_edges_and_ids_that_exist(field: Field, graph: Graph, tmp_path: Path) -> None:
    """These are told by the node that has too many, and by the ids."""
    for file in FILES:
        field.plant(file, 3000, edge("Leads", person("a", 10), f"base {file}"))
        field.plant(file, 3100, edge("Leads", person(file, 14), f"base {file}"))
    found = refused(graph, field.write(tmp_path / "in"))
    [violation] = found.violations
    assert (found.total, violation.rule, violation.row_id) == (1, "card", person("a", 10))
    assert "has 5 edges (max 1)" in violation.message
    for index, file in enumerate(FILES):
        field.plant(file, 4000, node("Person", name=f"old{index}"))
    taken = refused(graph, field.write(tmp_path / "in"))
    assert (taken.table_key, taken.total, sorted(taken.ids)) == ("node:Person", 5, [f"old{i}" for i in range(5)])


def test_a_line_of_forty_megabytes(field: Field, tmp_path: Path) -> None:
    """It spans several slices, is never held, and the lines behind it keep their numbers."""
    graph = new_graph(tmp_path / "g", SCHEMA, BASE, small_slices(16 << 20))
    long = b'{"type": "Person", "data": {"name": "' + b"x" * 40_000_000 + b'"}}'
    for file in (PLAIN, UNENDED, GZIP):
        field.plant(file, 100, long)
        field.plant(file, 200, "{")
    found = refused(graph, field.write(tmp_path / "in"))
    assert named(found) == field.planted
    assert {p.message for p in found.problems if p.line == 100} == {
        "the line has 40,000,040 bytes; the limit is 33,554,432"
    }


def sown(field: Field) -> dict[tuple[str, int], str]:
    """Plant one of each in every file; what is said of each. Of two that exclude each other the first stays."""
    said: dict[tuple[str, int], str] = {}
    for index, file in enumerate(FILES):
        field.sow(file, 1900, edge("Leads", person(file, 98), f"base {file}"))
        for number, line, reason in (
            (100, broken_json(file, 100), "not JSON"),
            (200, not_utf8(file, 200), "not UTF-8: byte 0xc3"),
            (300, bad_type(file, 300), "is not an integer"),
            (400, wrong_enum(file, 400), "'odd' is not one of happy, sad"),
            (500, node("Person", name=person(file, 0)), f"id '{person(file, 0)}' is in 2 records"),
            (600, node("Person", name=f"zz{file}", mail=f"old{index}@x"), "@unique violation on Person.(mail)"),
            (700, node("Person", name=f"old{index}"), f"id 'old{index}' exists already"),
            (1600, edge("Knows", person(file, 98), "nobody"), "dst 'nobody' not found in Person"),
            (1700, edge("Knows", f"zz{file}", person(file, 98)), f"src 'zz{file}' not found in Person"),
            (2000, edge("Leads", person(file, 98), f"base {file}"), "has more than 1 edges"),
        ):
            field.plant(file, number, line)
            said[file, number] = reason
    return said


def test_bad_records_are_left_out_and_named(field: Field, tmp_path: Path, spark: SparkSession) -> None:
    """On Spark itself: what is right is loaded, all of it, and each wrong record is in a file with its reasons."""
    graph = new_graph(tmp_path / "g", SCHEMA, BASE, small_slices(300_000))
    said = sown(field)
    assert field.planted == said.keys()
    folder, bad = field.write(tmp_path / "in"), tmp_path / "out" / "bad.jsonl"
    done = graph.load(folder, mode="append", message="all of it", spark=spark, bad_records=bad, skip_bad=True)
    entries = [json.loads(line) for line in bad.read_text().splitlines()]
    found = {(Path(entry["source"]).name, entry["line"]): entry for entry in entries}
    assert len(found) == len(entries)
    assert found.keys() == said.keys()
    for place, entry in found.items():
        assert said[place] in " ".join(entry["reasons"]), entry
        assert entry["record"] == field.lines[place].decode(errors="replace")
    assert done.commit is not None
    assert done.commit.message == f"all of it (left out {len(said)} bad records)"
    assert actual_rows(graph) == expected_rows(field.records())
    assert done.total_entities == len(field.records())
    assert left_behind(graph) == []
