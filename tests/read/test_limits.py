"""A query that takes too much is stopped wherever it is, says what it took, and leaves everything as it was."""

from __future__ import annotations

import json
import pickle
import threading
import tracemalloc
from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.write.support import new_graph

import omnigraph
from omnigraph.errors import QueryCancelled, QueryMemoryExceeded, QueryStopped, QueryTimeout
from omnigraph.graph import Graph
from omnigraph.lang.query.compile import compile_read
from omnigraph.read.limits import Cancellation, Limits, machine_memory
from omnigraph.read.text.index import TextIndex
from omnigraph.settings import ReadSettings, Settings

SCHEMA = """
node Person { slug: String @key  age: I64  motto: String }
edge Knows: Person -> Person { since: I64 }
"""
PEOPLE = 300
FRIENDS = 4
PATIENCE = 120
"""Seconds after which a thread counts as stuck. No test waits for them."""


def crowd(people: int) -> Graph:
    """Everybody knows four others, so that three hops reach many and ten reach everybody in countless ways."""
    graph = new_graph(SCHEMA)
    records: list[dict[str, object]] = [
        {
            "type": "Person",
            "data": {"slug": f"p{i}", "age": i * 37 % 101, "motto": f"word{i % 7} and word{i % 11}"},
        }
        for i in range(people)
    ]
    records += [
        {"edge": "Knows", "from": f"p{i}", "to": f"p{(i * 7 + j * 13 + 1) % people}", "data": {"since": i}}
        for i in range(people)
        for j in range(FRIENDS)
    ]
    graph.load("\n".join(map(json.dumps, records)), mode="append")
    return graph


@pytest.fixture(scope="module")
def graph() -> Graph:
    return crowd(PEOPLE)


def query(match: str, returns: str = "count($a) as n") -> str:
    return f"query endless() {{ match {{ {match} }} return {{ {returns} }} }}"


ENDLESS = {
    "a cross product": query(
        "$a: Person $b: Person $c: Person $d: Person $e: Person "
        "$a.age < $b.age  $b.age < $c.age  $c.age < $d.age  $d.age < $e.age  $e.age < $a.age"
    ),
    "chains of hops": query(
        "$a: Person $a knows{1,6} $b  $b knows{1,6} $c  $c knows{1,6} $d  $d knows{1,6} $e  $e.age < $a.age"
    ),
    "a chain back to where it began": query(
        "$a: Person $b: Person $c: Person $d: Person $a knows{2,6} $b  $b knows{2,6} $c  $c knows{2,6} $d  "
        "$d knows{2,6} $a  $a.age < $c.age"
    ),
    "hops that are seen": query(
        " ".join(f"$a{i} knows $a{i + 1}" for i in range(19))
        + " ".join(f" $a{i}.age <= $a{19 - i}.age" for i in range(10)),
        "count($a0) as n",
    ),
    "edges": query(
        " ".join(f"$a{i} $e{i}:knows $a{i + 1}" for i in range(20))
        + " ".join(f" $e{i}.since <= $e{19 - i}.since" for i in range(10)),
        "count($a0) as n",
    ),
    "a negation": query(
        "$a: Person $b: Person $c: Person not { $d: Person $e: Person $d.age > $a.age  $e.age < $b.age  "
        "$e.age > $d.age  $d.age > $c.age }"
    ),
    "an optional block": query(
        "$a: Person $b: Person $c: Person optional { $d: Person $e: Person $d.age > $a.age  $e.age < $d.age }",
        "$a.age, count($e) as n",
    ),
}
"""Matches that would take longer than anybody waits, though nobody asks for more than a few numbers."""


class Noticed(Cancellation):
    """A switch that says when a query has looked at it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        self.seen.set()
        return super().is_cancelled


class AtTheNthLook(Cancellation):
    """A switch that is thrown when a query looks at it for the n-th time."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.left = looks

    @property
    def is_cancelled(self) -> bool:
        self.left -= 1
        return self.left < 0


def still_answers(graph: Graph) -> bool:
    return graph.query(query('$a: Person { slug: "p1" }'), timeout=PATIENCE).rows == [{"n": 1}]


