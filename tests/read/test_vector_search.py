"""The nearest vectors by an index: nearly all of them, with the scores that a comparison of all vectors gives."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.cli.command import omnigraph as command
from tests.sampling import sampled
from tests.stores import Store

import omnigraph
from omnigraph.graph import Graph
from omnigraph.read.run.search.indexed import probes_for
from omnigraph.settings import ReadSettings, Settings

SCHEMA = """
node Doc { name: String @key  group: I32  wide: Vector(8)? @index  odd: Vector(3)? @index }
node Topic { name: String @key }
edge About: Doc -> Topic
"""
DIMENSIONS = {"wide": 8, "odd": 3}
SMALL = Settings(read=ReadSettings(search_from=200, select_from=1, rows_per_lookup=1, partition_from=100))
ROWS, BEST = 400, 5
LEAST = 0.9
"""Small tables have small partitions, so an index finds a smaller share than it does in large ones."""


@pytest.fixture(autouse=True)
def small_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.maintenance.index_plan.VECTOR_ROWS", 200)


def text(column: str, match: str = "$d: Doc", rest: str = f"limit {BEST}") -> str:
    return (
        f"query q($v: Vector({DIMENSIONS[column]})) {{ match {{ {match} }} "
        f"return {{ $d.name as name, nearest($d.{column}, $v) as far }} order {{ far }} {rest} }}"
    )


@dataclass
class World:
    """A graph and what is in it."""

    graph: Graph
    random: Random
    made: int = 0

    def record(self, name: str) -> dict[str, Any]:
        vectors = {column: None if self.random.random() < 0.02 else self.vector(column) for column in DIMENSIONS}
        return {"type": "Doc", "data": {"name": name, "group": self.random.randrange(10), **vectors}}

    def vector(self, column: str) -> list[float]:
        return [round(self.random.gauss(0, 1), 3) for _ in range(DIMENSIONS[column])]

    def insert(self, count: int, branch: str = "main") -> None:
        names = [f"d{self.made + number}" for number in range(count)]
        self.made += count
        self.graph.load([self.record(name) for name in names], mode="append", branch=branch)

    def update(self, branch: str = "main") -> None:
        names = {f"d{self.random.randrange(self.made)}" for _ in range(6)}
        self.graph.load([self.record(name) for name in sorted(names)], mode="merge", branch=branch)

    def delete(self, branch: str = "main") -> None:
        name = f"d{self.random.randrange(self.made)}"
        self.graph.mutate(f'query q() {{ delete Doc where name = "{name}" }}', branch=branch)

    def check(self, **where: Any) -> None:
        """Every row that is found has the score that it has among all rows, and nearly all are found: by
        partitions in memory, and by the index where the vectors are not. Few that match are fetched, and then
        still none are in memory."""
        hits, cold = Counter[str](), omnigraph.open(self.graph.address, settings=SMALL)
        for column in DIMENSIONS:
            query, everything = text(column), text(column, rest="limit 100000")
            for _ in range(4):
                params = {"v": self.vector(column)}
                scores = scores_of(self.graph.query(everything, params, **where).rows)
                assert "Rank" in self.graph.explain(query, params, **where)
                assert "Look up" in cold.explain(query, params, **where)
                exact = self.graph.query(query, params, exact=True, **where).rows
                few = text(column, "$d: Doc $d.group < 5")
                assert (
                    cold.query(few, params, **where).rows
                    == self.graph.query(few, params, exact=True, **where).rows
                )
                assert exact == list(self.graph.query(everything, params, **where).rows)[:BEST]
                for way, graph in (("memory", self.graph), ("index", cold)):
                    found = graph.query(query, params, **where).rows
                    assert len(found) == len(exact) == BEST
                    assert [row["far"] for row in found] == sorted(row["far"] for row in found)
                    assert all(scores[row["name"]] == row["far"] for row in found)
                    hits[way] += len(scores_of(found).keys() & scores_of(exact).keys())
        assert min(hits.values()) >= LEAST * 8 * BEST


def scores_of(rows: Any) -> Mapping[str, float]:
    return {row["name"]: row["far"] for row in rows}


@pytest.fixture
def world(local_store: Store) -> World:
    omnigraph.init(local_store.uri, SCHEMA)
    world = World(omnigraph.open(local_store.uri, settings=SMALL), Random(3))
    world.insert(ROWS)
    built = world.graph.ensure_indices().built
    assert {(one.column, one.kind) for one in built if one.kind != "BTREE"} == {
        ("wide", "IVF_RQ"),
        ("odd", "IVF_FLAT"),
    }
    return world


@pytest.mark.parametrize("seed", sampled(range(6), 1))
def test_whatever_was_written_since(world: World, seed: int) -> None:
    """Rows that the index lacks are found, rows that are gone are not, and updated rows by their new vectors."""
    world.random.seed(seed)
    first = world.graph.snapshot()
    for step in ("insert", "update", "delete", "branch", "optimize", "update", "insert"):
        match step:
            case "insert":
                world.insert(30)
            case "branch":
                world.graph.create_branch("side")
                world.update("side")
                world.delete("side")
                world.check(branch="side")
            case "optimize":
                world.graph.optimize()
            case _:
                getattr(world, step)()
        world.check()
    world.check(at=first)


MATCHES = {
    "$d: Doc $d.group < 5": True,
    "$d: Doc $d about $t": True,
    "$d: Doc $d.group = 3  $d about $t": False,
    '$d: Doc $d.name = "d7"': False,
}
"""Matches, and whether they leave so many rows that the index is searched for more until there are enough."""


def test_a_pattern_applies_before_the_nearest_are_chosen(world: World) -> None:
    """Every row has its exact score, and there are as many rows as the match allows; of few rows the nearest."""
    graph, hits, asked = world.graph, 0, 0
    graph.load([{"type": "Topic", "data": {"name": "t"}}], mode="append")
    about = [{"edge": "About", "from": f"d{number}", "to": "t", "data": {}} for number in range(0, ROWS, 3)]
    graph.load(about, mode="append")
    for match, is_large in MATCHES.items():
        for column in DIMENSIONS:
            params, query = {"v": world.vector(column)}, text(column, match)
            allowed = list(graph.query(text(column, match, "limit 100000"), params).rows)
            found, exact = (list(graph.query(query, params, exact=exact).rows) for exact in (False, True))
            assert exact == allowed[:BEST]
            assert len(found) == len(exact)
            assert all(row in allowed for row in found)
            assert is_large or found == exact
            hits, asked = hits + sum(row in exact for row in found), asked + len(exact)
    assert hits >= LEAST * asked


def test_exact_can_be_asked_for(world: World, local_store: Store) -> None:
    query, params = text("wide"), {"v": world.vector("wide")}
    assert world.graph.explain(query, params).startswith(
        "Look up $d: Doc by nearest[l2]($d.wide, param $v): index wide_ivf, 12 of 20 partitions, 4 candidates"
    )
    filtered = world.graph.explain(text("wide", "$d: Doc $d.group < 5"), params)
    assert "partitions, 4 candidates for each row, in memory; exact if few of all $d" in filtered
    exact = world.graph.explain(query, params, exact=True)
    assert "Rank nearest[l2]($d.wide, param $v): exact, in memory" in exact
    always = omnigraph.open(local_store.uri, settings=Settings(read=ReadSettings(search_from=200, recall=1.0)))
    assert always.explain(query, params) == exact
    given = f'{{"v": {params["v"]}}}'
    shown = command("query", "-e", query, "--params", given, "--store", local_store.uri, "--exact", "--json")
    assert [row["name"] for row in shown.json["rows"]] == [
        row["name"] for row in world.graph.query(query, params, exact=True).rows
    ]
    plan = command("explain", "-e", query, "--params", given, "--store", local_store.uri, "--exact")
    assert "exact, in memory" in plan.out


def test_vectors_in_memory_are_searched_by_partition(world: World) -> None:
    """Once they are in partitions, which one query waits for if they are few. More are put into partitions beside
    queries, and those search the index until then."""
    query, params = text("wide"), {"v": world.vector("wide")}
    exact = world.graph.query(query, params, exact=True).rows
    assert "index wide_ivf, 12 of 20 partitions, 4 candidates for each row, in memory" in world.graph.explain(
        query, params
    )
    world.graph.query(query, params)
    assert "Rank nearest[l2]($d.wide, param $v): 19 of 19 partitions, in memory" in world.graph.explain(
        query, params
    )
    beside = Settings(read=replace(SMALL.read, partition_waiting=10))
    graph = omnigraph.open(world.graph.address, settings=beside)
    graph.query(query, params, exact=True)
    for _ in range(500):
        assert len(graph.query(query, params).rows) == len(exact)
        if "index wide_ivf" not in graph.explain(query, params):
            break
        time.sleep(0.02)
    assert "19 of 19 partitions, in memory" in graph.explain(query, params)


def test_what_takes_memory(world: World) -> None:
    """Nothing to find, more candidates than are worth looking up, and the distance to zeros, which an index that
    measures angles does not know."""
    graph, params = world.graph, {"v": world.vector("wide")}
    for rest in ("limit 0", "limit 3000", "limit 5 offset 2000"):
        assert "index wide_ivf" not in graph.explain(text("wide", rest=rest), params)
    zeros = {"v": [0.0] * 8}
    assert graph.query(text("wide"), zeros).rows == graph.query(text("wide"), zeros, exact=True).rows


def test_more_rows_than_have_vectors(world: World) -> None:
    """Rows without a vector are in no answer; if too few are left, all of them are compared."""
    graph = world.graph
    graph.load(
        [{"type": "Doc", "data": {"name": f"d{n}", "group": 0}} for n in range(3, ROWS)],
        mode="merge",
    )
    params = {"v": world.vector("wide")}
    found, exact = (graph.query(text("wide"), params, exact=exact).rows for exact in (False, True))
    assert found == exact
    assert len(found) <= 3


def test_an_index_that_cannot_be_read(world: World, local_store: Store) -> None:
    """It is as if there were none."""
    params = {"v": world.vector("wide")}
    expected = world.graph.query(text("wide"), params, exact=True).rows
    root = Path(local_store.uri.removeprefix("file://"))
    folders = [path for path in root.rglob("_indices/*") if path.is_dir()]
    assert folders
    for path in folders:
        for file in path.rglob("*.idx"):
            file.write_bytes(file.read_bytes()[:100])
    graph = omnigraph.open(local_store.uri, settings=SMALL)
    assert graph.query(text("wide"), params).rows == expected
    for path in folders:
        shutil.rmtree(path)
    graph = omnigraph.open(local_store.uri, settings=SMALL)
    assert graph.query(text("wide"), params).rows == expected


def test_more_recall_takes_more_partitions() -> None:
    shares = [probes_for(recall, 707) for recall in (0.5, 0.9, 0.95, 0.98, 0.99, 0.999)]
    assert shares == sorted(shares)
    assert shares[3] == 70
    assert (probes_for(0.98, 1), probes_for(0.98, 4), probes_for(0.0, 100)) == (1, 4, 1)


@pytest.mark.long
@pytest.mark.parametrize("dimension", [24, 64])
def test_recall_on_larger_tables(local_store: Store, dimension: int) -> None:
    """The setting is a share of the nearest ten, measured on clusters that overlap."""
    random = np.random.default_rng(1)
    centres = random.normal(size=(100, dimension))
    vectors = (centres[random.integers(0, 100, 6_000)] + random.normal(size=(6_000, dimension))).round(3)
    graph = omnigraph.init(local_store.uri, f"node Doc {{ name: String @key  v: Vector({dimension}) @index }}")
    records = ({"type": "Doc", "data": {"name": f"d{n}", "v": v.tolist()}} for n, v in enumerate(vectors))
    graph.load(list(records), mode="append")
    graph.ensure_indices()
    graph = omnigraph.open(local_store.uri, settings=SMALL)
    query = (
        f"query q($v: Vector({dimension})) {{ match {{ $d: Doc }} return {{ $d.name as name }} "
        "order { nearest($d.v, $v) } limit 10 }"
    )
    hits = 0
    for number in range(50):
        params = {"v": (vectors[number] + random.normal(size=dimension) / 2).round(3).tolist()}
        found, exact = ({row["name"] for row in graph.query(query, params, exact=e).rows} for e in (False, True))
        hits += len(found & exact)
    assert hits >= 0.98 * 500
