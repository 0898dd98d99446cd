"""Loads that go on without what is wrong: what is left out, what is said of it, and what is loaded."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.bulk.loading import Record, edge, left_behind, new_graph, node, rows_of, write

import omnigraph
from omnigraph import failpoints
from omnigraph.bulk.load.checking.bad_records import RejectedRow
from omnigraph.bulk.masks import excluded_records, record_positions
from omnigraph.errors import ConstraintViolation, RecordError, StorageUnavailable
from omnigraph.graph import Graph
from omnigraph.storage.files.datafiles import StagedFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
node Person { name: String @key  mail: String? @unique  age: I32?  @range(age, 0..150) }
edge Knows: Person -> Person
"""
BASE = (node("Person", name="ada", mail="a@x"), node("Person", name="bo", mail="b@x"))


def bad_in(path: Path) -> list[tuple[int | None, list[str], Any]]:
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    return [(entry["line"], entry["reasons"], entry["record"]) for entry in entries]


def people(graph: Graph) -> dict[str, str | None]:
    return {row["id"]: row["mail"] for row in rows_of(graph)["node:Person"]}


def test_one_row_that_is_left_out_leaves_another_in_the_way(tmp_path: Path, spark: SparkSession) -> None:
    """In a merge `ada` may not take the mail of `bo`, so she keeps her own, and `cy` may not have that."""
    graph = new_graph(tmp_path / "g", SCHEMA, BASE)
    records = [
        node("Person", name="cy", mail="a@x"),
        node("Person", name="ada", mail="b@x"),
        node("Person", name="dee", age=-1),
        node("Person", name="dee", age=7),
        edge("Knows", "cy", "ada"),
        edge("Knows", "bo", "ada"),
    ]
    path, bad = write(tmp_path / "x.jsonl", records), tmp_path / "bad.jsonl"
    done = graph.load(path, mode="merge", spark=spark, skip_bad=True, bad_records=bad)
    assert people(graph) == {"ada": "a@x", "bo": "b@x", "dee": None}
    shared = "@unique violation on Person.(mail): another row has the same value"
    assert [(line, reasons) for line, reasons, _ in bad_in(bad)] == [
        (1, [shared]),
        (2, [shared]),
        (3, ["@range violation on Person.age: -1 is not in 0..150 (row 'dee')"]),
        (5, ["src 'cy' not found in Person"]),
    ]
    assert (dict(done.nodes), dict(done.edges)) == ({"Person": 1}, {"Knows": 1})
    assert done.commit is not None
    assert done.commit.message == "left out 4 bad records"
    assert left_behind(graph) == []


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_bad_rows_of_csv_are_written_down_as_they_stand_in_the_file(tmp_path: Path, packed: str) -> None:
    graph = omnigraph.init(tmp_path / "g.omni", SCHEMA)
    path, bad = tmp_path / f"people.csv{packed}", tmp_path / "bad.jsonl"
    text = (
        "\ufeffname,mail,age\r\n"
        'ada,"two\nlines",x\r\n'
        "\r\n"
        "bo,,7\r\n"
        "cy,,1,2\r\n"
        'dee,"a ""b"" c",999\r\n'
        'eve,"never closed,3\r\n'
    )
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    graph.load(nodes={"Person": path}, mode="append", engine="local", skip_bad=True, bad_records=bad)
    assert [(line, record) for line, _, record in bad_in(bad)] == [
        (2, 'ada,"two\nlines",x'),
        (6, "cy,,1,2"),
        (7, 'dee,"a ""b"" c",999'),
        (8, 'eve,"never closed,3\r\n'),
    ]
    assert bad_in(bad)[0][1] == ["Person.age is I32?: 'x' is not an integer"]


WRONG: list[Record | str] = [
    node("Person", name="new"),
    node("Person", name="old", age=-1),
    node("Person", name="new", age=200),
    "",
    node("Person", name="new", age=3),
    edge("Knows", "new", "nobody"),
    edge("Knows", "new", "old"),
]


def test_the_file_says_what_would_be_left_out(tmp_path: Path, spark: SparkSession) -> None:
    """Without `skip_bad` nothing is loaded, and what is written down is the same."""
    graph = new_graph(tmp_path / "g", SCHEMA, BASE)
    path = write(tmp_path / "x.jsonl", WRONG)
    with pytest.raises(ConstraintViolation):
        graph.load(path, mode="append", spark=spark, bad_records=tmp_path / "refused.jsonl")
    assert people(graph).keys() == {"ada", "bo"}
    graph.load(path, mode="append", spark=spark, skip_bad=True, bad_records=tmp_path / "skipped.jsonl")
    assert bad_in(tmp_path / "refused.jsonl") == bad_in(tmp_path / "skipped.jsonl")
    assert [(line, len(reasons)) for line, reasons, _ in bad_in(tmp_path / "skipped.jsonl")] == [
        (2, 1),
        (3, 1),
        (5, 1),
        (6, 1),
        (7, 1),
    ]
    assert people(graph).keys() == {"ada", "bo", "new"}


