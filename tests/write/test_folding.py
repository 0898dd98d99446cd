"""Writers fold small files: a table of any age has few of them, and nobody but the store can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from lance import LanceDataset
from tests.processes import children, ready, start_together
from tests.recovery.racers import once
from tests.sampling import quick_and_long
from tests.stores import Store

import omnigraph
from omnigraph import Graph, Settings, WriteSettings, failpoints
from omnigraph.errors import ManifestConflict, RequestError
from omnigraph.storage.stage.folds import Fragment
from omnigraph.storage.stage.indexes import existing_indexes
from omnigraph.write.upkeep.folding import MOST_FILES, choose

SCHEMA = """
node Person { name: String @key  age: I32?  @index(age) }
edge Knows: Person -> Person
"""
PERSON, KNOWS = "node:Person", "edge:Knows"
INSERT = "query add($n: String) { insert Person { name: $n, age: 1 } }"


def new_graph(store: Store, **settings: Any) -> Graph:
    """An empty graph, whose writers fold four files of a size."""
    wanted = Settings(write=WriteSettings(**{"fold_files": 4, **settings}))
    return omnigraph.init(store.uri, SCHEMA, storage_options=store.options, settings=wanted)


def add(graph: Graph, *names: str, branch: str | None = None) -> None:
    """One commit with so many people."""
    rows = [{"type": "Person", "data": {"name": name, "age": 1}} for name in names]
    graph.load(rows, mode="append", branch=branch)


def handle(graph: Graph, table_key: str = PERSON, branch: str = "main") -> LanceDataset:
    return graph._repository.tables.open(graph.snapshot(branch).tables[table_key].ref)


def files(graph: Graph, table_key: str = PERSON, branch: str = "main") -> list[int]:
    """How many rows each file of a table has."""
    return [fragment.count_rows() for fragment in handle(graph, table_key, branch).get_fragments()]


def names(graph: Graph, **where: Any) -> list[str]:
    rows = graph.query(
        "query all() { match { $p: Person } return { $p.name as name } order { $p.name asc } }", **where
    ).rows
    return [row["name"] for row in rows]


def data_files(graph: Graph, table_key: str = PERSON) -> set[str]:
    """The data files of a table on the disk, whatever refers to them."""
    folder = Path(graph.address, graph.snapshot().tables[table_key].location, "data")
    return {path.name for path in folder.iterdir()}


def known_files(graph: Graph, table_key: str = PERSON) -> set[str]:
    """The data files that some version of a table refers to."""
    newest = handle(graph, table_key)
    versions = [newest.checkout_version(number) for number in range(1, newest.version + 1)]
    return {file.path for version in versions for part in version.get_fragments() for file in part.data_files()}


def test_files_are_folded_in_tiers(local_store: Store) -> None:
    graph = new_graph(local_store)
    for number in range(24):
        add(graph, f"p{number:02}")
    assert sorted(files(graph)) == [1, 1, 1, 1, 4, 16]
    assert names(graph) == [f"p{number:02}" for number in range(24)]


def test_history_does_not_show_it(local_store: Store) -> None:
    graph = new_graph(local_store)
    for number in range(10):
        add(graph, f"p{number}")
    commits = graph.commits()[::-1]
    assert [commit.kind for commit in commits] == ["init"] + ["load"] * 10
    for number, (before, after) in enumerate(pairwise(commits)):
        changes = graph.diff(before.graph_commit_id, after.graph_commit_id)
        assert [(change.op.value, change.id) for change in changes] == [("insert", f"p{number}")]
        assert names(graph, at=after.graph_commit_id) == [f"p{n}" for n in range(number + 1)]
        assert graph.blame("Person", f"p{number}")["age"].commit == after
    page = graph.changes(start="beginning")
    fed = [change.id for block in page.blocks for change in block.changes]
    assert fed == [f"p{number}" for number in range(10)]


def test_updates_and_deletes_do_not_leave_files_behind(local_store: Store) -> None:
    graph = new_graph(local_store)
    add(graph, *(f"p{number:02}" for number in range(12)))
    for number in range(30):
        text = f'query q() {{ update Person set {{ age: {number} }} where name = "p{number % 12:02}" }}'
        graph.mutate(text)
    assert sum(files(graph)) == 12
    assert len(files(graph)) <= 7
    for number in range(11):
        graph.mutate(f'query q() {{ delete Person where name = "p{number:02}" }}')
    assert names(graph) == ["p11"]
    assert files(graph) == [1]


def test_a_file_with_many_deleted_rows_is_written_again(local_store: Store) -> None:
    """Each deletion writes the deletion file of its fragment again; at some time that costs more than the rows."""
    graph = new_graph(local_store)
    add(graph, *(f"p{number:03}" for number in range(400)))
    for number in range(200, 400, 4):
        graph.mutate(f'query q() {{ delete Person where name >= "p{396 - number + 200:03}" }}')
    (fragment,) = handle(graph).get_fragments()
    assert fragment.count_rows() == 200
    assert fragment.num_deletions < 150
    assert len(names(graph)) == 200


def test_writes_that_take_the_lock_first_fold_as_well(local_store: Store) -> None:
    """Once its process has lost a race, a writer takes the lock before it prepares. Most writes of a branch that
    several processes write to are of that kind."""
    with new_graph(local_store) as graph:
        add(graph, "Ada")
        for turn in range(24):
            graph._repository.locks.note_contention("main")
            graph.mutate(INSERT, {"n": f"p{turn}"})
            assert len(files(graph)) <= 9
        assert sum(files(graph)) == len(names(graph)) == 25


def test_edges_too(local_store: Store) -> None:
    graph = new_graph(local_store)
    add(graph, "Ada", "Bo")
    for _ in range(9):
        graph.mutate('query q() { insert Knows { from: "Ada", to: "Bo" } }')
    assert sorted(files(graph, KNOWS)) == [1, 4, 4]


def test_it_can_be_turned_off(local_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = new_graph(local_store, fold=False)
    for number in range(6):
        add(graph, f"p{number}")
    assert files(graph) == [1] * 6
    eager = omnigraph.open(graph.address, settings=Settings(write=WriteSettings(fold_files=4)))
    monkeypatch.setenv("OMNIGRAPH_FOLD", "off")
    add(eager, "x")
    assert files(eager) == [1] * 7
    monkeypatch.setenv("OMNIGRAPH_FOLD", "perhaps")
    with pytest.raises(RequestError, match="OMNIGRAPH_FOLD=perhaps is neither 'on' nor 'off'"):
        add(eager, "y")
    monkeypatch.setenv("OMNIGRAPH_FOLD", "on")
    add(eager, "y")
    assert sorted(files(eager)) == [1, 7]


def test_a_branch_copies_little_of_its_parent(local_store: Store) -> None:
    graph = new_graph(local_store, fold=False, fold_bytes=8_000)
    for number in range(5):
        add(graph, f"p{number}")
    graph.create_branch("dev")
    eager = omnigraph.open(graph.address, settings=Settings(write=WriteSettings(fold_files=4, fold_bytes=8_000)))
    add(eager, "x", branch="dev")
    assert files(eager, branch="dev") == [1] * 6
    larger = omnigraph.open(graph.address, settings=Settings(write=WriteSettings(fold_files=4)))
    add(larger, "y", branch="dev")
    assert sorted(files(larger, branch="dev")) == [1, 6]
    assert files(larger) == [1] * 5
    assert names(larger, branch="dev") == ["p0", "p1", "p2", "p3", "p4", "x", "y"]


def test_indexed_files_are_left_alone(local_store: Store) -> None:
    graph = new_graph(local_store)
    for number in range(3):
        add(graph, f"p{number}")
    graph.ensure_indices()
    for number in range(3, 7):
        add(graph, f"p{number}")
    assert sorted(files(graph)) == [1] * 7
    add(graph, "p7")
    assert sorted(files(graph)) == [1, 1, 1, 1, 4]
    for number in range(8):
        found = graph.query(
            f'query q() {{ match {{ $p: Person {{ name: "p{number}" }} }} return {{ $p.name as name }} }}'
        )
        assert found.rows == [{"name": f"p{number}"}]


@contextmanager
def overtaken(*actions: Callable[[], object]) -> Iterator[None]:
    """While a write is staged for the first time, others are made."""

    def overtake() -> None:
        for action in actions:
            action()

    with failpoints.armed("write.after_stage", once(overtake)):
        yield


def test_a_retry_uses_what_was_folded_before(local_store: Store) -> None:
    graph = new_graph(local_store)
    other = omnigraph.open(graph.address, settings=Settings(write=WriteSettings(fold=False)))
    for number in range(4):
        add(graph, f"p{number}")
    with overtaken(lambda: add(other, "x")):
        add(graph, "p4")
    assert sorted(files(graph)) == [1, 1, 4]
    assert names(graph) == ["p0", "p1", "p2", "p3", "p4", "x"]
    assert data_files(graph) == known_files(graph)


def test_a_retry_does_without_it_if_the_files_have_changed(local_store: Store) -> None:
    graph = new_graph(local_store)
    other = omnigraph.open(graph.address, settings=Settings(write=WriteSettings(fold=False)))
    for number in range(4):
        add(graph, f"p{number}")
    with overtaken(lambda: other.mutate('query q() { update Person set { age: 2 } where name = "p1" }')):
        add(graph, "p4")
    assert sorted(files(graph)) == [1] * 5
    assert data_files(graph) == known_files(graph)


def test_a_writer_that_loses_removes_its_files(local_store: Store) -> None:
    graph = new_graph(local_store)
    other = omnigraph.open(graph.address)
    for number in range(4):
        add(graph, f"p{number}")
    text = 'query q() { update Person set { age: 3 } where name = "p0" }'
    with overtaken(lambda: add(other, "x")), pytest.raises(ManifestConflict):
        graph.mutate(text)
    assert data_files(graph) == known_files(graph)
    graph.mutate(text)
    assert data_files(graph) == known_files(graph)


def insert_some(store: Store, name: str, count: int) -> None:
    """In a child: so many inserts, against others who do the same."""
    graph = omnigraph.open(store.uri, storage_options=store.options)
    ready()
    for number in range(count):
        graph.mutate(INSERT, {"n": f"{name}{number}"})


@pytest.mark.parametrize("count", quick_and_long(10, 25))
def test_two_processes_leave_no_file_that_nothing_refers_to(local_store: Store, count: int) -> None:
    graph = new_graph(local_store)
    with children((insert_some, local_store, "a", count), (insert_some, local_store, "b", count)) as pair:
        start_together(pair)
        for child in pair:
            child.join()
    assert len(names(graph)) == 2 * count
    assert data_files(graph) == known_files(graph)
    for number in range(3):  # what was folded in vain beside another writer is folded by the next quiet ones
        add(graph, f"quiet{number}")
    assert data_files(graph) == known_files(graph)
    assert len(files(graph)) < 12


def of_rows(*rows: int, size: int = 100) -> list[Fragment]:
    return [Fragment(number, live, 0, size) for number, live in enumerate(rows)]


@pytest.mark.parametrize(
    ("fragments", "chosen"),
    [
        (of_rows(*[1] * 7), []),
        (of_rows(*[1] * 8), list(range(8))),
        (of_rows(*[7] * 8), list(range(8))),
        (of_rows(*[7] * 4, *[8] * 4), []),
        (of_rows(100, *[1] * 8), list(range(1, 9))),
        (of_rows(*[100] * 8, *[1] * 8), list(range(8, 16))),
        (of_rows(*[1] * 100), list(range(MOST_FILES))),
        (of_rows(*[30_000] * 8), [0, 1]),
        (of_rows(*[40_000] * 8), []),
        (of_rows(*[1] * 8, size=10 << 20), [0, 1, 2]),
        (of_rows(*[1] * 8, size=20 << 20), []),
        ([Fragment(number, 1, 0, None) for number in range(8)], []),
        ([Fragment(0, 1_000, 10, 100_000)], []),
        ([Fragment(0, 1_000, 300, 100_000)], [0]),
        ([Fragment(0, 60_000, 5_000, 1_000_000)], [0]),
        ([Fragment(0, 60_000, 5_000, 64 << 20)], []),
        ([Fragment(number, 1, 0, 2 << 20, is_borrowed=True) for number in range(8)], []),
        ([Fragment(number, 1, 0, 1_000, is_borrowed=True) for number in range(8)], list(range(8))),
    ],
)
def test_what_is_chosen(fragments: list[Fragment], chosen: list[int]) -> None:
    """The lowest tier that has eight files, as far as one write goes; or one file with costly deletions."""
    assert choose(fragments, WriteSettings()) == chosen


def test_each_row_is_written_again_a_few_times_only() -> None:
    """Like a log-structured tree: the work of all folds together grows with the rows, not with their square."""
    settings, live, number, written = WriteSettings(), of_rows(), 0, 0
    for _ in range(20_000):
        chosen = set(choose(live, settings))
        folded = [each for each in live if each.number in chosen]
        rows = sum(each.rows for each in folded)
        live = [each for each in live if each.number not in chosen]
        live += [Fragment(number, 1, 0, 100)] + ([Fragment(number + 1, rows, 0, 100 * rows)] if rows else [])
        number, written = number + 2, written + rows
    assert sum(each.rows for each in live) == 20_000
    assert written <= 5 * 20_000
    assert len(live) <= 5 * 9


def test_a_retry_does_without_it_if_the_files_were_indexed(local_store: Store) -> None:
    graph = new_graph(local_store)
    other = omnigraph.open(graph.address)
    for number in range(4):
        add(graph, f"p{number}")
    with overtaken(other.ensure_indices):
        add(graph, "p4")
    assert sorted(files(graph)) == [1] * 5
    assert names(graph) == ["p0", "p1", "p2", "p3", "p4"]
    assert data_files(graph) == known_files(graph)


def uncovered(graph: Graph, column: str) -> int:
    """How many rows the index of a column does not answer for."""
    found = {(index.column, index.kind): index.rows for index in existing_indexes(handle(graph))}
    return int(handle(graph).count_rows()) - found[column, "BTREE"]


def test_files_that_are_not_folded_any_more_are_indexed(local_store: Store) -> None:
    """One index per write, and only files that are large enough; smaller ones are scanned."""
    graph = new_graph(local_store, fold_rows=16)
    add(graph, *(f"a{number}" for number in range(10)))
    graph.ensure_indices()
    indexes = len(existing_indexes(handle(graph)))
    for name in "bc":
        add(graph, *(f"{name}{number}" for number in range(10)))
    for number in range(2 * indexes):
        add(graph, f"x{number}")
    assert uncovered(graph, "id") == uncovered(graph, "age") <= 2 * indexes
    for name in ("a1", "b2", "c3", "x0"):
        assert graph.entity("Person", name) is not None
    assert len(names(graph)) == 30 + 2 * indexes


def test_a_retry_does_without_what_was_indexed(local_store: Store) -> None:
    graph = new_graph(local_store, fold_rows=16)
    other = omnigraph.open(graph.address)
    add(graph, *(f"a{number}" for number in range(10)))
    graph.ensure_indices()
    add(graph, *(f"b{number}" for number in range(10)))
    folder = Path(graph.address, graph.snapshot().tables[PERSON].location, "_indices")
    before = len(list(folder.iterdir()))
    with overtaken(lambda: other.mutate(INSERT, {"n": "x"})):
        add(graph, "y")
    assert len(list(folder.iterdir())) == before
    assert uncovered(graph, "id") == 12
    add(graph, "z")
    assert len(list(folder.iterdir())) == before + 1
