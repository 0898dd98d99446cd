"""The words that lie beside a table: searches answer the same with them, without them, and if they are damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.copies import Copies
from tests.read.test_saved_topology import DAMAGES
from tests.stores import Store

import omnigraph
from omnigraph.graph import Graph
from omnigraph.read.data import rows
from omnigraph.read.text.postings import Postings
from omnigraph.settings import ReadSettings, Settings
from omnigraph.storage import layout
from omnigraph.storage.rows.pieces import physical_rows

SCHEMA = "node Doc { slug: String @key  kind: enum(a, b) @index  title: String? @index  body: String? }"
TOPICS = ("engines that weave", "weaving patterns", "café engines", "an analytical engine", "of the looms")
QUESTIONS = (
    'match { $d: Doc } return { $d.slug as slug, bm25($d.title, "weaving engine") as score } order { $d.slug }',
    'match { $d: Doc  search($d.title, "loom pattern") } return { $d.slug } order { $d.slug }',
    'match { $d: Doc  fuzzy($d.title, "enginee", 1) } return { $d.slug } order { $d.slug }',
)
CHANGES = (
    'insert Doc { slug: "new", kind: "a", title: "engines of engines" }',
    'update Doc set { title: "looms" } where slug = "d3"',
    'update Doc set { body: "nothing else" } where slug = "d5"',
    'delete Doc where slug = "d4"',
)
SETTINGS = Settings(read=ReadSettings(save_texts_from=10))


def records(skip: int = -1) -> Iterator[dict[str, Any]]:
    for number in range(40):
        title = None if number % 11 == 7 else f"{TOPICS[number % 5]} {TOPICS[number % 3]} word{number}"
        if number != skip:
            yield {"type": "Doc", "data": {"slug": f"d{number}", "kind": "b", "title": title}}


def made(place: Path, skip: int = -1) -> Graph:
    graph = omnigraph.init(str(place), SCHEMA)
    every = list(records(skip))
    graph.load(every[:15], mode="append")
    graph.load(every[15:], mode="append")
    graph = opened(graph)
    graph.ensure_indices()
    return graph


def opened(graph: Graph, settings: Settings = SETTINGS) -> Graph:
    return omnigraph.open(graph.address, settings=settings)


def answers(graph: Graph) -> list[Any]:
    return [graph.query(f"query q() {{ {text} }}").rows for text in QUESTIONS]


@pytest.fixture
def graph(copies: Copies, tmp_path: Path) -> Graph:
    return opened(copies.graph(made, tmp_path / "g"))


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts were cut into words, each time that queries did."""
    counts: list[int] = []
    make = Postings.of

    def noted(column: Any, *stopped: Any, **named: Any) -> Postings:
        if stopped:  # a query can be stopped, saving cannot
            counts.append(len(column))
        return make(column, *stopped, **named)

    monkeypatch.setattr(Postings, "of", noted)
    return counts


def saved(graph: Graph) -> list[Path]:
    return sorted(Path(graph.address, layout.POSTINGS).rglob("*.postings"))


def test_a_process_that_starts_cuts_up_no_text(graph: Graph, cut: list[int]) -> None:
    expected = answers(opened(graph, Settings()))
    assert cut == [40]
    cut.clear()
    assert answers(opened(graph)) == expected
    assert not cut


def test_only_texts_with_an_index_are_saved(graph: Graph) -> None:
    assert len(saved(graph)) == 1


@pytest.mark.parametrize("change", CHANGES)
def test_only_new_rows_are_cut_up(graph: Graph, cut: list[int], change: str) -> None:
    graph.mutate(f"query m() {{ {change} }}")
    found = answers(opened(graph))
    assert sum(cut) <= 1
    assert found == answers(opened(graph, Settings()))


FIRST = (
    "match { $d: Doc } return { $d.slug as slug, $d.kind as kind, $d.body as body } "
    'order { bm25($d.title, "weaving engine") } limit 4'
)