class TestTime:
    @pytest.mark.parametrize("kind", ENDLESS)
    def test_a_query_that_takes_too_long_is_stopped(self, graph: Graph, kind: str) -> None:
        """On a busy machine the shortest time may be over before the first step is."""
        for limit in (0.2, 2.0, 20.0):
            with pytest.raises(QueryTimeout) as stopped:
                graph.query(ENDLESS[kind], timeout=limit)
            error = stopped.value
            assert (error.query, error.limit) == ("endless", limit)
            assert error.elapsed > error.limit
            if error.rows:
                break
        assert error.rows > 0
        assert still_answers(graph)

    def test_the_error_tells_people_and_programs(self, graph: Graph) -> None:
        with pytest.raises(QueryTimeout) as stopped:
            graph.query(ENDLESS["a cross product"], timeout=0.05)
        error = stopped.value
        assert str(error).startswith("query 'endless' was stopped after ")
        assert f"its limit is 0.05 s; its largest step had {error.rows:,} rows; add conditions" in str(error)
        assert error.as_json()["resource_limit"] == {
            "resource": "seconds",
            "limit": 0.05,
            "actual": error.elapsed,
            "rows": error.rows,
        }

    def test_a_query_that_is_quick_enough_is_not(self, graph: Graph) -> None:
        found = graph.query(query("$a: Person $a knows $b"), timeout=PATIENCE)
        assert found.rows == [{"n": PEOPLE * FRIENDS}]

    def test_no_time_at_all(self, graph: Graph) -> None:
        with pytest.raises(QueryTimeout):
            graph.query(query("$a: Person"), timeout=0)


class TestCancellation:
    @pytest.mark.parametrize("kind", ENDLESS)
    def test_another_thread_stops_a_running_query(self, graph: Graph, kind: str) -> None:
        switch, outcome = Noticed(), list[QueryStopped]()

        def run() -> None:
            try:
                graph.query(ENDLESS[kind], cancellation=switch)
            except QueryStopped as error:
                outcome.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        assert switch.seen.wait(PATIENCE)
        switch.cancel()
        thread.join(PATIENCE)
        [error] = outcome
        assert isinstance(error, QueryCancelled)
        assert error.query == "endless"
        assert str(error).startswith("query 'endless' was cancelled after ")
        assert error.as_json() == {"error": str(error), "elapsed": error.elapsed, "rows": error.rows}
        assert still_answers(graph)

    def test_one_switch_stops_all_queries_it_was_given_to(self, graph: Graph) -> None:
        switch = omnigraph.Cancellation()
        assert graph.query(query("$a: Person"), cancellation=switch).rows == [{"n": PEOPLE}]
        switch.cancel()
        assert switch.is_cancelled
        for _ in range(2):
            with pytest.raises(QueryCancelled):
                graph.query(query("$a: Person"), cancellation=switch)

    def test_wherever_a_query_is_stopped_the_next_one_is_right(self) -> None:
        """Also while it reads columns and builds adjacency or a text index, for which others may be waiting."""
        graph = with_settings(crowd(40), ReadSettings(piece_rows=100, scan_rows=16))
        text = query(
            '$a: Person search($a.motto, "word3")  $a knows $b  $a.age < $b.age', "$b.slug, count($a) as n"
        )
        expected = graph.query(text).to_arrow().sort_by("b.slug")
        stops = 0
        for looks in range(1, 1000):
            graph._cache.clear()
            try:
                graph.query(text, cancellation=AtTheNthLook(looks))
                break
            except QueryCancelled:
                stops += 1
            assert graph.query(text).to_arrow().sort_by("b.slug") == expected
        assert stops > 10


class TestMemory:
    REPEATED = query(" ".join(f"$a{i} knows $a{i + 1}" for i in range(10)), "$a0.slug")
    """Three hundred people, each with four to the power of ten paths: three hundred million equal rows."""

    def test_a_query_that_would_need_too_much_is_stopped_before_it_takes_it(self, graph: Graph) -> None:
        still_answers(graph)
        tracemalloc.start()
        try:
            with pytest.raises(QueryMemoryExceeded) as stopped:
                graph.query(self.REPEATED, memory_limit=10_000_000)
            taken = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        error = stopped.value
        assert (error.query, error.limit) == ("endless", 10_000_000)
        assert error.rows == PEOPLE * FRIENDS**10
        assert error.wanted > error.rows
        assert taken < error.limit
        assert still_answers(graph)

    def test_the_error_tells_people_and_programs(self, graph: Graph) -> None:
        with pytest.raises(QueryMemoryExceeded) as stopped:
            graph.query(self.REPEATED, memory_limit=10_000_000)
        error = stopped.value
        assert f"needs {error.wanted:,} bytes of memory for 314,572,800 rows" in str(error)
        assert "its limit is 10,000,000; add conditions" in str(error)
        assert error.as_json()["resource_limit"] == {
            "resource": "bytes",
            "limit": 10_000_000,
            "actual": error.wanted,
            "rows": 314_572_800,
        }

    def test_without_a_limit_the_machine_is_the_limit(self, graph: Graph) -> None:
        twenty = " ".join(f"$a{i} knows $a{i + 1}" for i in range(20))
        with pytest.raises(QueryMemoryExceeded) as stopped:
            graph.query(query(twenty, "$a0.slug"))
        assert stopped.value.limit == machine_memory()

    @pytest.mark.parametrize(
        "text",
        [
            query("$a: Person $a knows{1,9} $b  $b.age < $a.age"),
            query("$a: Person $a knows $b  $b knows $c  $a.age < $c.age"),
            query("$a: Person $b: Person  $a.age < $b.age"),
            query("$a: Person $a knows{1,9} $b", "$a.slug, $b.slug"),
        ],
    )
    def test_every_way_to_grow_is_announced(self, graph: Graph, text: str) -> None:
        with pytest.raises(QueryMemoryExceeded):
            graph.query(text, memory_limit=20_000)

    def test_a_result_counts_as_long_as_the_query_runs(self, graph: Graph) -> None:
        """Each piece is small, all of them together are not."""
        graph = with_settings(graph, ReadSettings(piece_rows=1_000))
        text = query("$a: Person $b: Person", "$a.slug, $b.slug")
        with pytest.raises(QueryMemoryExceeded):
            graph.query(text, memory_limit=PEOPLE * PEOPLE * 8 - 1)
        assert len(graph.query(text, memory_limit=PEOPLE * PEOPLE * 100)) == PEOPLE * PEOPLE

    def test_a_query_that_needs_little_gets_it(self, graph: Graph) -> None:
        few = 'query few() { match { $a: Person { slug: "p1" } $a knows $b } return { $b.slug } }'
        assert len(graph.query(few, memory_limit=100_000)) == FRIENDS


