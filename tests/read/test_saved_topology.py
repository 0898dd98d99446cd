"""The topology that lies beside a table: queries answer the same with it, without it, and if it is damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.copies import Copies
from tests.stores import Store

import omnigraph
from omnigraph.graph import Graph
from omnigraph.read.data import topology
from omnigraph.read.plan.access import forced_access
from omnigraph.settings import ReadSettings, Settings
from omnigraph.storage import layout

SCHEMA = """
node Person { slug: String @key  age: I64 }
node City { slug: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> City
"""
QUESTIONS = (
    "match { $p: Person $p knows $q  $q.age > 3 } return { $q.slug, count($p) as n } order { $q.slug }",
    "match { $q: Person $p knows $q  $p.age > 3 } return { $q.slug, count($p) as n } order { $q.slug }",
    "match { $p: Person $p <knows> $q } return { $p.slug, count($q) as n } order { $p.slug }",
    "match { $c: City $p livesIn $c } return { $c.slug, count($p) as n } order { $c.slug }",
)
CHANGES = (
    'insert Person { slug: "new", age: 9 }',
    'insert Knows { from: "p1", to: "p5" }',
    'update Person set { age: 8 } where slug = "p3"',
    'delete Knows where from = "p2"',
    'delete Person where slug = "p4"',
)
SETTINGS = Settings(read=ReadSettings(save_from=10))


def records() -> Iterator[dict[str, Any]]:
    for number in range(20):
        yield {"type": "Person", "data": {"slug": f"p{number}", "age": number % 7}}
    yield from ({"type": "City", "data": {"slug": slug}} for slug in ("oslo", "rome"))
    for number in range(20):
        yield {"edge": "LivesIn", "from": f"p{number}", "to": "oslo" if number % 3 else "rome", "data": {}}
        for step in (1, 7, 7):
            yield {"edge": "Knows", "from": f"p{number}", "to": f"p{(number * 3 + step) % 20}", "data": {}}


def opened(graph: Graph, settings: Settings = SETTINGS) -> Graph:
    return omnigraph.open(graph.address, settings=settings)


def answers(graph: Graph) -> list[Any]:
    with forced_access("memory"):
        return [graph.query(f"query q() {{ {text} }}").rows for text in QUESTIONS]


def make(place: Path) -> None:
    made = omnigraph.init(place, SCHEMA)
    made.load(list(records()), mode="append")
    opened(made).ensure_indices()


@pytest.fixture
def graph(copies: Copies, tmp_path: Path) -> Graph:
    return opened(copies.graph(make, tmp_path / "g"))


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The topologies that were derived from all edges."""
    derived: list[object] = []
    build = topology._Build.topology

    def noted(self: topology._Build, *, edges: bool) -> topology.Topology:
        made = build(self, edges=edges)
        derived.append(made)
        return made

    monkeypatch.setattr(topology._Build, "topology", noted)
    return derived


def saved(graph: Graph) -> list[Path]:
    return sorted(Path(graph.address, layout.TOPOLOGIES).rglob("*.topology"))


def test_a_process_that_starts_derives_no_topology(graph: Graph, builds: list[object]) -> None:
    expected = answers(opened(graph, Settings()))
    assert builds
    builds.clear()
    assert answers(opened(graph)) == expected
    assert not builds


FROM_A_KEY = 'match { $p: Person { slug: "p1" } $p knows $q } return { $q.slug }'


def is_looked_up(graph: Graph, text: str) -> bool:
    return ": index" in graph.explain(f"query q() {{ {text} }}")


def test_files_of_edges_are_not_checked_for_one_look_up(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = ReadSettings(save_from=10, small_table=5, rows_per_lookup=1)
    many, few = (Settings(read=replace(sizes, edges_per_node=number)) for number in (2, 4))
    assert not is_looked_up(opened(graph, many), FROM_A_KEY)
    assert is_looked_up(opened(graph, few), FROM_A_KEY)
    assert is_looked_up(opened(graph, many), FROM_A_KEY.replace("knows", "$e:knows"))
    assert is_looked_up(opened(graph, many), FROM_A_KEY.replace("knows $q", "knows $q  not { $q livesIn $c }"))
    looking = opened(graph, many)
    with forced_access("index"):
        found = looking.query(f"query q() {{ {FROM_A_KEY} }}")
    assert is_looked_up(looking, FROM_A_KEY), "they are checked by now"
    assert found.rows == opened(graph, many).query(f"query q() {{ {FROM_A_KEY} }}").rows
    monkeypatch.setenv("OMNIGRAPH_VERIFY", "off")
    assert is_looked_up(opened(graph, many), FROM_A_KEY)


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_since_is_followed(graph: Graph, builds: list[object], change: str) -> None:
    graph.mutate(f"query m() {{ {change} }}")
    found = answers(opened(graph))
    assert not builds
    assert found == answers(opened(graph, Settings()))


def test_a_branch_follows_what_its_parent_saved(graph: Graph, builds: list[object]) -> None:
    graph.create_branch("side")
    for change in CHANGES:
        graph.mutate(f"query m() {{ {change} }}", branch="side")
    found = answers(opened(graph).branch("side"))
    assert not builds
    assert found == answers(opened(graph, Settings()).branch("side"))


def test_the_newest_takes_the_place_of_the_others(graph: Graph) -> None:
    before = saved(graph)
    assert len(before) == 2
    graph.mutate('query m() { insert Knows { from: "p1", to: "p9" } }')
    assert saved(graph) == before
    graph.optimize()
    after = saved(graph)
    assert len(after) == 2
    assert len(set(before) & set(after)) == 1
    graph.optimize()
    assert saved(graph) == after


Damage = Callable[[bytes], bytes]
DAMAGES: dict[str, Damage] = {
    "empty": lambda _: b"",
    "without most of its head": lambda content: content[:20],
    "truncated": lambda content: content[:-1],
    "too long": lambda content: content + b"\0",
    "another neighbour": lambda content: content[:-9] + b"\7" + content[-8:],
    "another description": lambda content: content[:40] + b"?" + content[41:],
    "another mark": lambda content: b"NOTOPOLO" + content[8:],
    "an absurd size": lambda content: content[:8] + b"\xff" * 8 + content[16:],
}


@pytest.mark.parametrize("damage", list(DAMAGES.values()), ids=DAMAGES)
def test_a_damaged_one_is_derived_again(
    graph: Graph, builds: list[object], damage: Callable[[bytes], bytes]
) -> None:
    expected = answers(opened(graph, Settings()))
    builds.clear()
    for path in saved(graph):
        path.write_bytes(damage(path.read_bytes()))
    assert answers(opened(graph)) == expected
    assert builds


def test_one_of_another_graph_is_derived_again(graph: Graph, builds: list[object], tmp_path: Path) -> None:
    other = omnigraph.init(str(tmp_path / "other"), SCHEMA)
    other.load([record for record in records() if record.get("from") != "p1"], mode="append")
    other = opened(other)
    other.ensure_indices()
    for path, foreign in zip(saved(graph), saved(other), strict=True):
        path.write_bytes(foreign.read_bytes())
    expected = answers(opened(graph, Settings()))
    builds.clear()
    assert answers(opened(graph)) == expected
    assert builds


def test_cleanup_removes_those_of_branches_that_are_gone(graph: Graph) -> None:
    graph.create_branch("side")
    graph.mutate('query m() { insert Knows { from: "p1", to: "p9" } }', branch="side")
    graph.ensure_indices(branch="side")
    assert len(saved(graph)) == 3
    assert graph.doctor().is_healthy
    graph.cleanup(keep=1, grace="0s", confirm=True)
    assert len(saved(graph)) == 3
    graph.delete_branch("side")
    graph.cleanup(keep=1, grace="0s", confirm=True)
    assert len(saved(graph)) == 2
    assert graph.doctor().is_healthy


def test_a_copy_does_without_and_a_moved_graph_has_it(graph: Graph, builds: list[object], tmp_path: Path) -> None:
    expected = answers(graph)
    graph.clone(tmp_path / "copy")
    assert not saved(omnigraph.open(tmp_path / "copy"))
    Path(graph.address).rename(tmp_path / "moved")
    builds.clear()
    assert answers(omnigraph.open(tmp_path / "moved", settings=SETTINGS)) == expected
    assert not builds


def test_it_is_saved_on_every_store(store: Store, builds: list[object]) -> None:
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
    graph.load(list(records()), mode="append")
    graph = omnigraph.open(store.uri, storage_options=store.options, settings=SETTINGS)
    graph.ensure_indices()
    graph.mutate(f"query m() {{ {CHANGES[0]} }}")
    expected = answers(omnigraph.open(store.uri, storage_options=store.options))
    builds.clear()
    assert answers(omnigraph.open(store.uri, storage_options=store.options, settings=SETTINGS)) == expected
    assert not builds
