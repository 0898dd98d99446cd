"""Two branches with random histories, which are the same for the same seed, so that two merges can be compared."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

from tests.stores import Store

import omnigraph
from omnigraph import Graph, MergePlan
from omnigraph.errors import ConstraintViolation, MergeConflicts
from omnigraph.settings import BulkSettings, Settings

SCHEMA = """
node Person {
  name: String @key  age: I32?  email: String? @unique  spot: Vector(2)?  tags: [String]?  raw: Blob?
}
edge Knows: Person -> Person @card(0..3) { since: I32? }
"""
NAMES = [f"p{number:02}" for number in range(12)]
SMALL_BUCKETS = Settings(bulk=BulkSettings(small_merge=0, merge_bucket=1 << 19, rows_per_task=3, rows_per_file=2))
"""Even the smallest change is large, and is merged in several buckets, files and pieces."""

Outcome = tuple[str, dict[str, Any], list[Any]]


def two_branches(store: Store, seed: int, settings: Settings | None = None) -> Graph:
    """A graph whose branches main and dev have changed much of the same."""
    chance = random.Random(seed)
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options, settings=settings)
    graph.load([_person(chance, name) for name in NAMES[:8]], mode="append")
    graph.load([_edge(chance, number) for number in range(3)], mode="append")
    graph.create_branch("dev")
    go_on(graph, chance, 8)
    return graph


def go_on(graph: Graph, chance: random.Random, writes: int) -> None:
    """Write to both branches."""
    for _ in range(writes):
        with suppress(ConstraintViolation):
            _write(chance, graph, chance.choice(["main", "dev"]))


def _write(chance: random.Random, graph: Graph, branch: str) -> None:
    name = chance.choice(NAMES)
    match chance.randrange(8):
        case 0:
            graph.mutate(f'query q() {{ delete Person where name = "{name}" }}', branch=branch)
        case 1:
            graph.mutate(f"query q() {{ delete Knows where since = {chance.randrange(3)} }}", branch=branch)
        case 2:
            known = graph.query("query q() { match { $p: Person } return { $p.name } }", branch=branch)
            names = sorted(row["p.name"] for row in known)
            if len(names) > 1:
                graph.load([_edge(chance, chance.randrange(8), names)], mode="merge", branch=branch)
        case 3:
            age = chance.randrange(4)
            query = f'query q() {{ update Person set {{ age: {age} }} where name = "{name}" }}'
            graph.mutate(query, branch=branch)
        case _:
            people = [_person(chance, each) for each in chance.sample(NAMES, 3)]
            graph.load(people, mode="merge", branch=branch)


def _person(chance: random.Random, name: str) -> dict[str, Any]:
    values: dict[str, Any] = {
        "age": chance.choice([None, 0, 1]),
        "email": chance.choice([None, None, f"{name}@x", f"{name}@x", f"{chance.choice(NAMES)}@y{name}"]),
        "spot": chance.choice([None, [0, 1], [1, 0]]),
        "tags": chance.choice([None, [], ["a", "b"]]),
        "raw": chance.choice([None, "base64:", "base64:AAEC"]),
    }
    return {"type": "Person", "data": {"name": name, **values}}


def _edge(chance: random.Random, number: int, names: list[str] | None = None) -> dict[str, Any]:
    one, other = chance.sample(names or NAMES[:8], 2)
    data = {"id": f"k{number}", "since": chance.randrange(3)}
    return {"edge": "Knows", "from": one, "to": other, "data": data}


def outcome_of(graph: Graph, source: str = "dev", into: str = "main", **options: Any) -> Outcome:
    """How a merge ends: its outcome, the changes it makes, its conflicts with all they show."""
    try:
        done = graph.merge(source, into, **options)
    except MergeConflicts as error:
        return "conflicts", {}, list(error.conflicts)
    assert done.commit is None or (done.commit.kind, len(done.commit.parents)) == ("merge", 2)
    return _of(done.plan)


def preview_of(graph: Graph, **options: Any) -> Outcome:
    """The same of a preview."""
    plan = graph.preview_merge("dev", **options)
    return ("conflicts", {}, list(plan.conflicts)) if plan.conflicts else _of(plan)


def _of(plan: MergePlan) -> Outcome:
    return plan.outcome.value, {key: dict(counts) for key, counts in plan.changes.items()}, []
