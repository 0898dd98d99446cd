"""The difference of two states as a DataFrame: what `Graph.diff` finds, computed by workers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.bulk.merge.histories import SMALL_BUCKETS, two_branches
from tests.stores import Store

from omnigraph.errors import BranchNotFound, InvalidArgument
from omnigraph.graph import Graph
from omnigraph.read.result.cells import json_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Branches main and dev, which differ in people and edges, in several buckets."""
    return two_branches(Store(f"{tmp_path_factory.mktemp('diff')}/g.omni"), 5, SMALL_BUCKETS)


def test_all_types_as_json(graph: Graph, spark: SparkSession) -> None:
    rows = graph.spark(spark, branch="dev").diff("main").collect()
    found = [
        {
            "op": row.op,
            "table_key": row.table_key,
            "id": row.id,
            "changed": list(row.changed),
            "before": None if row.before is None else json.loads(row.before),
            "after": None if row.after is None else json.loads(row.after),
        }
        for row in rows
    ]
    expected = graph.diff("main", "dev").as_json()["changes"]
    assert {each["table_key"] for each in expected} == {"node:Person", "edge:Knows"}
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_one_type_has_typed_columns(graph: Graph, spark: SparkSession) -> None:
    seen = graph.spark(spark)
    frame = seen.diff("main", "dev", types=["Person"])
    assert frame.select("after.age", "after.spot", "before.raw").dtypes == [
        ("age", "int"),
        ("spot", "array<float>"),
        ("raw", "binary"),
    ]
    expected = {change.id: change for change in graph.diff("main", "dev", types=["Person"])}
    rows = frame.collect()
    assert {row.id for row in rows} == expected.keys()
    for row in rows:
        change = expected[row.id]
        assert (row.op, tuple(row.changed)) == (change.op.value, change.changed)
        for image, wanted in ((row.before, change.before), (row.after, change.after)):
            assert (image is None) == (wanted is None)
            if image is not None and wanted is not None:
                shown = {name: bytes(v) if isinstance(v, bytearray) else v for name, v in image.asDict().items()}
                assert {name: json_value(value) for name, value in shown.items()} == {
                    name: json_value(value) for name, value in wanted.items()
                }


def test_filters_and_states(graph: Graph, spark: SparkSession) -> None:
    seen = graph.spark(spark)
    first = graph.commits()[-1].graph_commit_id
    inserted = seen.diff(first, "dev", kinds=["node"], ops=["insert"])
    assert inserted.count() == len(graph.diff(first, "dev", kinds=["node"], ops=["insert"])) > 0
    assert seen.diff(seen.snapshot).count() == 0
    assert seen.diff(first, first).columns == ["op", "table_key", "id", "changed", "before", "after"]
    with pytest.raises(BranchNotFound, match="'nope'"):
        seen.diff("nope")
    with pytest.raises(InvalidArgument, match="there is no 'remove'"):
        seen.diff("main", "dev", ops=["remove"])  # type: ignore[list-item]
