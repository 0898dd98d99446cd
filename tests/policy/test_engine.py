"""Every verb times every scope, in the engine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import yaml
from tests.policy.verbs import FREE, HEAVY, REFUSED, SCHEMA, VERBS, Cell, all_cells, policy_of

import omnigraph
from omnigraph import Graph, OmniError
from omnigraph.embed.mock import MockClient
from omnigraph.errors import ActorRequired, PolicyDenied
from omnigraph.policy.policy import Policy

CELLS = all_cells({name: verb.needs for name, verb in VERBS.items()})
LONG = HEAVY | {"spark", "stream"}
NUMBERS = itertools.count(1_000_000)
PEOPLE = b'{"type": "Person", "data": {"name": "ada"}}\n{"type": "Person", "data": {"name": "bob"}}\n'


def test_every_verb_has_a_row() -> None:
    """A new method of a graph fails here until its row says what a policy has to allow for it."""
    public = {name for name in dir(Graph) if not name.startswith("_")}
    assert public == VERBS.keys() | FREE


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Graph, Graph]]:
    """One graph, opened without a policy and with one."""
    place = tmp_path_factory.mktemp("policy") / "g.omni"
    with omnigraph.init(place, SCHEMA) as owner:
        owner.load(PEOPLE, mode="merge")
        owner.put_blob("Person", "ada", "photo", b"bytes")
        policy = Policy(yaml.safe_dump(policy_of(CELLS)))
        with omnigraph.open(place, policy=policy, embedder=MockClient()) as guarded:
            yield owner, guarded


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=pytest.mark.long) if verb in LONG else verb for verb in VERBS]
)
def test_verbs_are_allowed_and_denied(graphs: tuple[Graph, Graph], verb: str) -> None:
    run_cells(graphs, verb, [cell for cell in CELLS if cell.verb == verb and not is_told(cell)])


@pytest.mark.parametrize("verb", sorted(HEAVY))
def test_heavy_verbs_are_allowed_and_denied(graphs: tuple[Graph, Graph], verb: str) -> None:
    run_cells(graphs, verb, [cell for cell in CELLS if cell.verb == verb and is_told(cell)])


def is_told(cell: Cell) -> bool:
    """Is it one of the few cells of a heavy verb that are always tried?"""
    return cell.verb in HEAVY and cell.what in ("allowed", "missing", "elsewhere", "mistyped")


def run_cells(graphs: tuple[Graph, Graph], verb: str, cells: list[Cell]) -> None:
    """Try the cells of a verb, and callers without a name or with an unknown one."""
    owner, guarded = graphs
    row = VERBS[verb]
    for cell in cells:
        prepared = row.prepare(owner, cell.n)
        before = owner.snapshot().graph_commit_id
        denial = _denial(guarded.as_actor(cell.actor), cell, prepared)
        assert (denial is None) == cell.is_allowed, (cell, denial)
        if denial is not None:
            assert denial.action == cell.missing, cell
            assert owner.snapshot().graph_commit_id == before
    with pytest.raises(ActorRequired):
        row.run(guarded, 0, row.prepare(owner, next(NUMBERS)))
    with pytest.raises(PolicyDenied, match="does not know the actor 'stranger'"):
        row.run(guarded.as_actor("stranger"), 0, row.prepare(owner, next(NUMBERS)))


def _denial(graph: Graph, cell: Cell, prepared: object) -> PolicyDenied | None:
    try:
        VERBS[cell.verb].run(graph, cell.n, prepared)
    except PolicyDenied as denied:
        return denied
    except (OmniError, AttributeError):
        if cell.verb not in REFUSED:
            raise
    return None
