"""A change of the schema that is killed anywhere: one schema or the other, never a mixture."""

from __future__ import annotations

import pytest
from tests.evolution.cases import ADA, BOB, KNOWS, PEOPLE, node
from tests.evolution.test_apply import content
from tests.processes import see_killed
from tests.recovery.test_windows import ALREADY_VISIBLE, DONE, OUTCOMES, ROLLED_FORWARD
from tests.sampling import sampled
from tests.stores import Store

import omnigraph
from omnigraph import Graph

AFTER = """
node Human @rename_from("Person") { name: String @key  years: I64? @rename_from(age)  mail: String  born: Date? }
edge Knows: Human -> Human { since: I64? }
node City { name: String @key }
"""
BEFORE = f"{PEOPLE} {KNOWS}"
CHANGED = {
    "City": [],
    "Human": [
        {"born": "1815-12-10", "mail": "none", "name": "Ada", "years": 36},
        {"born": None, "mail": "none", "name": "Bob", "years": None},
    ],
    "Knows": [{"since": 7}],
}
MORE = {"schema.after_store": False, "schema.after_table": False}
"""Windows of a change of the schema before anything of it can be seen."""


def begun(store: Store) -> Graph:
    graph = omnigraph.init(store.uri, BEFORE, storage_options=store.options)
    edge = {"edge": "Knows", "from": "Ada", "to": "Bob", "data": {"since": 7}}
    graph.load([node(**ADA), node(**BOB), edge], mode="append")
    return graph


def apply(store: Store) -> None:
    graph = omnigraph.open(store.uri, storage_options=store.options)
    graph.apply_schema(AFTER, fill={"Human.mail": "none"})


@pytest.mark.parametrize("window", [*MORE, *sampled(OUTCOMES, 5)])
def test_a_change_of_the_schema(window: str, local_store: Store) -> None:
    check(window, local_store)


@pytest.mark.parametrize("window", ["schema.after_table", "write.after_tables", "write.between_tables"])
def test_a_change_of_the_schema_on_any_store(window: str, shared_store: Store) -> None:
    check(window, shared_store)


def check(window: str, store: Store) -> None:
    old = content(begun(store))
    see_killed(window, apply, store)
    reader = omnigraph.open(store.uri, read_only=True, storage_options=store.options)
    seen = CHANGED if window in ALREADY_VISIBLE else old
    assert content(reader) == seen
    again = omnigraph.open(store.uri, storage_options=store.options)
    is_done = OUTCOMES.get(window) in (DONE, ROLLED_FORWARD)
    assert content(again) == (CHANGED if is_done else old)
    assert again.schema == (AFTER if is_done else BEFORE)
    again.apply_schema(AFTER, fill={} if is_done else {"Human.mail": "none"})
    assert content(again) == CHANGED
    again.load([{"type": "Human", "data": {"name": "Eve", "mail": "e"}}], mode="append")
    again.load([{"type": "City", "data": {"name": "Rome"}}], mode="append")
    again.load([{"edge": "Knows", "from": "Eve", "to": "Ada"}], mode="append")