def test_what_others_do_meanwhile_decides_what_is_bad(tmp_path: Path, spark: SparkSession) -> None:
    """The message and the file tell of the state the load was committed on, not of one it looked at before."""
    graph = new_graph(tmp_path / "g", SCHEMA, BASE)
    records = [node("Person", name="cy"), edge("Knows", "cy", "dee"), edge("Knows", "cy", "eve")]
    path, bad = write(tmp_path / "x.jsonl", records), tmp_path / "bad.jsonl"
    other = omnigraph.open(graph.address)
    left = [[node("Person", name="dee")]]

    def meanwhile() -> None:
        if left:
            other.load(left.pop(), mode="append")

    with failpoints.armed("write.after_stage", meanwhile):
        done = graph.load(path, mode="append", spark=spark, skip_bad=True, bad_records=bad, message="m")
    assert done.commit is not None
    assert done.commit.message == "m (left out 1 bad record)"
    assert [line for line, _, _ in bad_in(bad)] == [3]
    assert dict(done.edges) == {"Knows": 1}
    assert [row["dst"] for row in rows_of(graph)["edge:Knows"]] == ["dee"]
    assert left_behind(graph) == []


def test_rows_of_a_dataframe(tmp_path: Path, spark: SparkSession) -> None:
    graph = new_graph(tmp_path / "g", SCHEMA, BASE)
    rows = [("new", 1), ("old", -1), (None, 2), ("ada", 3), ("far", 2**40)]
    frame = spark.createDataFrame(rows, "name string, age bigint").coalesce(1)
    with pytest.raises(RecordError) as raised:
        graph.load(nodes={"Person": frame}, mode="append", spark=spark)
    assert [(p.source, p.line) for p in raised.value.problems] == [
        ("<DataFrame of Person>", line) for line in (3, 5)
    ]
    bad = tmp_path / "bad.jsonl"
    done = graph.load(nodes={"Person": frame}, mode="append", spark=spark, skip_bad=True, bad_records=bad)
    assert [(line, record) for line, _, record in bad_in(bad)] == [(2, None), (3, None), (5, None), (None, None)]
    assert bad_in(bad)[-1][1] == ["id 'ada' exists already"]
    assert done.commit is not None
    assert (dict(done.nodes), done.commit.message) == ({"Person": 1}, "left out 4 bad records")
    assert people(graph).keys() == {"ada", "bo", "new"}


def test_a_file_that_cannot_be_written_stops_the_load_before_its_commit(
    tmp_path: Path, spark: SparkSession
) -> None:
    graph = new_graph(tmp_path / "g", SCHEMA, BASE)
    (tmp_path / "file").write_text("x")
    path = write(tmp_path / "x.jsonl", [node("Person", name="new"), "{"])
    with pytest.raises(StorageUnavailable):
        graph.load(path, mode="append", spark=spark, skip_bad=True, bad_records=tmp_path / "file" / "bad.jsonl")
    assert people(graph).keys() == {"ada", "bo"}
    assert left_behind(graph) == []


def test_a_table_of_which_nothing_is_left_is_replaced_too(tmp_path: Path, spark: SparkSession) -> None:
    schema = "node Event { size: I32?  @range(size, 0..9) }\nnode Place { name: String? }"
    graph = new_graph(tmp_path / "g", schema, [node("Event", size=1), node("Place", name="here")])
    path = write(tmp_path / "x.jsonl", [node("Event", size=-1), node("Event", size=10)])
    done = graph.load(path, mode="overwrite", spark=spark, skip_bad=True)
    assert done.commit is not None
    assert (dict(done.nodes), done.commit.message) == ({"Event": 0}, "left out 2 bad records")
    assert {key: len(rows) for key, rows in rows_of(graph).items()} == {"node:Event": 0, "node:Place": 1}


def test_places_among_records_and_among_what_was_staged() -> None:
    """Of ten records 0, 3 and 4 are left out; the rows that are staged were these."""
    assert record_positions(range(7), [0, 3, 4]) == [1, 2, 5, 6, 7, 8, 9]
    assert record_positions([2], []) == [2]
    assert record_positions([], [1]) == []
    files = [StagedFile("node:A", name, 3, 0, slice=1, first=first) for name, first in (("a", 0), ("b", 3))]
    excluded = excluded_records(files, {(1, "node:A"): [0, 4, 5], (2, "node:A"): [1]})
    assert [excluded.kept(file).tolist() for file in files] == [[1, 2], [0]]
    assert RejectedRow("node:A", 1, "why").reason == "why"
