"""Indexes of several segments find what a scan finds, whatever was written, compacted and indexed in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from lance import LanceDataset
from tests.sampling import sampled
from tests.stores import Store

from omnigraph.storage.stage.changes import Staged, stage_append, stage_changes
from omnigraph.storage.stage.compaction import next_fragment_id, plan_compaction, stage_compaction
from omnigraph.storage.stage.indexes import (
    ExistingIndex,
    IndexSpec,
    Segment,
    SegmentBuild,
    build_segments,
    existing_indexes,
    plan_catch_up,
    plan_index,
    stage_segments,
)
from omnigraph.storage.tables import TableRef, Tables

LOCATION = "nodes/places"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("size", pa.int64()),
        pa.field("place", pa.list_(pa.float32(), 2)),
        pa.field("code", pa.list_(pa.float32(), 8)),
    ]
)
SPECS = (
    IndexSpec("id", "BTREE", "by_id"),
    IndexSpec("size", "BTREE", "by_size"),
    IndexSpec("place", "IVF_FLAT", "places", {"num_partitions": 1, "metric": "l2"}),
    IndexSpec("code", "IVF_RQ", "codes", {"num_partitions": 1, "metric": "l2"}),
)
SIZES, NEAREST = 12, 5


@dataclass(frozen=True, slots=True)
class Row:
    size: int
    place: tuple[float, float]


@dataclass
class World:
    """A table, the branch and version that the next change is made on, and what it should hold."""

    tables: Tables
    chance: random.Random
    ref: TableRef
    rows: dict[str, Row] = field(default_factory=dict)
    made: int = 0

    @property
    def handle(self) -> LanceDataset:
        found = self.tables.dataset(LOCATION, self.ref.branch, self.ref.version)
        assert found is not None
        return found

    def commit(self, staged: Staged) -> None:
        self.ref = self.tables.commit_staged(staged)

    def table_of(self, names: list[str]) -> pa.Table:
        for name in names:
            place = (float(self.chance.randrange(40)), float(self.chance.randrange(40)))
            self.rows[name] = Row(self.chance.randrange(SIZES), place)
        listed = [(name, self.rows[name]) for name in names]
        columns: list[list[Any]] = [
            names,
            [row.size for _, row in listed],
            [list(row.place) for _, row in listed],
            [list(code_of(row.place)) for _, row in listed],
        ]
        return pa.table(columns, schema=SCHEMA)

    def insert(self) -> None:
        count = self.chance.choice((1, 3, 20))
        names = [f"n{self.made + number}" for number in range(count)]
        self.made += count
        self.commit(stage_append(self.handle, LOCATION, self.ref.branch, self.table_of(names), "test"))

    def update(self) -> None:
        self.change(self.table_of(self.some()), [])

    def delete(self) -> None:
        gone = self.some()
        for name in gone:
            del self.rows[name]
        self.change(SCHEMA.empty_table(), gone)

    def change(self, upserts: pa.Table, gone: list[str]) -> None:
        ids = pa.array(gone, pa.string())
        self.commit(stage_changes(self.handle, LOCATION, self.ref.branch, upserts, ids, "test").staged)

    def some(self) -> list[str]:
        return self.chance.sample(sorted(self.rows), min(len(self.rows), self.chance.choice((1, 4, 15))))

    def compact(self) -> None:
        plan = plan_compaction(self.handle, self.chance.choice((30, 60, 1_000)))
        if plan.groups:
            self.commit(stage_compaction(plan, LOCATION, self.ref.branch, "test").staged)

    def catch_up(self) -> None:
        builds = list(missing(self.handle))
        if builds and self.rows:
            built = build_segments(self.handle, builds)
            self.commit(stage_segments(self.handle, LOCATION, self.ref.branch, built, "test"))
            assert {index.rows for index in existing_indexes(self.handle)} == {len(self.rows)}

    def fork(self) -> None:
        depth = 0 if self.ref.branch is None else self.ref.branch.count("x") + 1
        if depth < 3:
            self.ref = self.tables.fork(self.ref, "x" * (depth + 1))

    def check(self) -> None:
        """What each index finds, besides the rows that it does not know."""
        handle, rows, chance = self.handle, self.rows, self.chance
        assert sorted(handle.to_table(["id"])["id"].to_pylist()) == sorted(rows)
        size, number = chance.randrange(SIZES), chance.randrange(self.made + 1)
        assert found(handle, filter=f"size = {size}") == sorted(n for n in rows if rows[n].size == size)
        assert found(handle, filter=f"size != {size}") == sorted(n for n in rows if rows[n].size != size)
        assert found(handle, filter=f"id = 'n{number}'") == sorted({f"n{number}"} & rows.keys())
        here = (float(chance.randrange(40)), float(chance.randrange(40)))
        near = found(handle, nearest={"column": "place", "q": list(here), "k": NEAREST, "nprobes": 1})
        distances = sorted(distance(rows[name].place, here) for name in rows)[:NEAREST]
        assert sorted(distance(rows[name].place, here) for name in near) == distances
        near = found(handle, nearest={"column": "code", "q": list(code_of(here)), "k": 4 * NEAREST, "nprobes": 1})
        assert sorted(distance(rows[name].place, here) for name in set(near))[:NEAREST] == distances


def code_of(place: tuple[float, float]) -> tuple[float, ...]:
    """A place among eight dimensions, which an index knows by a few bits for each."""
    return place * 4


def missing(handle: LanceDataset) -> Iterator[SegmentBuild]:
    known: dict[str, ExistingIndex] = {index.name: index for index in existing_indexes(handle)}
    for spec in SPECS:
        index = known.get(spec.name)
        yield from plan_index(handle, spec) if index is None else plan_catch_up(handle, spec, index.segments)


def found(handle: LanceDataset, **search: Any) -> list[str]:
    columns = ["id", *(["_distance"] if "nearest" in search else [])]
    return sorted(handle.scanner(columns=columns, **search).to_table()["id"].to_pylist())


def distance(one: tuple[float, float], other: tuple[float, float]) -> float:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


STEPS = {
    World.insert: 3,
    World.update: 3,
    World.delete: 2,
    World.compact: 2,
    World.catch_up: 3,
    World.fork: 1,
}


@pytest.mark.parametrize(("seed", "tier"), sampled(((n, tier) for n in range(8) for tier in (4, 0.5)), 2))
def test_answers_are_those_of_a_scan(
    local_store: Store, monkeypatch: pytest.MonkeyPatch, seed: int, tier: float
) -> None:
    """Random changes, compactions, branches of branches and catching up, with few segments and with many."""
    monkeypatch.setattr("omnigraph.storage.stage.indexes.TIER", tier)
    tables = local_store.tables()
    world = World(tables, random.Random(seed), tables.create(LOCATION, SCHEMA))
    for _ in range(40):
        step = world.chance.choices(list(STEPS), list(STEPS.values()))[0]
        step(world)
        world.check()


def segments(handle: LanceDataset, name: str) -> list[int]:
    """The rows of each segment of an index, small ones first."""
    (index,) = [index for index in existing_indexes(handle) if index.name == name]
    return sorted(segment.rows for segment in index.segments)


@pytest.fixture
def world(local_store: Store) -> World:
    tables = local_store.tables()
    return World(tables, random.Random(1), tables.create(LOCATION, SCHEMA))


def add(world: World, count: int) -> None:
    names = [f"n{world.made + number}" for number in range(count)]
    world.made += count
    world.commit(stage_append(world.handle, LOCATION, None, world.table_of(names), "test"))


def test_new_rows_get_a_segment_and_small_segments_are_built_again_with_them(world: World) -> None:
    add(world, 1_000)
    world.catch_up()
    for rows, expected in (
        (10, [10, 1_000]),
        (10, [20, 1_000]),
        (2, [2, 20, 1_000]),
        (1, [3, 20, 1_000]),
        (3, [26, 1_000]),
        (230, [1_256]),
    ):
        add(world, rows)
        world.catch_up()
        assert {name: segments(world.handle, name) for name in ("by_id", "codes", "places")} == dict.fromkeys(
            ("by_id", "codes", "places"), expected
        ), rows


def test_large_tables_have_segments_of_bounded_size(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.storage.stage.indexes.SEGMENT_ROWS", 100)
    for _ in range(6):
        add(world, 40)
    world.catch_up()
    assert segments(world.handle, "codes") == segments(world.handle, "by_id") == [80, 80, 80]
    add(world, 90)
    world.catch_up()
    assert segments(world.handle, "by_id") == [80, 80, 80, 90]
    world.check()


def test_only_some_fragments(world: World) -> None:
    """A writer can index what it has put together, and leave the rest."""
    for _ in range(3):
        add(world, 10)
    spec = SPECS[0]
    assert [build.fragments for build in plan_catch_up(world.handle, spec, [], among=[1, 2, 9])] == [(1, 2)]
    known = [Segment("s", frozenset({1}), 10, 2)]
    assert plan_catch_up(world.handle, spec, known, among=[1]) == []


class TestCompaction:
    """The new fragments of a compaction are numbered as Lance would number them, before it changes any index."""

    def test_numbers_are_not_used_again(self, world: World) -> None:
        assert next_fragment_id(world.handle) == 0
        add(world, 3)
        add(world, 3)
        assert next_fragment_id(world.handle) == 2
        world.change(SCHEMA.empty_table(), ["n3", "n4", "n5"])
        assert [fragment.fragment_id for fragment in world.handle.get_fragments()] == [0]
        assert next_fragment_id(world.handle) == 2

    def test_indexes_of_vectors_keep_the_rows(self, world: World) -> None:
        """And no index claims rows of other fragments."""
        add(world, 300)
        world.catch_up()
        for _ in range(3):
            add(world, 4)
        world.catch_up()
        add(world, 1)
        staged = stage_compaction(plan_compaction(world.handle, 100), LOCATION, None, "test")
        assert (staged.fragments_removed, staged.fragments_added) == (3, 1)
        world.commit(staged.staged)
        assert [fragment.fragment_id for fragment in world.handle.get_fragments()] == [0, 4, 5]
        assert segments(world.handle, "codes") == segments(world.handle, "places") == [12, 300]
        assert segments(world.handle, "by_id") == [0, 300]
        world.check()
