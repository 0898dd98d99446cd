"""A merge by tasks finds the rows it replaces by the index on ids or by a pass, and does the same with both."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.bulk.loading import load_by_tasks, new_graph, node, write

from omnigraph.storage.stage.lookups import are_looked_up

SCHEMA = """
node Person { name: String @key
  age: I32 }
"""
ROWS = 20_000


@pytest.mark.parametrize("step", [1, 25], ids=["side by side", "spread"])
def test_rows_are_replaced_and_added(tmp_path: Path, step: int) -> None:
    """The table has rows in its index and rows behind it; the last of two records with one key counts."""
    graph = new_graph(tmp_path / "graph", SCHEMA)
    graph.load([node("Person", name=f"p{number:05}", age=0) for number in range(ROWS)], mode="append")
    graph.ensure_indices()
    graph.load([node("Person", name=f"q{number}", age=0) for number in range(3)], mode="append")
    chosen = [f"p{number:05}" for number in range(0, 400 * step, step)] + ["q1", "new"]
    twice = [node("Person", name=name, age=age) for age in (1, 2) for name in chosen]
    table = graph._repository.snapshot(graph._repository.branches.find("main")).tables["node:Person"]
    assert are_looked_up(graph._repository.tables.open(table.ref), pa.array(chosen)) == (step == 1)
    load_by_tasks(graph, write(tmp_path / "merged.jsonl", twice), mode="merge")
    counted = graph.query("query q() { match { $p: Person } return { $p.age as age, count($p) as n } }")
    assert sorted((row["age"], row["n"]) for row in counted.rows) == [
        (0, ROWS + 3 - len(chosen) + 1),
        (2, len(chosen)),
    ]
