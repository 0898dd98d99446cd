"""Edges with a key, through everything that takes an edge for the same edge by its id."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.bulk.loading import edge, load_by_tasks, node
from tests.maintenance.patients import slip_in

import omnigraph
from omnigraph.errors import RecordError
from omnigraph.graph import Graph

SCHEMA = """
node Airport { code: String @key }
edge Route: Airport -> Airport { km: I32?  fee: I32?  @key(src, dst) }
edge Note: Airport -> Airport { text: String? }
"""
AIRPORTS = [node("Airport", code=code) for code in ("OSL", "BGO", "TRD")]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = omnigraph.init(tmp_path / "g.omni", SCHEMA)
    made.load([*AIRPORTS, edge("Route", "OSL", "BGO", km=323)], mode="append")
    return made


def exported(graph: Graph, branch: str = "main") -> list[Any]:
    sink = io.BytesIO()
    graph.export(sink, branch=branch, types=["Route"], ordered=True)
    return [json.loads(line) for line in sink.getvalue().splitlines()]


def routes(graph: Graph, branch: str = "main") -> dict[tuple[str, str], Any]:
    found = exported(graph, branch)
    return {(row["from"], row["to"]): {k: v for k, v in row["data"].items() if k != "id"} for row in found}


def test_a_merge_says_how_many_edges_it_added_without_an_identity(graph: Graph) -> None:
    records = [edge("Route", "OSL", "BGO"), edge("Note", "OSL", "BGO"), edge("Note", "OSL", "BGO", id="n1")]
    for _ in range(2):
        done = graph.load(records, mode="merge")
        assert done.edges_without_identity == 1
        assert done.as_json()["edges_without_identity"] == 1
    assert graph.load(records[:2], mode="overwrite").edges_without_identity == 0


def test_a_column_of_edges_is_keyed_as_a_record_is(graph: Graph, tmp_path: Path) -> None:
    rows = pa.table({"from": ["OSL", "BGO"], "to": ["BGO", 'T"D'], "km": pa.array([1, 2], pa.int32())})
    pq.write_table(rows, tmp_path / "routes.parquet")
    graph.load([node("Airport", code='T"D')], mode="append")
    load_by_tasks(graph, edges={"Route": tmp_path / "routes.parquet"}, mode="merge")
    assert [row["data"]["id"] for row in exported(graph)] == ['["BGO","T\\"D"]', '["OSL","BGO"]']
    wrong = rows.append_column("id", pa.array([None, "r1"]))
    pq.write_table(wrong, tmp_path / "routes.parquet")
    with pytest.raises(RecordError, match="'r1' is not the id its key gives"):
        load_by_tasks(graph, edges={"Route": tmp_path / "routes.parquet"}, mode="merge")


def test_branches_that_change_one_edge_are_merged_by_property(graph: Graph) -> None:
    graph.create_branch("dev")
    graph.mutate('query m() { update Route set { fee: 9 } where from = "OSL" }', branch="dev")
    graph.load([edge("Route", "OSL", "TRD", km=363)], mode="merge", branch="dev")
    graph.mutate('query m() { update Route set { km: 324 } where from = "OSL" }')
    graph.load([edge("Route", "OSL", "TRD", km=363)], mode="merge")
    graph.merge("dev")
    assert routes(graph) == {("OSL", "BGO"): {"km": 324, "fee": 9}, ("OSL", "TRD"): {"km": 363}}


def test_branches_that_both_add_an_edge_conflict_if_they_differ(graph: Graph) -> None:
    graph.create_branch("dev")
    graph.load([edge("Route", "TRD", "OSL", km=1)], mode="merge", branch="dev")
    graph.load([edge("Route", "TRD", "OSL", km=2)], mode="merge")
    with pytest.raises(omnigraph.errors.MergeConflicts) as raised:
        graph.merge("dev")
    assert [(c.kind.value, c.id) for c in raised.value.conflicts] == [("divergent_insert", '["TRD","OSL"]')]


def test_an_export_is_loaded_into_the_same_edges(graph: Graph, tmp_path: Path) -> None:
    graph.export(tmp_path / "all.jsonl")
    other = omnigraph.init(tmp_path / "other.omni", graph.schema_source())
    for mode in ("append", "merge", "overwrite"):
        other.load(tmp_path / "all.jsonl", mode=mode)
        assert exported(other) == exported(graph)


def test_the_doctor_knows_which_id_an_edge_has(graph: Graph) -> None:
    assert graph.doctor().findings == ()
    slip_in(graph, "edge:Route", {"id": "r1", "src": "TRD", "dst": "OSL"})
    (found,) = graph.doctor(checks=["rules"]).findings
    assert (found.code, found.table_key) == ("key_mismatch", "edge:Route")
    assert found.message == "Route 'r1' has not the id that its key gives"