@pytest.mark.parametrize("change", ["", *CHANGES])
def test_only_the_best_rows_of_a_large_table_are_fetched(
    graph: Graph, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first search of a process reads no column; one that is asked often reads them after all."""
    query = f"query q() {{ {FIRST} }}"
    if change:
        graph.mutate(f"query m() {{ {change} }}")
    expected = opened(graph, Settings()).query(query).rows
    assert len(expected) == 4
    read: list[str] = []

    def noted(tables: Any, ref: Any, pieces: Any, columns: Any) -> Any:
        read.extend(columns)
        return physical_rows(tables, ref, pieces, columns)

    monkeypatch.setattr(rows, "physical_rows", noted)
    large = opened(graph, Settings(read=replace(SETTINGS.read, small_table=5, rows_per_lookup=10)))
    assert large.query(query).rows == expected
    assert set(read) <= {"title"}  # of the row that is new
    for _ in range(5):
        assert large.query(query).rows == expected
    assert {"slug", "kind", "body"} <= set(read)


def test_a_branch_follows_what_its_parent_saved(graph: Graph, cut: list[int]) -> None:
    graph.create_branch("side")
    for change in CHANGES:
        graph.mutate(f"query m() {{ {change} }}", branch="side")
    found = answers(opened(graph).branch("side"))
    assert sum(cut) <= len(CHANGES)
    assert found == answers(opened(graph, Settings()).branch("side"))


def test_words_of_rows_that_are_gone_are_left_out(graph: Graph, cut: list[int]) -> None:
    for number in range(15):
        graph.mutate(f'query m() {{ delete Doc where slug = "d{number}" }}')
    found = answers(opened(graph))
    assert not cut
    assert found == answers(opened(graph, Settings()))


def test_the_newest_take_the_place_of_the_others(graph: Graph, cut: list[int]) -> None:
    before = saved(graph)
    graph.mutate(f"query m() {{ {CHANGES[0]} }}")
    graph.ensure_indices()
    assert saved(graph) == before, "one row in forty is not worth it"
    graph.load(
        [{"type": "Doc", "data": {"slug": f"x{n}", "kind": "a", "title": "loom"}} for n in range(9)], mode="append"
    )
    graph.maintain()
    after = saved(graph)
    assert len(after) == 1
    assert after != before
    cut.clear()
    found = answers(opened(graph))
    assert not cut
    assert found == answers(opened(graph, Settings()))


@pytest.mark.parametrize("damage", list(DAMAGES.values()), ids=DAMAGES)
def test_damaged_ones_are_made_again(graph: Graph, cut: list[int], damage: Callable[[bytes], bytes]) -> None:
    expected = answers(opened(graph, Settings()))
    cut.clear()
    for path in saved(graph):
        path.write_bytes(damage(path.read_bytes()))
    assert answers(opened(graph)) == expected
    assert cut == [40]


def test_those_of_another_graph_are_made_again(graph: Graph, cut: list[int], tmp_path: Path) -> None:
    other = made(tmp_path / "other", skip=3)
    for path, foreign in zip(saved(graph), saved(other), strict=True):
        path.write_bytes(foreign.read_bytes())
    expected = answers(opened(graph, Settings()))
    cut.clear()
    assert answers(opened(graph)) == expected
    assert cut == [40]


def test_those_of_another_analysis_are_made_again(
    graph: Graph, cut: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance.__version__", "99")
    answers(opened(graph))
    assert cut == [40]
    graph.ensure_indices()
    cut.clear()
    answers(opened(graph))
    assert not cut


def test_a_property_that_was_dropped_and_added_has_other_words(graph: Graph, cut: list[int]) -> None:
    graph.apply_schema(SCHEMA.replace("  title: String? @index", ""), allow_data_loss=True)
    graph.apply_schema(SCHEMA)
    graph.mutate('query m() { update Doc set { title: "weaving" } where slug = "d3" }')
    found = answers(opened(graph))
    assert cut
    assert found == answers(opened(graph, Settings()))
    assert [row["slug"] for row in found[0] if row["score"]] == ["d3"]


def test_cleanup_removes_those_of_branches_that_are_gone(graph: Graph) -> None:
    graph.create_branch("side")
    graph.load(
        [{"type": "Doc", "data": {"slug": "x", "kind": "a", "title": "loom"}}], mode="append", branch="side"
    )
    graph.ensure_indices(branch="side")
    assert len(saved(graph)) == 2
    assert graph.doctor().is_healthy
    graph.cleanup(keep=1, grace="0s", confirm=True)
    assert len(saved(graph)) == 2
    graph.delete_branch("side")
    graph.cleanup(keep=1, grace="0s", confirm=True)
    assert len(saved(graph)) == 1
    assert graph.doctor().is_healthy


def test_a_copy_does_without_and_a_moved_graph_has_them(graph: Graph, cut: list[int], tmp_path: Path) -> None:
    expected = answers(graph)
    graph.clone(tmp_path / "copy")
    assert not saved(omnigraph.open(tmp_path / "copy"))
    Path(graph.address).rename(tmp_path / "moved")
    cut.clear()
    assert answers(omnigraph.open(tmp_path / "moved", settings=SETTINGS)) == expected
    assert not cut


def test_they_are_saved_on_every_store(store: Store, cut: list[int]) -> None:
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options, settings=SETTINGS)
    graph.load(list(records()), mode="append")
    graph.ensure_indices()
    expected = answers(omnigraph.open(store.uri, storage_options=store.options))
    cut.clear()
    assert answers(omnigraph.open(store.uri, storage_options=store.options, settings=SETTINGS)) == expected
    assert not cut