GROWING = {
    "crossed": "$a: Person $b: Person  $a.age < $b.age",
    "crossed twice": "$a: Person $b: Person $c: Person { age: 5 }  $a.age < $b.age  $b.age < $c.age",
    "hops": "$a: Person $a knows $b  $b knows $c  $c knows $d  $a.age < $d.age",
    "edges": "$a: Person $a $e:knows $b  $b $f:knows $c  $e.since < $f.since",
    "edges back": "$a: Person $b: Person $a knows{1,4} $b  $b $e:knows $a  $e.since > 5",
    "a chain": "$a: Person $a knows{1,3} $b  $b.age < $a.age",
    "a chain behind hops": "$a: Person $a knows $b  $b knows{2,4} $c  $a.age < $c.age",
    "a chain back": "$a: Person $a knows $b  $b knows{1,3} $a",
    "a triangle": "$a: Person $a knows $b  $b knows $c  $a knows $c  $a.age < $c.age",
    "not": "$a: Person not { $b: Person $b.age > $a.age  $b.age < 90 }",
    "optional": "$a: Person optional { $b: Person $b.age > $a.age }",
    "a chain that is optional": "$a: Person optional { $a knows{1,3} $b  $b.age > $a.age }",
}


class TestEachStepIsBounded:
    """However many rows there are on the way, only so many are in memory at a time."""

    PIECE = 500

    @pytest.mark.parametrize("kind", GROWING)
    def test_in_pieces(self, kind: str, graph: Graph) -> None:
        text = query(GROWING[kind], "$a.age, count($a) as n")
        expected, before = measured(graph, text)
        small = ReadSettings(piece_rows=self.PIECE, hop_entries=self.PIECE)
        answer, limits = measured(with_settings(graph, small), text)
        assert answer == expected
        assert limits.rows <= 2 * self.PIECE
        assert limits.rows < before.rows


def with_settings(graph: Graph, settings: ReadSettings) -> Graph:
    """The same graph, with other sizes."""
    return Graph(graph._repository, settings=Settings(read=settings))


def measured(graph: Graph, text: str) -> tuple[pa.Table, Limits]:
    """The answer to a query, sorted, and what it took."""
    compiled = compile_read(text, graph.catalog)
    limits = Limits(compiled.name)
    table, _ = graph._reader.run(compiled, None, graph.snapshot(), limits)
    return table.sort_by(table.column_names[0]), limits


def test_a_text_index_can_be_stopped_while_it_is_built() -> None:
    small = ReadSettings(text_bytes=16, text_words=4)
    texts = pa.array([f"word{i} in text number{i}" for i in range(50)])
    looks = 0

    def check() -> None:
        nonlocal looks
        looks += 1

    assert len(TextIndex(texts, check, small)) == 50
    assert looks > 50

    with pytest.raises(QueryCancelled):
        TextIndex(texts, Limits("q", cancellation=AtTheNthLook(20)).check, small)


class TestErrors:
    @pytest.mark.parametrize(
        "stop",
        [
            lambda graph: graph.query(ENDLESS["a cross product"], timeout=0),
            lambda graph: graph.query(TestMemory.REPEATED, memory_limit=1),
            lambda graph: graph.query(query("$a: Person"), cancellation=AtTheNthLook(0)),
            lambda graph: graph.query(
                query(" ".join(f"$a{i} knows $a{i + 1}" for i in range(40)), "count($a0) as n")
            ),
        ],
        ids=["timeout", "memory", "cancelled", "overflow"],
    )
    def test_they_cross_processes(self, graph: Graph, stop: Callable[[Graph], object]) -> None:
        with pytest.raises(QueryStopped) as stopped:
            stop(graph)
        error = stopped.value
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.as_json()) == (type(error), str(error), error.as_json())
        assert json.loads(json.dumps(error.as_json()))["error"] == str(error)
