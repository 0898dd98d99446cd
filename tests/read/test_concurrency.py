"""Readers in many threads see whole commits, whatever is written meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.write.support import new_graph

from omnigraph.graph import Graph
from omnigraph.read.data.cache import Cache
from omnigraph.settings import ReadSettings, Settings

SCHEMA = """
node Person { slug: String @key  round: I64  motto: String }
edge Knows: Person -> Person { round: I64 }
"""
ROUNDS = 12
PEOPLE = 20
READERS = 8
PATIENCE = 300


def state(number: int) -> list[dict[str, Any]]:
    """The graph after a round: every round replaces all people, and the ring of their friendships."""
    names = [f"p{i}" for i in range(PEOPLE)]
    people = [
        {"type": "Person", "data": {"slug": name, "round": number, "motto": f"word{number} always"}}
        for name in names
    ]
    ring = [
        {"edge": "Knows", "from": a, "to": b, "data": {"id": f"{a}-{b}", "round": number}}
        for a, b in zip(names, (*names[1:], names[0]), strict=True)
    ]
    return [*people, *ring]


QUERIES = (
    "match { $p: Person } return { count($p) as people, min($p.round) as low, max($p.round) as high }",
    "match { $p: Person $p knows $q  $q knows $r } return { count($p) as people, min($r.round) as low, "
    "max($r.round) as high }",
    "match { $p: Person $p $e:knows $q } return { count($p) as people, min($e.round) as low, "
    "max($e.round) as high }",
    "match { $p: Person $p knows{1,2} $q  $q.round = $p.round } return { count(distinct $q) as people, "
    "min($q.round) as low, max($p.round) as high }",
    "match { $p: Person not { $p knows $p } optional { $p knows $q } } return { count($q) as people, "
    "min($q.round) as low, max($q.round) as high }",
    'match { $p: Person search($p.motto, "always") } return { count($p) as people, min($p.round) as low, '
    "max($p.round) as high }",
    'match { $p: Person { slug: "p0" } $p knows $q } return { min($p.round) as low, max($q.round) as high }',
    "match { $p: Person } return { $p.round, count($p) as people } order { people desc }",
)


def is_a_state(row: dict[str, Any]) -> bool:
    """Is it what one round left, and not a mixture of two?"""
    rounds = {row[name] for name in ("low", "high", "p.round") if name in row}
    return len(rounds) == 1 and row.get("people", PEOPLE) == PEOPLE


@pytest.mark.parametrize("budget", [None, 0, 3_000], ids=["default cache", "no cache", "small cache"])
def test_every_answer_is_that_of_one_commit(budget: int | None) -> None:
    written = new_graph(SCHEMA)
    sizes = Settings(read=ReadSettings(small_table=8))
    graph = Graph(written._repository, cache=Cache(budget), settings=sizes)
    graph.load(state(0), mode="overwrite")
    done, seen = threading.Event(), list[tuple[str, list[dict[str, Any]], str | None]]()

    def write() -> None:
        try:
            for number in range(1, ROUNDS):
                graph.load(state(number), mode="overwrite" if number % 3 == 0 else "merge")
        finally:
            done.set()

    def read(number: int) -> None:
        text, last = f"query q() {{ {QUERIES[number]} }}", False
        while not last:
            last = done.is_set()
            found = graph.query(text, timeout=PATIENCE)
            seen.append((QUERIES[number], found.rows, found.graph_commit_id))

    with ThreadPoolExecutor(READERS + 1) as pool:
        futures = [pool.submit(write), *(pool.submit(read, number) for number in range(READERS))]
        for future in futures:
            future.result(PATIENCE)
    for text, rows, _ in seen:
        assert len(rows) == 1, text
        assert is_a_state(rows[0]), (text, rows)
    commits = {commit.graph_commit_id for commit in graph.commits(limit=100)}
    assert {commit for _, _, commit in seen} <= commits
    for text in QUERIES:
        answers = {commit: rows for asked, rows, commit in seen if asked == text}
        assert all(rows == answers[commit] for asked, rows, commit in seen if asked == text)
    newest = graph.query(f"query q() {{ {QUERIES[0]} }}").rows
    assert newest == [{"people": PEOPLE, "low": ROUNDS - 1, "high": ROUNDS - 1}]


def test_the_same_query_at_once_builds_everything_once() -> None:
    graph = new_graph(SCHEMA)
    graph.load(state(30), mode="append")
    text, together = f"query q() {{ {QUERIES[1]} }}", threading.Barrier(READERS, timeout=PATIENCE)

    def read() -> list[dict[str, Any]]:
        together.wait()
        return graph.query(text).rows

    with ThreadPoolExecutor(READERS) as pool:
        answers = [future.result(PATIENCE) for future in [pool.submit(read) for _ in range(READERS)]]
    assert all(rows == [{"people": PEOPLE, "low": 30, "high": 30}] for rows in answers)
    alone = Graph(graph._repository, cache=Cache())
    alone.query(text)
    assert graph._cache.usage().misses == alone._cache.usage().misses
