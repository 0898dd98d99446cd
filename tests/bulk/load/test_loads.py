"""Loads through the public door: what may be loaded, where it goes, and what comes back.

What the modes do to rows is told in `tests/corpus/load`.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from tests.storage.test_locks import wait_for_queue
from tests.write.support import ids_of, new_graph, stored

from omnigraph.bulk.load.inputs import read_data
from omnigraph.bulk.load.options import LoadResult
from omnigraph.errors import (
    BranchNotFound,
    ConstraintViolation,
    DataError,
    InvalidArgument,
    KeyConflict,
    ReadOnlyGraph,
    RecordError,
    ResourceLimit,
    SourceUnusable,
)
from omnigraph.graph import Graph
from omnigraph.opening import open as open_graph
from omnigraph.settings import BulkSettings, Settings

SCHEMA = """
node Person { name: String @key  born: Date?  seen: DateTime?  photo: Blob?  face: Vector(2)?  tags: [String]? }
node Event { what: String? }
edge Knows: Person -> Person
"""
LINE = '{"type": "Person", "data": {"name": "Ada"}}'


@pytest.fixture
def graph() -> Graph:
    return new_graph(SCHEMA)


class TestInputs:
    @pytest.mark.parametrize("data", [LINE, f"  {LINE}", f"\n{LINE}\n", f"// people\n{LINE}", LINE.encode()])
    def test_text_and_bytes(self, graph: Graph, data: str | bytes) -> None:
        assert graph.load(data, mode="append").nodes == {"Person": 1}
        assert ids_of(graph, "node:Person") == ["Ada"]

    @pytest.mark.parametrize("marked", [f"\ufeff{LINE}", f"\ufeff // people\n{LINE}", f"\ufeff{LINE}".encode()])
    def test_a_byte_order_mark_is_skipped(self, graph: Graph, marked: str | bytes, tmp_path: Path) -> None:
        assert graph.load(marked, mode="append").nodes == {"Person": 1}
        path = tmp_path / "people.jsonl"
        path.write_bytes(marked if isinstance(marked, bytes) else marked.encode())
        assert graph.load(path, mode="merge").nodes == {"Person": 1}

    def test_places_are_counted_without_a_byte_order_mark(self, graph: Graph) -> None:
        with pytest.raises(RecordError) as raised:
            graph.load('\ufeff{"type": Person}\n\ufeff{}', mode="append")
        assert [(p.line, p.column) for p in raised.value.problems] == [(1, 10), (2, 1)]

    @pytest.mark.parametrize("name", ["people.jsonl", "our people.jsonl", "{people}.jsonl"])
    def test_files(self, graph: Graph, name: str, tmp_path: Path) -> None:
        path = tmp_path / name
        path.write_text(f"{LINE}\n{{}}\n")
        with pytest.raises(RecordError) as raised:
            graph.load(path, mode="append")
        assert raised.value.problems[0].source == str(path)
        path.write_text(LINE)
        assert graph.load(path, mode="append").total_entities == 1
        assert graph.load(str(path), mode="merge").total_entities == 1

    def test_files_that_are_not_there(self, graph: Graph, tmp_path: Path) -> None:
        for path in (tmp_path / "nothing.jsonl", str(tmp_path / "nothing.jsonl")):
            with pytest.raises(SourceUnusable, match="there is no such file"):
                graph.load(path, mode="append")

    def test_a_directory_in_this_process(self, graph: Graph, tmp_path: Path) -> None:
        (tmp_path / "people.jsonl").write_text(LINE)
        assert graph.load(tmp_path, mode="append").total_entities == 1

    def test_dictionaries(self, graph: Graph) -> None:
        day, moment = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 10, 0, 0, 123456, tzinfo=dt.UTC)
        graph.load([_person("Ada", born=day, seen=moment, photo=b"\0\1", face=[1, 2], tags=("a",))], mode="append")
        [ada] = stored(graph, "node:Person")
        assert (ada["born"], ada["photo"]["data"], ada["face"], ada["tags"]) == (day, b"\0\1", [1.0, 2.0], ["a"])
        assert ada["seen"] == moment.replace(microsecond=123000)

    def test_an_instant_without_a_zone_is_utc(self, graph: Graph) -> None:
        zone = dt.timezone(dt.timedelta(hours=2))
        moments = [dt.datetime(2024, 1, 1, 12), dt.datetime(2024, 1, 1, 14, tzinfo=zone)]
        graph.load([_person(f"p{i}", seen=at) for i, at in enumerate(moments)], mode="append")
        assert {row["seen"] for row in stored(graph, "node:Person", "seen")} == {
            dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
        }

    def test_arrays_and_other_mappings(self, graph: Graph) -> None:
        vector = np.array([0.5, 1], dtype=np.float32)
        record = MappingProxyType(_person("Ada", face=vector, photo=bytearray(b"x"), tags=np.array(["a"])))
        graph.load([record], mode="append")
        [ada] = stored(graph, "node:Person")
        assert (ada["face"], ada["photo"]["data"], ada["tags"]) == ([0.5, 1.0], b"x", ["a"])

    def test_a_generator(self, graph: Graph) -> None:
        def records() -> Iterator[Mapping[str, Any]]:
            yield from (_person(f"p{i}") for i in range(3))

        assert graph.load(records(), mode="append").nodes == {"Person": 3}

    def test_values_that_no_record_can_hold(self, graph: Graph) -> None:
        with pytest.raises(DataError, match="complex"):
            graph.load([_person("Ada", tags=[1j])], mode="append")
        for value in (float("nan"), "\ud800", 7):
            with pytest.raises(RecordError) as raised:
                graph.load([_person("Bo"), _person("Ada", tags=[value])], mode="append")
            assert [(p.source, p.line) for p in raised.value.problems] == [("<records>", 2)]

    @pytest.mark.parametrize("data", ["", "\n\n", " ", b"", [], "// nothing\n"])
    def test_nothing_at_all_makes_no_commit(self, graph: Graph, data: Any) -> None:
        before = graph.commits()
        done = graph.load(data, mode="overwrite")
        assert (done.total_entities, done.nodes, done.edges) == (0, {}, {})
        assert done.commit is None
        assert done.as_json()["commit"] is None
        assert graph.commits() == before

    def test_more_than_this_process_takes(self, tmp_path: Path) -> None:
        graph = new_graph(SCHEMA, settings=Settings(bulk=BulkSettings(small_load=60)))
        path = tmp_path / "people.jsonl"
        path.write_text(f"{LINE}\n{LINE}")
        endless = (_person(f"p{i}") for i in iter(int, 1))
        for data in (path.read_text(), path.read_bytes(), endless, path):
            with pytest.raises(ResourceLimit) as raised:
                graph.load(data, mode="append")
            assert raised.value.limit == 60
        assert graph.load(LINE, mode="append").total_entities == 1

    @pytest.mark.parametrize("kind", [Path, str])
    def test_a_file_that_grows_after_the_engine_is_chosen(self, kind: Any, tmp_path: Path) -> None:
        path = tmp_path / "people.jsonl"
        path.write_text(f"{LINE}\n{LINE}")
        with pytest.raises(ResourceLimit) as raised:
            read_data(kind(path), 60)
        assert raised.value.limit == 60
        assert read_data(kind(path), 100) == (path.read_bytes(), str(path))


class TestResults:
    def test_what_was_read(self, graph: Graph) -> None:
        lines = [LINE, _line("Person", name="Bo"), _line("Event"), '{"edge": "knows", "from": "Ada", "to": "Bo"}']
        done = graph.load("\n".join(lines), mode="append", actor="me", message="people")
        assert (dict(done.nodes), dict(done.edges), done.total_entities) == (
            {"Event": 1, "Person": 2},
            {"Knows": 1},
            4,
        )
        assert (done.branch, done.mode, done.base_branch, done.branch_created) == ("main", "append", None, False)
        assert done.commit is not None
        assert (done.commit.kind, done.commit.actor_id, done.commit.message) == ("load", "me", "people")

    def test_as_json(self, graph: Graph) -> None:
        done = graph.load(LINE, mode="merge").as_json()
        assert json.loads(json.dumps(done)) == done
        assert done["nodes"] == [{"name": "Person", "entities_loaded": 1}]
        assert done["total_entities"] == 1

    def test_one_commit_whatever_the_number_of_tables(self, graph: Graph) -> None:
        graph.load(
            "\n".join([LINE, _line("Event"), '{"edge": "Knows", "from": "Ada", "to": "Ada"}']), mode="append"
        )
        assert [commit.kind for commit in graph.commits()] == ["load", "init"]

    def test_more_than_twenty_ids_that_are_there(self, graph: Graph) -> None:
        people = [_person(f"p{i:02}") for i in range(25)]
        graph.load(people, mode="append")
        for again in (people, [*people, _person("new")]):
            with pytest.raises(KeyConflict) as raised:
                graph.load(again, mode="append")
            assert (len(raised.value.ids), raised.value.total) == (20, 25)

    def test_more_than_twenty_ids_that_come_twice(self, graph: Graph) -> None:
        twice = [_person(f"p{i:02}") for i in range(25)] * 2
        with pytest.raises(ConstraintViolation) as violated:
            graph.load(twice, mode="append")
        assert (len(violated.value.violations), violated.value.total) == (20, 25)
        events = [{"type": "Event", "data": {"id": f"e{i}"}} for i in range(25)] * 2
        with pytest.raises(KeyConflict) as raised:
            graph.load(events, mode="overwrite")
        assert (len(raised.value.ids), raised.value.total) == (20, 25)
        assert str(raised.value).startswith("several records of node Event have these ids: 'e0', ")

    def test_all_lines_are_read_and_twenty_are_listed(self, graph: Graph, tmp_path: Path) -> None:
        path = tmp_path / "people.jsonl"
        path.write_text('{"type": "Event"}\n{}\n' * 25)
        with pytest.raises(RecordError) as raised:
            graph.load(path, mode="append")
        error = raised.value
        assert [p.line for p in error.problems] == list(range(2, 42, 2))
        assert error.total == 25
        assert str(error).splitlines()[0] == f"{path}:2:1: a record has either 'type' or 'edge'"
        assert "… and 5 more" in str(error).splitlines()

    def test_an_unknown_mode(self, graph: Graph) -> None:
        with pytest.raises(InvalidArgument, match="'replace' is no mode of a load; there are overwrite, append"):
            graph.load(LINE, mode="replace")  # type: ignore[arg-type]

    def test_a_graph_that_was_opened_for_reading(self, graph: Graph) -> None:
        with pytest.raises(ReadOnlyGraph):
            open_graph(graph.address, read_only=True).load(LINE, mode="append")


class TestBranches:
    def test_the_branch_must_exist(self, graph: Graph) -> None:
        with pytest.raises(BranchNotFound):
            graph.load(LINE, mode="append", branch="review")

    def test_a_missing_branch_is_forked_if_it_is_said_from_where(self, graph: Graph) -> None:
        graph.load(_line("Person", name="Bo"), mode="append")
        done = graph.load(LINE, mode="append", branch="review", from_="main")
        assert (done.branch, done.base_branch, done.branch_created) == ("review", "main", True)
        assert ids_of(graph, "node:Person", "review") == ["Ada", "Bo"]
        assert ids_of(graph, "node:Person") == ["Bo"]

    def test_of_many_that_ingest_into_a_missing_branch_one_forks_it(self, graph: Graph) -> None:
        """All of them have seen that it is missing before the first one makes it."""
        locks = graph._repository.locks

        def ingest(number: int) -> LoadResult:
            return graph.ingest(_line("Person", name=f"P{number}"), "review", mode="append")

        with ThreadPoolExecutor(3) as pool:
            with locks.control():
                started = [pool.submit(ingest, number) for number in range(3)]
                wait_for_queue(locks, 3)
            done = [each.result() for each in started]
        assert sorted(each.branch_created for each in done) == [False, False, True]
        assert {each.base_branch for each in done} == {"main"}
        assert ids_of(graph, "node:Person", "review") == ["P0", "P1", "P2"]

    def test_ingest_forks_from_main_and_merges(self, graph: Graph) -> None:
        assert graph.ingest(LINE, "review").branch_created
        again = graph.ingest(LINE, "review", actor="me")
        assert again.commit is not None
        assert (again.branch_created, again.mode, again.commit.actor_id) == (False, "merge", "me")
        assert graph.ingest(_line("Person", name="Bo"), "more", from_="review").base_branch == "review"
        assert ids_of(graph, "node:Person", "more") == ["Ada", "Bo"]

    @pytest.mark.parametrize(
        ("data", "error"),
        [
            ("{}", RecordError),
            ('{"edge": "Knows", "from": "Ada", "to": "nobody"}', ConstraintViolation),
            (LINE, KeyConflict),
            ("nothing.jsonl", SourceUnusable),
        ],
    )
    def test_what_is_refused_leaves_no_branch(self, graph: Graph, data: str, error: type[Exception]) -> None:
        graph.load(LINE, mode="append")
        with pytest.raises(error):
            graph.ingest(data, "review", mode="append")
        assert [branch.name for branch in graph.branches()] == ["main"]

    def test_a_fork_of_nothing(self, graph: Graph) -> None:
        with pytest.raises(BranchNotFound):
            graph.ingest(LINE, "review", from_="nowhere")


def _person(name: str, **values: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **values}}


def _line(type_name: str, **values: Any) -> str:
    return json.dumps({"type": type_name, "data": values})
