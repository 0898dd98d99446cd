"""Writers that meet: who wins, who tries again, who is told, and that no rule of the schema breaks on the way."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from tests.processes import children, start_together
from tests.recovery.racers import ADD, claim, errors, insert_many, meeting, once, together
from tests.recovery.scenes import (
    BEGINNING,
    KNOWS,
    LIVES_IN,
    PERSON,
    WRITES,
    assert_settled,
    contents,
    found_city,
    new_graph,
)
from tests.stores import Store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import ConstraintViolation, ManifestConflict, OmniError, PreconditionFailed

AGE = 'query grow($age: I32) { update Person set { age: $age } where name = "Ada" }'
LEAVE = 'query leave() { delete Person where name = "Bo" }'
MEET = 'query meet() { insert Knows { from: "Ada", to: "Bo" } }'


def test_of_two_updates_one_succeeds_and_one_is_told(local_store: Store) -> None:
    """Both have prepared their change before either commits."""
    graph = new_graph(local_store)
    before = graph.snapshot().tables[PERSON].table_version
    with failpoints.armed("write.after_stage", meeting(2)):
        results = together(lambda age: graph.mutate(AGE, {"age": age}), [1, 2])
    (conflict,) = errors(results)
    assert isinstance(conflict, ManifestConflict)
    assert (conflict.table_key, conflict.expected, conflict.actual) == (PERSON, before, before + 1)
    winner = 1 if results[1] is conflict else 2
    assert contents(graph)[PERSON] == [("Ada", winner), ("Bo", 7)]
    assert_settled(graph)


@pytest.mark.parametrize("name", ["overwrite", "delete"])
def test_what_depends_on_what_was_there_is_told_too(local_store: Store, name: str) -> None:
    graph = new_graph(local_store)
    interloper = omnigraph.open(local_store.uri)
    interfere = once(lambda: interloper.mutate(AGE, {"age": 50}))
    with failpoints.armed("write.after_stage", interfere), pytest.raises(ManifestConflict):
        WRITES[name].run(graph, "main")
    assert contents(graph)[PERSON] == [("Ada", 50), ("Bo", 7)]
    WRITES[name].run(graph, "main")
    assert_settled(graph)


def test_writes_of_other_tables_do_not_disturb_an_update(local_store: Store) -> None:
    graph = new_graph(local_store)
    interfere = once(lambda: found_city(omnigraph.open(local_store.uri), "main"))
    with failpoints.armed("write.after_stage", interfere):
        graph.mutate(AGE, {"age": 50})
    assert contents(graph)[PERSON] == [("Ada", 50), ("Bo", 7)]
    assert contents(graph)["node:City"] == [("Paris",), ("Rome",)]


@pytest.mark.parametrize("branch", ["main", "dev"])
def test_inserts_by_eight_threads_all_succeed(local_store: Store, branch: str) -> None:
    """On a branch that nobody has written to, all of them want to fork the same tables."""
    graph = new_graph(local_store)
    names = [f"p{number}" for number in range(8)]
    with failpoints.armed("write.after_stage", meeting(8)):
        results = together(lambda name: graph.mutate(ADD, {"n": name}, branch=branch), names)
    assert errors(results) == []
    assert len({result.commit.graph_commit_id for result in results}) == 8
    found = contents(graph, branch)
    assert found[PERSON] == sorted([*BEGINNING[PERSON], *((name, None) for name in names)])
    assert found[KNOWS] == sorted([*BEGINNING[KNOWS], *((name, "Ada") for name in names)])
    assert_settled(graph)


@pytest.mark.parametrize("branch", ["main", "dev"])
def test_inserts_by_four_processes_all_succeed(local_store: Store, branch: str) -> None:
    graph = new_graph(local_store)
    with children(*((insert_many, local_store, f"c{number}-", 4, branch) for number in range(4))) as started:
        start_together(started)
        for child in started:
            child.join()
    found = contents(graph, branch)
    assert len(found[PERSON]) == 2 + 16
    assert len(found[KNOWS]) == 2 + 16
    parents = [commit.parents for commit in graph.commits(branch)]
    assert len(set(parents)) == len(parents) == 2 + 16
    assert_settled(graph)


@pytest.mark.long
def test_no_insert_starves_among_many_writers(local_store: Store) -> None:
    """Eight processes want the same table all the time; whoever lost twice takes the lock before it prepares."""
    graph = new_graph(local_store)
    with children(*((insert_many, local_store, f"c{number}-", 15, "main") for number in range(8))) as started:
        start_together(started)
        for child in started:
            child.join()
    assert len(contents(graph, "main")[PERSON]) == 2 + 8 * 15
    assert_settled(graph)


def first_write(branch: str, writer: tuple[int, Graph]) -> object:
    number, graph = writer
    return graph.mutate(ADD, {"n": f"p{number}"}, branch=branch)


def test_first_writes_of_a_branch_by_threads_with_handles_of_their_own(local_store: Store) -> None:
    """A fork is made once: nobody removes what another has just made."""
    graph = new_graph(local_store)
    handles = [omnigraph.open(local_store.uri) for _ in range(4)]
    for number in range(6):
        graph.create_branch(f"b{number}")
        results = together(partial(first_write, f"b{number}"), [*enumerate(handles)])
        assert errors(results) == []
        assert len(contents(graph, f"b{number}")[PERSON]) == 2 + 4
    assert_settled(graph)


def test_a_key_inserted_by_two_writers_is_one_row(local_store: Store) -> None:
    graph = new_graph(local_store)
    with failpoints.armed("write.after_stage", meeting(2)):
        together(lambda name: graph.mutate(ADD, {"n": name}), ["Cy", "Cy"])
    assert [row for row in contents(graph)[PERSON] if row[0] == "Cy"] == [("Cy", None)]
    assert_settled(graph)


@pytest.mark.parametrize("first", [LEAVE, MEET])
def test_no_edge_is_left_without_its_ends(local_store: Store, first: str) -> None:
    """A node is deleted while an edge to it is inserted: whoever comes second notices."""
    graph = new_graph(local_store)
    second = MEET if first is LEAVE else LEAVE
    other = omnigraph.open(local_store.uri)
    interfere = once(lambda: other.mutate(first))
    with failpoints.armed("write.after_stage", interfere), pytest.raises((ConstraintViolation, ManifestConflict)):
        graph.mutate(second)
    found = contents(graph)
    people = {name for name, _ in found[PERSON]}
    assert {end for edge in (*found[KNOWS], *found[LIVES_IN]) for end in edge} <= people | {"Paris"}
    assert_settled(graph)


RULES = """
node Person { name: String @key  email: String? @unique }
edge Owns: Person -> Person @card(0..1)
"""


def mutate_with(graph: Graph, text: str, name: str) -> object:
    return graph.mutate(text, {"n": name})


def test_unique_values_and_cardinalities_hold_in_a_race(local_store: Store) -> None:
    graph = omnigraph.init(local_store.uri, RULES)
    graph.load([{"type": "Person", "data": {"name": name}} for name in ("Ada", "Bo")], mode="append")
    claim_email = 'query claim($n: String) { insert Person { name: $n, email: "a@b.c" } }'
    own = 'query own($n: String) { insert Owns { from: "Ada", to: $n } }'
    for text, names in ((claim_email, ["x", "y", "z"]), (own, ["Ada", "Bo", "Ada"])):
        with failpoints.armed("write.after_stage", meeting(3)):
            results = together(partial(mutate_with, graph, text), names)
        assert sum(isinstance(result, ConstraintViolation) for result in results) == 2
    counts = {key: pin.row_count for key, pin in graph.snapshot().tables.items()}
    assert counts == {PERSON: 3, "edge:Owns": 1}
    assert_settled(graph)


def test_writers_of_different_branches_never_conflict(local_store: Store) -> None:
    graph = new_graph(local_store)
    branches = ["main", "dev", *(graph.create_branch(f"b{number}").name for number in range(2))]
    with failpoints.armed("write.after_stage", meeting(4)):
        results = together(partial(WRITES["overwrite"].run, graph), branches)
    assert errors(results) == []
    for branch in branches:
        assert contents(graph, branch) == WRITES["overwrite"].effect(BEGINNING)
    assert_settled(graph)


class TestCompareAndSwap:
    def test_one_of_many_threads_wins(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        seen = graph.commits()[0].graph_commit_id
        with failpoints.armed("write.after_stage", meeting(6)):
            results = together(lambda n: graph.mutate(ADD, {"n": f"p{n}"}, if_commit=seen), range(6))
        losers = errors(results)
        assert [type(loser) for loser in losers] == [PreconditionFailed] * 5
        (winner,) = [result for result in results if not isinstance(result, OmniError)]
        assert graph.commits()[0] == winner.commit
        assert len(contents(graph)[PERSON]) == 3

    def test_one_of_three_processes_wins(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        seen = graph.commits()[0].graph_commit_id
        with children(*((claim, local_store, f"p{number}", seen) for number in range(3))) as started:
            start_together(started)
            answers = Counter(child.hear() for child in started)
        assert answers == {"done": 1, "PreconditionFailed": 2}
        assert len(contents(graph)[PERSON]) == 3
