"""What the read side keeps in memory: within a budget, made once, shared by all who read the same tables."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from tests.write.support import new_graph

import omnigraph
from omnigraph.errors import RequestError
from omnigraph.graph import Graph
from omnigraph.read.data.adjacency import packed, stored
from omnigraph.read.data.cache import SETTING, Cache, QueryCache, default_limit
from omnigraph.read.limits import machine_memory
from omnigraph.read.values.columns import Column

SCHEMA = """
node Person { slug: String @key  age: I64?  motto: String? }
node City { name: String @key }
edge Knows: Person -> Person { since: I64 }
edge LivesIn: Person -> City
"""
PATIENCE = 60


@dataclass
class Thing:
    """Something of a certain size."""

    nbytes: int
    name: str = ""


@dataclass
class Maker:
    """Makes things, and counts them."""

    size: int = 1
    made: list[Thing] = field(default_factory=list)

    def __call__(self) -> Thing:
        self.made.append(Thing(self.size))
        return self.made[-1]


class TestBudget:
    def test_what_was_made_is_kept(self) -> None:
        cache, make = Cache(100), Maker(10)
        first = cache.get("key", make)
        assert cache.get("key", make) is first
        assert cache.find("key") is first
        assert cache.find("other") is None
        assert len(make.made) == 1
        usage = cache.usage()
        assert (usage.limit, usage.used, usage.entries, usage.hits, usage.misses) == (100, 10, 1, 2, 1)

    def test_the_least_recently_used_goes_first(self) -> None:
        cache, make = Cache(30), Maker(10)
        for key in "abc":
            cache.get(key, make)
        cache.get("a", make)
        cache.get("d", make)
        assert [key for key in "abcd" if cache.has(key)] == ["a", "c", "d"]
        assert cache.usage().used == 30

    def test_a_large_thing_makes_room_for_itself(self) -> None:
        cache = Cache(30)
        for key in "abc":
            cache.get(key, Maker(10))
        cache.get("large", Maker(25))
        assert [key for key in (*"abc", "large") if cache.has(key)] == ["large"]

    def test_what_is_larger_than_the_budget_is_used_and_not_kept(self) -> None:
        cache, large = Cache(30), Maker(31)
        cache.get("small", Maker(10))
        for _ in range(2):
            assert cache.get("large", large).nbytes == 31
        assert len(large.made) == 2
        assert not cache.has("large")
        assert cache.has("small")
        assert cache.usage().used == 10

    def test_without_a_budget_nothing_is_kept(self) -> None:
        cache, make = Cache(0), Maker(1)
        assert [cache.get("key", make).nbytes for _ in range(3)] == [1, 1, 1]
        assert (len(make.made), cache.usage().used, cache.usage().entries) == (3, 0, 0)

    def test_what_grows_is_measured_again(self) -> None:
        cache = Cache(30)
        thing, other = cache.get("key", Maker(10)), cache.get("other", Maker(10))
        thing.nbytes = 20
        cache.measure("key")
        assert cache.usage().used == 30
        other.nbytes = 15
        cache.measure("other")
        assert (cache.has("key"), cache.has("other"), cache.usage().used) == (False, True, 15)
        other.nbytes = 31
        cache.measure("other")
        assert (cache.has("other"), cache.usage().used) == (False, 0)
        cache.measure("gone")

    def test_clear_lets_go_of_everything(self) -> None:
        cache = Cache(30)
        cache.get("key", Maker(10))
        cache.clear()
        assert (cache.has("key"), cache.usage().used) == (False, 0)

    def test_asking_is_counted_and_forgotten_before_it_becomes_much(self) -> None:
        cache = Cache(1)
        assert cache.lookups("key") == 0
        cache.count_lookup("key")
        cache.count_lookup("key")
        assert cache.lookups("key") == 2
        for number in range(20_000):
            cache.count_lookup(number)
        assert len(cache._lookups) <= 10_000


class TestSizes:
    def test_a_column_counts_what_is_derived_from_it(self) -> None:
        column = Column(pa.array([f"text {i % 5}" for i in range(1000)] + [None]))
        before = column.nbytes
        assert before == column.arrow.nbytes
        assert column.valid is not None
        assert column.nbytes == before + 1001
        ranks, order = column.codes.ranks, column.order
        dictionary = column.codes.dictionary.nbytes
        assert column.nbytes == before + 1001 + 1001 * 4 + ranks.nbytes + dictionary + order.nbytes

    def test_numbers_are_copied_only_if_there_are_nulls(self) -> None:
        for values, copied in (([1, 2], 0), ([1, None], 16), ([True, False], 2)):
            column = Column(pa.array(values))
            before = column.nbytes
            assert len(column.values) == 2
            assert column.nbytes == before + copied

    def test_adjacency_counts_what_is_derived_from_it(self) -> None:
        ends = np.arange(1000, dtype=np.int32) % 100
        adjacency = stored([packed(ends, np.arange(1000, dtype=np.int32))], [ends[::-1].copy()], None, 100, 100)
        before = adjacency.nbytes
        assert before >= 101 * 8 + 1000 * 4 + 1000 * 4
        adjacency.contains(ends, ends)
        assert adjacency.nbytes >= before + 1000


class TestThreads:
    def test_one_makes_and_the_others_wait(self) -> None:
        cache, started, go_on = Cache(100), threading.Event(), threading.Event()
        made: list[Thing] = []

        def make() -> Thing:
            started.set()
            assert go_on.wait(PATIENCE)
            made.append(Thing(10))
            return made[-1]

        with ThreadPoolExecutor(8) as pool:
            first = pool.submit(cache.get, "key", make)
            assert started.wait(PATIENCE)
            others = [pool.submit(cache.get, "key", make) for _ in range(7)]
            go_on.set()
            found = [future.result(PATIENCE) for future in (first, *others)]
        assert len(made) == 1
        assert all(one is made[0] for one in found)

    def test_those_who_waited_get_it_also_if_it_is_not_kept(self) -> None:
        cache, started, go_on = Cache(5), threading.Event(), threading.Event()
        looked, make_again = threading.Event(), Maker(10)

        def make() -> Thing:
            started.set()
            assert go_on.wait(PATIENCE)
            return Thing(10, "made once")

        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(cache.get, "key", make)
            assert started.wait(PATIENCE)
            second = pool.submit(cache.get, "key", make_again, looked.set)
            assert looked.wait(PATIENCE)
            go_on.set()
            assert first.result(PATIENCE) is second.result(PATIENCE)
        assert not make_again.made

    def test_a_failure_is_raised_and_the_next_one_tries_again(self) -> None:
        cache, started, go_on = Cache(100), threading.Event(), threading.Event()
        looked = threading.Event()

        def fail() -> Thing:
            started.set()
            assert go_on.wait(PATIENCE)
            raise OSError("the disk is gone")

        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(cache.get, "key", fail)
            assert started.wait(PATIENCE)
            second = pool.submit(cache.get, "key", Maker(10), looked.set)
            assert looked.wait(PATIENCE)
            go_on.set()
            with pytest.raises(OSError, match="the disk is gone"):
                first.result(PATIENCE)
            assert second.result(PATIENCE).nbytes == 10
        assert cache.has("key")
        assert not cache._making

    def test_who_waits_may_give_up(self) -> None:
        cache, started, go_on = Cache(100), threading.Event(), threading.Event()

        def make() -> Thing:
            started.set()
            assert go_on.wait(PATIENCE)
            return Thing(10)

        def give_up() -> None:
            raise TimeoutError

        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(cache.get, "key", make)
            assert started.wait(PATIENCE)
            with pytest.raises(TimeoutError):
                cache.get("key", Maker(10), give_up)
            go_on.set()
            assert first.result(PATIENCE).nbytes == 10

    def test_different_things_are_made_at_the_same_time(self) -> None:
        cache, both = Cache(100), threading.Barrier(2, timeout=PATIENCE)

        def make() -> Thing:
            both.wait()
            return Thing(10)

        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(cache.get, key, make) for key in "ab"]
            assert [future.result(PATIENCE).nbytes for future in futures] == [10, 10]


class TestHeldByAQuery:
    def test_what_a_query_has_used_stays_with_it(self) -> None:
        cache, make = Cache(5), Maker(10)
        held = QueryCache(cache)
        assert held.get("key", make) is held.get("key", make)
        assert held.has("key")
        assert held.find("key") is make.made[0]
        assert not cache.has("key")
        held.release()
        assert not held.has("key")
        assert len(make.made) == 1

    def test_at_its_end_everything_is_measured_again(self) -> None:
        cache = Cache(100)
        held = QueryCache(cache)
        held.get("key", Maker(10)).nbytes = 60
        held.release()
        assert cache.usage().used == 60

    def test_one_query_finds_what_another_has_made(self) -> None:
        cache, make = Cache(100), Maker(10)
        first, second = QueryCache(cache), QueryCache(cache)
        assert first.get("key", make) is second.get("key", make)
        second.count_lookup("table")
        assert (first.lookups("table"), cache.lookups("table")) == (1, 1)


class TestSetting:
    def test_a_quarter_of_the_machine_unless_something_else_is_wanted(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(SETTING, raising=False)
        assert default_limit() == machine_memory() // 4
        monkeypatch.setenv(SETTING, " ")
        assert default_limit() == machine_memory() // 4
        monkeypatch.setenv(SETTING, " 123456 ")
        assert default_limit() == 123456
        assert new_graph(SCHEMA)._cache.limit == 123456
        monkeypatch.setenv(SETTING, "0")
        assert Cache().limit == 0

    @pytest.mark.parametrize("wanted", ["much", "1e9", "-1", "2 GB", "1_000", "²", "٣"])
    def test_nonsense_is_refused_by_name(self, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
        address = new_graph(SCHEMA).address
        monkeypatch.setenv(SETTING, wanted)
        with pytest.raises(RequestError) as refused:
            omnigraph.open(address)
        assert str(refused.value).startswith(f"OMNIGRAPH_CACHE_BYTES={wanted} is not a number of bytes; give one")


def people(*names: str) -> str:
    records: list[dict[str, object]] = [
        {"type": "Person", "data": {"slug": name, "age": len(name), "motto": f"I am {name}"}} for name in names
    ]
    records += [
        {"edge": "Knows", "from": a, "to": b, "data": {"since": 7}} for a in names for b in names if a != b
    ]
    records.append({"type": "City", "data": {"name": f"city of {names[0]}"}})
    records += [{"edge": "LivesIn", "from": a, "to": f"city of {names[0]}", "data": {}} for a in names]
    return "\n".join(map(json.dumps, records))


@pytest.fixture
def graph() -> Graph:
    graph = new_graph(SCHEMA)
    graph.load(people("ada", "grace", "lin"), mode="append")
    return graph


QUERIES = (
    "match { $a: Person $a knows $b  $b.age > 3 } return { $a.slug, $b.slug } order { $a.slug, $b.slug }",
    "match { $a: Person $a knows $b  $b knows $c  $c knows $a } return { count($a) as n }",
    "match { $a: Person $a knows{1,3} $b } return { $a.motto, count($b) as n } order { $a.motto }",
    'match { $a: Person search($a.motto, "ada") } return { $a.slug } order { $a.slug }',
    "match { $a: Person $a livesIn $c  not { $a knows $b  $b.age > 4 } } return { $c.name, max($a.age) as old }",
    "match { $a: Person $a $k:knows $b } return { $a.slug, sum($k.since) as n } order { $a.slug }",
)


def answers(graph: Graph) -> list[pa.Table]:
    return [graph.query(f"query q() {{ {text} }}").to_arrow() for text in QUERIES]


class TestGraphs:
    def test_a_query_builds_what_it_needs_once(self, graph: Graph) -> None:
        expected = answers(graph)
        made = graph._cache.usage().misses
        assert made > 0
        assert answers(graph) == expected
        assert graph._cache.usage().misses == made

    def test_a_new_branch_shares_everything(self, graph: Graph) -> None:
        expected, made = answers(graph), graph._cache.usage().misses
        graph.create_branch("side")
        assert answers(graph.branch("side")) == expected
        assert graph._cache.usage().misses == made

    def test_a_branch_that_goes_on_shares_the_tables_it_did_not_touch(self, graph: Graph) -> None:
        answers(graph)
        graph.create_branch("side")
        side = graph.branch("side")
        side.mutate('query m() { insert City { name: "elsewhere" } }')
        made = graph._cache.usage().misses
        knows = "query q() { match { $a: Person $a knows $b } return { $a.motto, $b.age } }"
        assert len(side.query(knows)) == 6
        assert graph._cache.usage().misses == made
        cities = "query q() { match { $c: City } return { $c.name } order { $c.name } }"
        assert [row["c.name"] for row in side.query(cities)] == ["city of ada", "elsewhere"]
        assert graph._cache.usage().misses > made
        assert len(graph.query(cities)) == 1

    def test_a_new_version_is_something_else(self, graph: Graph) -> None:
        text = "query q() { match { $a: Person } return { $a.slug } order { $a.slug } }"
        assert len(graph.query(text)) == 3
        before, used = graph.snapshot().manifest_version, graph._cache.usage().entries
        graph.mutate('query m() { insert Person { slug: "new" } }')
        assert [row["a.slug"] for row in graph.query(text)] == ["ada", "grace", "lin", "new"]
        assert graph._cache.usage().entries > used
        made = graph._cache.usage().misses
        assert [row["a.slug"] for row in graph.query(text, at=before)] == ["ada", "grace", "lin"]
        assert graph._cache.usage().misses == made

    @pytest.mark.parametrize("limit", [0, 1, 100, 700, 2_000])
    def test_a_tiny_budget_changes_no_answer(self, graph: Graph, limit: int) -> None:
        small = Graph(graph._repository, cache=Cache(limit))
        for _ in range(2):
            assert answers(small) == answers(graph)
            assert small._cache.usage().used <= limit

    def test_what_does_not_fit_is_built_once_per_query(self, graph: Graph) -> None:
        """And not once per step or piece of it."""
        small = Graph(graph._repository, cache=Cache(0))
        text = f"query q() {{ {QUERIES[1]} }}"
        small.query(text)
        once = small._cache.usage().misses
        small.query(text)
        assert small._cache.usage().misses == 2 * once
        graph.query(text)
        assert graph._cache.usage().misses == once
