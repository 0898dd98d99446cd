"""A handle that has answered queries before answers them after any change as one that is opened anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.read.agreement import Case, ask_engine, disagreement, lively_query, random_graph, report
from tests.read.changes import change
from tests.read.engine import data_of, records_of
from tests.read.graphs import SchemaPlan
from tests.read.query_parts import Query
from tests.read.reference_rows import GraphData
from tests.sampling import quick_and_long, sampled
from tests.stores import Store

import omnigraph
from omnigraph.embed.mock import MockClient
from omnigraph.errors import OmniError
from omnigraph.graph import Graph
from omnigraph.read.data import rows as rows_module
from omnigraph.read.plan.access import forced_access
from omnigraph.settings import ReadSettings, Settings, WriteSettings
from omnigraph.storage.rows import pieces
from omnigraph.storage.versions import TableRef, TableVersions

STEPS = 8
QUERIES = 8
WAYS = (
    Settings(read=ReadSettings(save_from=1, take_over_from=1), write=WriteSettings(fold_files=2)),
    Settings(
        read=ReadSettings(spare_positions=4, take_over_from=9, encode_from=3, order_from=2, order_after=1),
        write=WriteSettings(fold_files=3, exact_rows=2),
    ),
)
"""Files are folded all the time; and sizes at which small tables are laid out anew, encoded and sorted as large
ones are."""


class Story:
    """A graph that changes, read by one handle that stays warm."""

    def __init__(self, folder: Path, seed: int, settings: Settings) -> None:
        self.random, self.schema, self.records = random_graph(seed)
        self.graph = omnigraph.init(str(folder / "graph"), self.schema.text)
        self.settings = settings
        self.reopen()
        self.graph.load("\n".join(json.dumps(record) for record in self.records).encode(), mode="append")
        data = data_of(self.graph)
        self.queries = [
            lively_query(self.random, self.schema, self.records, self.graph, data) for _ in range(QUERIES)
        ]
        self.branches = ["main"]
        self.past: list[tuple[str, GraphData]] = []
        self.fills: dict[str, int] = {}

    def check(self, step: str) -> None:
        """All queries on a branch, and now and then on a state of the past."""
        branch = self.random.choice(self.branches)
        data = data_of(self.graph, branch)
        self._compare(f"after {step}, on {branch}", data, branch=branch)
        if self.past and self.random.random() < 0.3:
            commit, data = self.random.choice(self.past)
            self._compare(f"after {step}, on a state of the past", data, at=commit)
        for name, fill in self.fills.items():
            text = f"query q() {{ match {{ $v: {name} }} return {{ $v.extra as extra }} }}"
            assert {row["extra"] for row in self.graph.query(text).rows} <= {fill, None}

    def _compare(self, state: str, data: GraphData, **where: str) -> None:
        def ask(graph: Graph, query: Query) -> tuple[list[str], list[dict[str, Any]]]:
            with forced_access("memory"):
                return ask_engine(graph, query, **where)

        for query in self.queries:
            problem, _ = disagreement(self.graph, query, ask, data)
            if problem:
                case = Case(self.schema, tuple(records_of(data)), query)
                pytest.fail(f"{state}: {report(case, self.graph, problem)}", pytrace=False)

    def change(self) -> None:
        branch = self.random.choice(self.branches)
        commit = self.graph.snapshot(branch).commit
        if commit is not None:
            self.past.append((commit.graph_commit_id, data_of(self.graph, branch)))
        change(self.random, self.graph, self.schema, self.records, branch)

    def reopen(self) -> None:
        """Begin with nothing in memory; what `optimize` has saved is followed from there."""
        self.graph = omnigraph.open(self.graph.address, embedder=MockClient(), settings=self.settings)

    def compact(self) -> None:
        self.graph.optimize(branch=self.random.choice(self.branches))

    def restart(self) -> None:
        """Begin with nothing in memory after a compaction and perhaps one more change."""
        self.compact()
        if self.random.random() < 0.7:
            self.change()
        self.reopen()

    def index(self) -> None:
        self.graph.ensure_indices(branch=self.random.choice(self.branches))

    def clean(self) -> None:
        """Remove all states but the newest ones, with the files of rows that were replaced."""
        self.graph.cleanup(keep=1, grace="0s", confirm=True)
        self.past.clear()

    def fork(self) -> None:
        name = f"b{len(self.branches)}"
        self.graph.create_branch(name, self.random.choice(self.branches))
        self.branches.append(name)

    def merge(self) -> None:
        try:
            self.graph.merge(self.random.choice(self.branches), into="main")
        except OmniError:
            return  # the two cannot be put together, or are one

    def evolve(self) -> None:
        """Give a type a property with a value for every row, or take that property away again."""
        name, fill = self.random.choice(self.schema.nodes).name, dict[str, int]()
        if self.fills.pop(name, None) is None:
            self.fills[name] = fill[f"{name}.extra"] = len(self.past) + 1
        else:
            self.past.clear()  # what a dropped property held is gone from older states too
        self.graph.apply_schema_to_all(self._schema(), fill=fill, allow_data_loss=True)

    def _schema(self) -> str:
        texts = SchemaPlan(self.schema.nodes, self.schema.edges).text.splitlines()
        for name in self.fills:
            texts = [
                text.replace("{ ", "{ extra: I64?  ", 1) if text.startswith(f"node {name} ") else text
                for text in texts
            ]
        return "\n".join(texts)


STEPS_OF_A_STORY: tuple[Callable[[Story], None], ...] = (
    Story.change,
    Story.change,
    Story.change,
    Story.change,
    Story.compact,
    Story.compact,
    Story.restart,
    Story.index,
    Story.clean,
    Story.fork,
    Story.merge,
    Story.evolve,
)


@pytest.mark.parametrize(("seed", "settings"), sampled([(s, WAYS[s % 2]) for s in range(7000, 7030)], 2))
def test_a_warm_handle_follows_every_change(seed: int, settings: Settings, tmp_path: Path) -> None:
    story = Story(tmp_path, seed, settings)
    story.check("the first load")
    for _ in range(STEPS):
        step = story.random.choice(STEPS_OF_A_STORY)
        step(story)
        story.check(step.__name__)


SCHEMA = """
node Person { slug: String @key  age: I64  motto: String @index  face: Vector(4) @index }
edge Knows: Person -> Person { since: I64 }
"""
PEOPLE = 3_000
QUESTIONS = (
    "match { $p: Person $p knows $q  $q knows $r } return { count($r) as n }",
    "match { $p: Person $p $e:knows $q  $q.age > 5 } return { sum($e.since) as n }",
    "match { $p: Person $p <knows> $q } return { count(distinct $q) as n }",
    "match { $p: Person } return { $p.slug } order { $p.age desc, $p.slug } limit 3",
    'match { $p: Person search($p.motto, "word7") } return { count($p) as n }',
    'match { $p: Person } return { $p.slug } order { bm25($p.motto, "word7 common") desc } limit 3',
    "match { $p: Person } return { $p.slug } order { nearest($p.face, [1.0, 2.0, 3.0, 4.0]) } limit 3",
)
CHANGES = (
    'insert Person { slug: "new", age: 3, motto: "word7 new", face: [1.0, 2.0, 3.0, 4.0] }',
    'insert Knows { from: "p5", to: "p9", since: 4 }',
    'update Person set { age: 7000 } where slug = "p5"',
    'delete Knows where from = "p6"',
    'delete Person where slug = "p8"',
)


def person(number: int) -> dict[str, Any]:
    motto = f"word{number % 50} common text of {number}"
    face = [float(number % 7), float(number % 11), float(number % 5), float(number % 3)]
    return {"type": "Person", "data": {"slug": f"p{number}", "age": number % 90, "motto": motto, "face": face}}


def knows(number: int, count: int) -> Iterator[dict[str, Any]]:
    for step in (1, 7):
        ends = {"from": f"p{number}", "to": f"p{(number * 3 + step) % count}"}
        yield {"edge": "Knows", **ends, "data": {"since": number % 9}}


def filled(graph: Graph, count: int) -> Graph:
    records = [person(number) for number in range(count)]
    records += [edge for number in range(count) for edge in knows(number, count)]
    graph.load(records, mode="append")
    return graph


class Reads:
    """Counts the rows that are read from tables."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        readable, rows_at = TableVersions.readable, pieces.rows_at

        def counted(tables: TableVersions, ref: TableRef, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
            def batches() -> Iterator[pa.RecordBatch]:
                for batch in readable(tables, ref, reader):
                    self.rows += batch.num_rows
                    yield batch

            return pa.RecordBatchReader.from_batches(reader.schema, batches())

        def few(*args: Any) -> pa.Table:
            table = rows_at(*args)
            self.rows += table.num_rows
            return table

        patch.setattr(TableVersions, "readable", counted)
        patch.setattr(rows_module, "rows_at", few)


def answers(graph: Graph) -> list[Any]:
    with forced_access("memory"):
        return [graph.query(f"query q() {{ {text} }}").rows for text in QUESTIONS]


@pytest.mark.parametrize("count", quick_and_long(300, PEOPLE))
def test_a_query_after_a_change_reads_what_changed(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = filled(omnigraph.init(str(tmp_path / "g"), SCHEMA), count)
    answers(graph)
    reads = Reads(monkeypatch)
    for text in CHANGES:
        graph.mutate(f"query m() {{ {text} }}")
        reads.rows = 0
        found = answers(graph)
        assert 0 < reads.rows < 60, text
        assert found == answers(omnigraph.open(graph.address)), text


def test_after_a_compaction_nothing_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(read=ReadSettings(take_over_from=100))
    graph = filled(omnigraph.init(str(tmp_path / "g"), SCHEMA), 300)
    graph = omnigraph.open(graph.address, settings=settings)
    for number in range(5):
        graph.load([person(300 + number)], mode="append")
    graph.mutate('query m() { delete Person where slug = "p8" }')
    graph.mutate('query m() { update Person set { age: 7000 } where slug = "p5" }')
    expected, used, reads = answers(graph), graph._cache.usage().used, Reads(monkeypatch)
    graph.optimize()
    reads.rows = 0
    assert answers(graph) == expected
    assert reads.rows == 0
    assert graph._cache.usage().used < 1.1 * used
    graph.mutate('query m() { delete Person where slug = "p9" }')
    graph.mutate('query m() { insert Knows { from: "p301", to: "p302", since: 1 } }')
    assert answers(graph) == answers(omnigraph.open(graph.address))
    assert reads.rows > 300, "of the new handle"


def test_a_branch_shares_what_it_shares_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = filled(omnigraph.init(str(tmp_path / "g"), SCHEMA), PEOPLE)
    expected, used = answers(graph), graph._cache.usage().used
    graph.create_branch("side")
    side = graph.branch("side")
    for text in CHANGES:
        side.mutate(f"query m() {{ {text} }}")
    reads = Reads(monkeypatch)
    assert answers(side) != expected
    assert reads.rows < 100
    assert answers(graph) == expected
    assert reads.rows < 100
    assert graph._cache.usage().used < 2 * used


def test_a_warm_handle_follows_changes_on_every_store(store: Store) -> None:
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
    filled(graph, 60)
    graph.create_branch("side")
    answers(graph)
    for text in CHANGES:
        for branch in ("main", "side"):
            graph.mutate(f"query m() {{ {text} }}", branch=branch)
            opened = omnigraph.open(store.uri, storage_options=store.options)
            assert answers(graph.branch(branch)) == answers(opened.branch(branch)), (branch, text)


def test_rows_that_were_replaced_are_let_go(tmp_path: Path) -> None:
    graph = filled(omnigraph.init(str(tmp_path / "g"), SCHEMA), 50)
    graph = omnigraph.open(graph.address, settings=replace(Settings(), read=ReadSettings(spare_positions=10)))
    used = []
    for number in range(8):
        graph.load([person(number) for number in range(50)], mode="merge")
        answers(graph)
        used.append(graph._cache.usage().used)
        assert number < 4 or used[-1] <= 1.5 * max(used[:4])
