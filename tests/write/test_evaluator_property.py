"""The evaluator and a naive reference agree on small random graphs and changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples
from tests.write import reference
from tests.write.support import base_of, change, new_graph, put, refusal

from omnigraph.graph import Graph
from omnigraph.lang.schema.catalog import load_catalog
from omnigraph.storage.stage.lookups import PROBE_LIMIT
from omnigraph.write.delta import TableDelta

SCHEMA = """
node P { name: String @key  u: I32? @unique  f: F64? @unique  a: Bool?  b: String?  @unique(a, b) }
node Q { name: String @key }
edge Knows: P -> P @card(0..2) { @unique(src, dst) }
edge Leads: P -> Q @card(1..2) { w: I32? @unique }
"""
CATALOG = load_catalog(SCHEMA)
NAMES = ["a", "b", "c", "d"]


def _maybe(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from([None, None, *values])


def _ends(targets: list[str]) -> dict[str, st.SearchStrategy[Any]]:
    return {"src": st.sampled_from(NAMES), "dst": st.sampled_from(targets)}


COLUMNS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "node:P": {
        "u": _maybe(1, 2, 3),
        "f": _maybe(0.0, -0.0, 1.5),
        "a": _maybe(True, False),
        "b": _maybe("x", "y'"),
    },
    "node:Q": {},
    "edge:Knows": _ends(NAMES),
    "edge:Leads": {**_ends(NAMES), "w": _maybe(1, 2)},
}


@st.composite
def rows(draw: st.DrawFn, table_key: str) -> reference.Rows:
    """Some rows of a table, by id."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    columns = COLUMNS[table_key]
    made = {name: {column: draw(values) for column, values in columns.items()} for name in names}
    return {name: {"name": name, **row} if table_key.startswith("node:") else row for name, row in made.items()}


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, reference.Rows]:
    """A graph without fault: rows that would break a rule are left out, one by one, until none does."""
    graph: dict[str, reference.Rows] = {table_key: {} for table_key in COLUMNS}
    for table_key in COLUMNS:
        for name, row in draw(rows(table_key)).items():
            one = {table_key: reference.Change({name: row})}
            if not reference.complaints(CATALOG, graph, one):
                graph = reference.after(graph, one)
    return graph


@st.composite
def changes(draw: st.DrawFn) -> dict[str, reference.Change]:
    """Changes of some tables, with no care for the rules."""
    made = {}
    for table_key in draw(st.lists(st.sampled_from(list(COLUMNS)), unique=True, min_size=1)):
        upserts = draw(rows(table_key))
        replaces = draw(st.integers(0, 3)) == 0
        deletes = set() if replaces else draw(st.sets(st.sampled_from(NAMES))) - upserts.keys()
        made[table_key] = reference.Change(upserts, deletes, replaces)
    return made


def as_delta(table_key: str, one: reference.Change) -> TableDelta:
    listed = [{"id": name, **row} for name, row in one.upserts.items()]
    return change(CATALOG, table_key, listed, sorted(one.deletes), replaces=one.replaces)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return new_graph(SCHEMA)


@settings(max_examples=examples(10, of=60), deadline=None)
@given(before=graphs(), change=changes())
@pytest.mark.parametrize("limit", [PROBE_LIMIT, 1, 0])
def test_the_evaluator_says_what_the_reference_says(
    limit: int,
    before: dict[str, reference.Rows],
    change: dict[str, reference.Change],
    graph: Graph,
) -> None:
    put(graph, *(as_delta(key, reference.Change(rows, replaces=True)) for key, rows in before.items()))
    expected = reference.complaints(CATALOG, before, change)
    state = replace(base_of(graph), probe_limit=limit)
    error = refusal(state, *(as_delta(key, one) for key, one in change.items()))
    said = sorted(violation.message for violation in error.violations) if error else []
    assert (error.total if error else 0) == len(expected)
    assert said == expected if len(expected) <= 20 else set(said) <= set(expected)
