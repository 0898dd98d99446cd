"""A staged change is overtaken by another writer of this process: it is moved onto that commit, or prepared again.

Either way the outcome is the same as if the writers had come one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.recovery.racers import once
from tests.storage.threads import at_once
from tests.stores import Store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import ConstraintViolation, OmniError
from omnigraph.write.base import Base
from omnigraph.write.evaluator import Delta, validate

TYPES = """
node Person { name: String @key  age: I32?  mail: String? @unique }
node City { name: String @key  size: I32? }
edge Knows: Person -> Person
edge Leads: Person -> Person @card(0..1)
edge LivesIn: Person -> City
"""

Statement = tuple[str, Mapping[str, object]]


def city(name: str, size: int = 1) -> Statement:
    return "query q($n: String, $s: I32) { insert City { name: $n, size: $s } }", {"n": name, "s": size}


def person(name: str, mail: str | None = None) -> Statement:
    return "query q($n: String, $m: String?) { insert Person { name: $n, mail: $m } }", {"n": name, "m": mail}


def edge(kind: str, source: str, target: str) -> Statement:
    text = f"query q($a: String, $b: String) {{ insert {kind} {{ from: $a, to: $b }} }}"
    return text, {"a": source, "b": target}


def removed(kind: str, name: str) -> Statement:
    return f"query q($n: String) {{ delete {kind} where name = $n }}", {"n": name}


@pytest.fixture
def graph(local_store: Store) -> Graph:
    graph = omnigraph.init(local_store.uri, TYPES)
    for statement in (person("ada"), person("bo"), city("Bern")):
        graph.mutate(*statement)
    return graph


class Overtaken:
    """Runs a write, and another one when the first is staged; counts how often the first is prepared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._is_slow = True
        self.prepared = 0

    def run(self, graph: Graph, slow: Statement, fast: Statement) -> int:
        def counted(delta: Delta, base: Base, limit: int) -> None:
            self.prepared += self._is_slow
            validate(delta, base, limit)

        def be_faster() -> None:
            self._is_slow = False
            graph.mutate(*fast)
            self._is_slow = True

        self._monkeypatch.setattr("omnigraph.write.protocol.validate", counted)
        with failpoints.armed("write.after_stage", once(be_faster)):
            graph.mutate(*slow)
        return self.prepared


@pytest.fixture
def overtaken(monkeypatch: pytest.MonkeyPatch) -> Overtaken:
    return Overtaken(monkeypatch)


def rows(graph: Graph) -> dict[str, int]:
    return {key: pin.row_count for key, pin in graph.snapshot().tables.items()}


@pytest.mark.parametrize(
    ("slow", "fast"),
    [
        (city("Rome"), city("Oslo")),
        (city("Rome"), edge("LivesIn", "ada", "Bern")),
        (edge("LivesIn", "ada", "Bern"), city("Oslo")),
        (edge("Knows", "ada", "bo"), edge("Knows", "ada", "bo")),
    ],
)
def test_what_does_not_concern_it_is_left_below_it(
    graph: Graph, overtaken: Overtaken, slow: Statement, fast: Statement
) -> None:
    before, commits = sum(rows(graph).values()), len(list(graph.commits()))
    assert overtaken.run(graph, slow, fast) == 1
    assert sum(rows(graph).values()) == before + 2
    assert len(list(graph.commits())) == commits + 2
    assert omnigraph.open(graph.address).doctor().is_healthy


@pytest.mark.parametrize(
    ("slow", "fast"),
    [
        (city("Rome", 2), city("Rome", 1)),
        (person("cy", "c@x"), person("di", "d@x")),
        (edge("Leads", "ada", "bo"), edge("Leads", "bo", "ada")),
        (city("Rome"), removed("City", "Bern")),
    ],
)
def test_what_may_concern_it_is_looked_at_again(
    graph: Graph, overtaken: Overtaken, slow: Statement, fast: Statement
) -> None:
    assert overtaken.run(graph, slow, fast) == 2
    if fast == city("Rome", 1):
        found = graph.query('query q() { match { $c: City { name: "Rome" } } return { $c.size as size } }')
        assert [row["size"] for row in found] == [2]


@pytest.mark.parametrize(
    ("slow", "fast", "error"),
    [
        (edge("LivesIn", "ada", "Bern"), removed("City", "Bern"), "Bern"),
        (person("cy", "x@x"), person("di", "x@x"), "x@x"),
        (edge("Leads", "ada", "bo"), edge("Leads", "ada", "ada"), "max 1"),
    ],
)
def test_what_is_against_the_rules_by_now_is_refused(
    graph: Graph, overtaken: Overtaken, slow: Statement, fast: Statement, error: str
) -> None:
    with pytest.raises(ConstraintViolation, match=error):
        overtaken.run(graph, slow, fast)


def test_a_change_of_another_process_is_unknown(graph: Graph) -> None:
    other = omnigraph.open(graph.address)
    slow, text = city("Rome"), city("Oslo")

    def be_faster() -> None:
        other.mutate(*text)

    with failpoints.armed("write.after_stage", once(be_faster)):
        graph.mutate(*slow)
    assert rows(graph)["node:City"] == 3


def test_threads_that_write_together_lose_nothing(graph: Graph) -> None:
    """Each write is a commit of its own, with its own answer."""

    def write(number: int) -> list[str | None]:
        made = [graph.mutate(*city(f"{number}-{turn}")).commit for turn in range(3)]
        made.append(graph.mutate(*city("shared", number)).commit)
        return [None if commit is None else commit.graph_commit_id for commit in made]

    answers = [commit for made in at_once(write, threads=4) for commit in made]
    assert len(set(answers)) == 16
    assert {commit.graph_commit_id for commit in graph.commits()} >= set(answers)
    assert rows(graph)["node:City"] == 1 + 12 + 1


def test_a_refused_write_does_not_disturb_the_next_thread(graph: Graph) -> None:
    def write(number: int) -> bool:
        try:
            graph.mutate(*edge("Knows", "ada", "bo" if number % 2 else "nobody"))
        except OmniError:
            return False
        return True

    assert sum(at_once(write, threads=6)) == 3
    assert rows(graph)["edge:Knows"] == 3
