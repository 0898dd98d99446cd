"""The topology that a load leaves behind: queries after it answer the same, and derive nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.bulk.loading import edge, load_by_tasks, node, small_slices, write

import omnigraph
from omnigraph.bulk.load import topology as left
from omnigraph.bulk.load.checking import known
from omnigraph.errors import StorageUnavailable
from omnigraph.graph import Graph
from omnigraph.read.data import topology
from omnigraph.read.plan.access import forced_access
from omnigraph.settings import ReadSettings, Settings
from omnigraph.storage import layout
from omnigraph.storage.rows.pieces import Piece

SCHEMA = """
node Person { name: String @key }
node City { name: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> City
"""
QUESTIONS = (
    "match { $p: Person $p knows $q } return { $p.name, $q.name } order { $p.name, $q.name }",
    "match { $q: Person $p knows $q } return { $q.name, count($p) as n } order { $q.name }",
    "match { $c: City $p livesIn $c } return { $c.name, count($p) as n } order { $c.name }",
)
SETTINGS = Settings(read=ReadSettings(save_from=5), bulk=small_slices(400, rows_per_file=7, topology_from=5))
PEOPLE = [node("Person", name=f"p{number}") for number in range(30)]
CITIES = [node("City", name=name) for name in ("Oslo", "Roma")]
MORE = [node("Person", name=f"q{number}") for number in range(10)]


def knows(names: list[str], count: int = 80) -> list[Any]:
    chosen = random.Random(3)
    return [edge("Knows", chosen.choice(names), chosen.choice(names)) for _ in range(count)]


LIVES = [edge("LivesIn", f"p{number}", ("Oslo", "Roma")[number % 2]) for number in range(30)]
KNOWS = knows([f"p{number}" for number in range(30)])
MIXED = knows([f"{letter}{number}" for letter in "pq" for number in range(10)])


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "g", SCHEMA, settings=SETTINGS)


@pytest.fixture
def load(graph: Graph, tmp_path: Path) -> Callable[..., None]:
    def loaded(*records: list[Any], mode: str = "append", **options: Any) -> None:
        file = write(tmp_path / "data.jsonl", [record for some in records for record in some])
        load_by_tasks(graph, file, mode=mode, **options)

    return loaded


@pytest.fixture(autouse=True)
def no_lookups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few ids are indexed as many are, and the ends of edges are kept in several files."""
    monkeypatch.setattr(known, "_FEW", 0)
    monkeypatch.setattr(left, "_KEPT_AT_A_TIME", 10)


def answers(graph: Graph, settings: Settings = SETTINGS, branch: str = "main") -> list[Any]:
    again = omnigraph.open(graph.address, settings=settings).branch(branch)
    with forced_access("memory"):
        return [again.query(f"query q() {{ {text} }}").rows for text in QUESTIONS]


def derived(graph: Graph, monkeypatch: pytest.MonkeyPatch, branch: str = "main") -> int:
    """How many topologies a process that starts has to derive. Its answers are compared with those of one that
    derives all of them."""
    expected = answers(graph, Settings(), branch)
    made = []
    build = topology._Build.topology

    def noted(self: topology._Build, *, edges: bool) -> topology.Topology:
        made.append(self)
        return build(self, edges=edges)

    with monkeypatch.context() as patched:
        patched.setattr(topology._Build, "topology", noted)
        assert answers(graph, branch=branch) == expected
    return len(made)


Load = Callable[..., None]


def test_a_first_load_leaves_its_topology(graph: Graph, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    load(KNOWS, PEOPLE, LIVES, CITIES)
    assert derived(graph, monkeypatch) == 0
    assert not list(Path(graph.address, layout.JOBS).iterdir())


def test_edges_of_nodes_that_were_there(graph: Graph, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    load(PEOPLE, CITIES)
    load(KNOWS, LIVES)
    assert derived(graph, monkeypatch) == 0


@pytest.mark.parametrize(("few", "missing"), [(0, 0), (4, 0), (6, 0), (10_000, 2)])
def test_edges_between_old_and_new_nodes(
    few: int, missing: int, graph: Graph, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids of old nodes may be in any file, and wait for those of other files until there are enough of them."""
    monkeypatch.setattr(known, "_FEW", few)
    load(PEOPLE, CITIES)
    load(MIXED, MORE, LIVES, mode="merge")
    assert derived(graph, monkeypatch) == missing


def test_ends_that_are_gone_are_left_to_queries(graph: Graph, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if somebody had cleaned the folder of the job."""
    checked = left._checked_pieces

    def after_loss(task: left._TopologyTask, table_key: str) -> tuple[Piece, ...] | None:
        Path(graph.address, task.ends[-1].key).unlink(missing_ok=True)
        return checked(task, table_key)

    monkeypatch.setattr(left, "_checked_pieces", after_loss)
    load(KNOWS, PEOPLE, LIVES, CITIES)
    assert derived(graph, monkeypatch) == 2


def test_tables_that_are_overwritten(graph: Graph, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    load(KNOWS, PEOPLE, LIVES, CITIES)
    load(MIXED, PEOPLE, MORE, LIVES, mode="overwrite")
    assert derived(graph, monkeypatch) == 0


def test_a_branch_that_is_forked_for_the_load(graph: Graph, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    load(PEOPLE, CITIES)
    load(KNOWS, LIVES, branch="side", from_="main")
    assert derived(graph, monkeypatch, "side") == 0
    assert derived(graph, monkeypatch) == 2


def test_tables_with_deleted_or_replaced_rows_are_left_to_queries(
    graph: Graph, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are then not where their files and the checks have them."""
    load(PEOPLE, CITIES)
    graph.mutate('query m() { insert Person { name: "x" } }')
    graph.mutate('query m() { delete Person where name = "x" }')
    graph.mutate('query m() { delete Person where name = "p29" }')
    load(knows([f"p{number}" for number in range(20)]))
    load(LIVES[:20], CITIES, mode="merge")
    assert derived(graph, monkeypatch) == 2


def test_more_edges_are_followed(graph: Graph, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    load(KNOWS, PEOPLE, LIVES, CITIES)
    load(MIXED[:4], MORE)
    assert derived(graph, monkeypatch) == 0


def test_a_store_that_refuses_it_does_not_fail_the_load(
    graph: Graph, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> bool:
        raise StorageUnavailable("the store", "full")

    monkeypatch.setattr("omnigraph.bulk.load.topology.save", refuse)
    load(KNOWS, PEOPLE, LIVES, CITIES)
    assert derived(graph, monkeypatch) == 2
