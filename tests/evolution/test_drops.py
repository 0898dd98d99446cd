"""Drops that purge: what is dropped is gone for good, and only if the caller says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evolution.cases import ADA, BOB, CITY, KNOWS, PEOPLE, node
from tests.evolution.test_apply import content

import omnigraph
from omnigraph import Graph
from omnigraph.errors import HistoryReclaimed, SharedRows

SECRET = "a secret that has to go"
WITHOUT_CITY = "node Person { name: String @key  age: I32?  born: Date? }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g.omni", f"{PEOPLE} {KNOWS}")
    graph.load(
        [node(**{**ADA, "city": SECRET}), node(**BOB), {"edge": "Knows", "from": "Ada", "to": "Bob"}],
        mode="append",
    )
    graph.ensure_indices()
    return graph


def holds_secret(graph: Graph) -> bool:
    files = [path for path in Path(graph.address).rglob("*") if path.is_file()]
    return any(SECRET.encode() in path.read_bytes() for path in files)


def test_a_soft_drop_leaves_older_states_as_they_were(graph: Graph) -> None:
    before = graph.snapshot().graph_commit_id
    graph.apply_schema(f"{WITHOUT_CITY} {KNOWS}")
    assert "city" not in content(graph)["Person"][0]
    assert content(graph, before)["Person"][0]["city"] == SECRET


def test_a_hard_drop_of_a_property_purges_its_values_everywhere(graph: Graph) -> None:
    assert holds_secret(graph)
    before, rows = graph.snapshot().graph_commit_id, content(graph)["Person"]
    done = graph.apply_schema(f"{WITHOUT_CITY} {KNOWS}", allow_data_loss=True)
    assert [str(step) for step in done.plan.steps.steps] == ["drop Person.city (hard)"]
    assert content(graph)["Person"] == [{k: v for k, v in row.items() if k != "city"} for row in rows]
    assert not holds_secret(graph)
    with pytest.raises(HistoryReclaimed):
        content(graph, before)
    graph.mutate('query q() { update Person set { age: 1 } where name = "Ada" }')
    found = graph.query("query q() { match { $p: Person $p knows $q } return { $p.age, $q.name } }")
    assert found.rows == [{"p.age": 1, "q.name": "Bob"}]


def test_a_hard_drop_of_a_type_purges_its_table(graph: Graph) -> None:
    graph.apply_schema(CITY, allow_data_loss=True)
    assert content(graph) == {"City": []}
    assert not holds_secret(graph)
    assert omnigraph.open(graph.address).schema == CITY


def test_blobs_and_vectors_are_kept_when_another_property_is_purged(tmp_path: Path) -> None:
    rows = "name: String @key  photo: Blob?  spot: Vector(2)?  tags: [String]?"
    graph = omnigraph.init(tmp_path / "g.omni", f"node A {{ {rows}  gone: String? }}")
    data = {"name": "a", "photo": "base64:AQID", "spot": [1.0, 2.0], "tags": ["x"], "gone": SECRET}
    graph.load([{"type": "A", "data": data}, {"type": "A", "data": {"name": "b"}}], mode="append")
    before = [graph.entity("A", name) for name in "ab"]
    graph.apply_schema(f"node A {{ {rows} }}", allow_data_loss=True)
    assert [graph.entity("A", name) for name in "ab"] == [
        {k: v for k, v in (row or {}).items() if k != "gone"} for row in before
    ]


def test_nothing_is_purged_that_another_branch_has(graph: Graph) -> None:
    graph.create_branch("dev")
    with pytest.raises(SharedRows, match="branch 'dev' has it too"):
        graph.apply_schema(f"{WITHOUT_CITY} {KNOWS}", allow_data_loss=True)
    assert holds_secret(graph)
    done = graph.apply_schema_to_all(f"{WITHOUT_CITY} {KNOWS}", allow_data_loss=True)
    assert [result.plan.branch for result in done] == ["main", "dev"]
    assert not holds_secret(graph)
    assert content(graph) == content(graph.branch("dev"))
