"""An index changes the time an answer takes, nothing else: odd values, nulls, vectors, also after later writes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.maintenance.looks import ensure, ids, indexed, plan, reasons, table
from tests.stores import Store
from tests.write.support import change, new_graph, put

import omnigraph
from omnigraph import Graph
from omnigraph.maintenance.index_plan import VECTOR_ROWS
from omnigraph.write.delta import TableDelta

ODD = "node:Odd"
SCHEMA = """
node Odd {
  s: String? @unique
  e: enum(a, b)? @index
  i: I32? @index
  l: I64? @index
  u: U32? @index
  w: U64? @index
  f: F32? @index
  d: F64? @index
  b: Bool? @index
  day: Date? @index
  at: DateTime? @index
  none: I32? @index
  words: String? @index
}
"""
UTC = dt.UTC
VALUES: dict[str, list[Any]] = {
    "s": ["", "it's", "Ünïcode 🙂", "a%b", "x" * 5_000, '"`'],
    "e": ["a", "b"],
    "i": [0, -(2**31), 2**31 - 1],
    "l": [0, -(2**63), 2**63 - 1],
    "u": [0, 2**32 - 1],
    "w": [0, 2**63, 2**64 - 1],
    "f": [0.0, -0.0, 0.1, 3.4e38, -1e-45],
    "d": [0.0, -0.0, 0.1, 1.7e308, -5e-324],
    "b": [True, False],
    "day": [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)],
    "at": [
        dt.datetime(1, 1, 1, tzinfo=UTC),
        dt.datetime(1970, 1, 1, tzinfo=UTC),
        dt.datetime(9999, 12, 31, tzinfo=UTC),
    ],
}
FILTERS = [
    "s = 'it''s'",
    "s = ''",
    "s like 'a%'",
    "s > 'a'",
    "s in ('Ünïcode 🙂', 'nothing')",
    "e = 'a'",
    "e != 'a'",
    "i < 0",
    "i = 2147483647",
    "not (i = 0)",
    "l >= 9223372036854775807",
    "u > 4294967294",
    "w > 9223372036854775807",
    "f = 0.0",
    "f < 0.0",
    "f >= 0.0",
    "d = 0.0",
    "d <= -0.0",
    "d = 0.1",
    "b",
    "not b",
    "b is null",
    "day < date '1970-01-01'",
    "day is not null",
    "at > arrow_cast(0, 'Timestamp(Millisecond, Some(\"UTC\"))')",
    "at <= arrow_cast(0, 'Timestamp(Millisecond, Some(\"UTC\"))')",
    "none is null",
    "none = 1",
    "i = 0 and (e = 'a' or d > 1.0)",
    "i is null and l is null",
]


def odd_rows() -> Iterator[dict[str, Any]]:
    """One row per value, and one without any."""
    yield {"id": "nothing"}
    for column, values in VALUES.items():
        for number, value in enumerate(values):
            yield {"id": f"{column}{number}", column: value}


def answers(graph: Graph) -> dict[str, list[str]]:
    return {where: ids(graph, ODD, where) for where in FILTERS}


def write(graph: Graph, rows: Sequence[dict[str, Any]], deletes: Sequence[str] = ()) -> None:
    put(graph, change(graph.catalog, ODD, rows, deletes))


def test_answers_are_the_same_with_and_without() -> None:
    """Before and after writes that the indexes do not know of, and after they are built again."""
    plain, fast = new_graph(SCHEMA), new_graph(SCHEMA)
    for graph in (plain, fast):
        write(graph, [*odd_rows()])
    assert ensure(fast).commit is not None
    assert all("ScalarIndexQuery" in plan(fast, ODD, where) for where in ("s = ''", "w > 1", "at is null", "b"))
    assert answers(fast) == answers(plain)
    changed: list[dict[str, Any]] = [
        {"id": "i0", "i": -5, "e": "a", "d": 2.0},
        {"id": "l0"},
        {"id": "f1", "f": 7.0},
        {"id": "more", "i": 0},
    ]
    for graph in (plain, fast):
        write(graph, changed, ["u0", "nothing", "d1"])
    assert answers(fast) == answers(plain)
    assert {b.name for b in ensure(fast).built} > {"i_btree", "none_btree"}
    assert answers(fast) == answers(plain)
    assert ensure(fast).commit is None


@pytest.mark.parametrize("rows", [1, 2, 4097])
def test_columns_without_any_value_can_be_indexed(rows: int) -> None:
    graph = new_graph(SCHEMA)
    write(graph, [{"id": f"n{number}"} for number in range(rows)])
    ensure(graph)
    assert set(indexed(graph, ODD).values()) == {rows}
    assert len(ids(graph, ODD, "none is null")) == rows
    write(graph, [{"id": "first", "none": 1, "words": "hello"}])
    assert ids(graph, ODD, "none = 1") == ["first"]


def test_vectors_are_indexed_when_there_are_many(local_store: Store) -> None:
    """The nearest are found by the index, among them those that were written since; nulls are not counted."""
    schema = "node Doc { text: String?  place: Vector(8)? @index  meaning: Vector(8)? @embed(text) @index }"
    graph = omnigraph.init(local_store.uri, schema)
    vectors = np.random.default_rng(7).normal(size=(VECTOR_ROWS, 8)).astype(np.float32)
    vectors[9] = 0
    full = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8)
    rows = {
        "id": [f"d{n}" for n in range(VECTOR_ROWS)],
        "meaning": full,
        "place": pa.array([None, *full.to_pylist()[1:]], full.type),
        "text": pa.nulls(VECTOR_ROWS, pa.string()),
    }
    put(graph, TableDelta("node:Doc", pa.table(rows), fresh=True))
    report = ensure(graph)
    assert {b.name for b in report.built} == {"id_btree", "meaning_ivf"}
    few = f"{VECTOR_ROWS - 1} rows; exact search is fast enough below {VECTOR_ROWS}"
    assert reasons(report) == {"node:Doc": {few}}
    assert ensure(graph).commit is None
    assert nearest(graph, vectors[5]) == ["d5"]
    moved = [
        {"id": "d5", "meaning": (-vectors[5]).tolist()},
        {"id": "d6"},
        {"id": "new", "meaning": vectors[5].tolist()},
    ]
    put(graph, change(graph.catalog, "node:Doc", moved))
    assert nearest(graph, vectors[5]) == ["new"]
    assert nearest(graph, -vectors[5]) == ["d5"]
    assert nearest(graph, vectors[6]) != ["d6"]


def nearest(graph: Graph, vector: np.ndarray[Any, np.dtype[np.float32]]) -> list[str]:
    wanted = {"column": "meaning", "q": vector, "k": 1, "metric": "cosine", "refine_factor": 10}
    scanner = table(graph, "node:Doc").scanner(columns=["id", "_distance"], nearest=wanted)
    assert "ANNSubIndex: name=meaning_ivf, k=10, deltas=1, metric=Cosine" in scanner.explain_plan()
    found: list[str] = scanner.to_table()["id"].to_pylist()
    return found
