"""Tables that somebody moved with Lance itself: shown, published if only rearranged, forced if not."""

from __future__ import annotations

import lance
import pytest
from tests.cli.command import omnigraph as command
from tests.recovery.scenes import (
    BEGINNING,
    PERSON,
    WRITES,
    assert_settled,
    contents,
    found_city,
    new_graph,
    person,
    with_city,
)
from tests.recovery.test_windows import Interrupted
from tests.stores import Store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import ReadOnlyGraph, TableDrift


def table(graph: Graph, branch: str = "main") -> lance.LanceDataset:
    ref = graph.snapshot(branch).tables[PERSON].ref
    return lance.dataset(graph._repository.tables.uri(ref.location, ref.branch))


def rearrange(graph: Graph, branch: str = "main") -> None:
    """Compaction by hand, as a person would who knows nothing of graphs."""
    graph.load([person("Zoe")], mode="append", branch=branch)
    table(graph, branch).optimize.compact_files()


def add_rows(graph: Graph, branch: str = "main") -> None:
    handle = table(graph, branch)
    lance.write_dataset(handle.to_table().slice(0, 1), handle, mode="append")


def actions(report: object) -> dict[str, tuple[str, str]]:
    return {t.table_key: (t.classification, t.action) for t in report.tables if t.action != "no_op"}  # type: ignore[attr-defined]


def test_nothing_to_repair(store: Store) -> None:
    graph = new_graph(store)
    assert actions(graph.repair()) == actions(graph.repair(confirm=True)) == {}
    assert graph.repair(confirm=True).manifest_version is None


@pytest.mark.parametrize("branch", ["main", "dev"])
def test_what_only_rearranged_rows_is_published(local_store: Store, branch: str) -> None:
    graph = new_graph(local_store)
    rearrange(graph, branch)
    before = contents(graph, branch)
    with pytest.raises(TableDrift, match="omnigraph repair"):
        WRITES["merge"].run(graph, branch)
    assert actions(graph.repair(branch=branch)) == {PERSON: ("verified_maintenance", "preview")}
    report = graph.repair(confirm=True, branch=branch)
    assert actions(report) == {PERSON: ("verified_maintenance", "healed")}
    assert report.manifest_version == graph.snapshot(branch).manifest_version
    assert (graph.commits(branch)[0].kind, graph.commits(branch)[0].actor_id) == ("repair", "omnigraph:repair")
    assert contents(graph, branch) == before
    found_city(graph, branch)
    assert contents(graph, branch) == with_city(before)
    assert_settled(graph)


def test_what_changed_rows_is_refused_until_it_is_forced(local_store: Store) -> None:
    graph = new_graph(local_store)
    add_rows(graph)
    assert graph.repair(confirm=True).refused
    assert contents(graph) == BEGINNING
    report = graph.repair(confirm=True, force=True)
    assert actions(report) == {PERSON: ("suspicious", "forced")}
    assert graph.commits()[0].actor_id == "omnigraph:repair:force"
    assert len(contents(graph)[PERSON]) == len(BEGINNING[PERSON]) + 1
    assert_settled(graph)


def test_a_reader_only_looks(local_store: Store) -> None:
    graph = new_graph(local_store)
    rearrange(graph)
    reader = omnigraph.open(local_store.uri, read_only=True)
    assert actions(reader.repair()) == {PERSON: ("verified_maintenance", "preview")}
    with pytest.raises(ReadOnlyGraph):
        reader.repair(confirm=True)


def test_the_command(local_store: Store) -> None:
    graph = new_graph(local_store)
    assert "every table is where the graph says" in command("repair", local_store.uri).out
    add_rows(graph)
    shown = command("repair", local_store.uri)
    assert (shown.code, "suspicious" in shown.out, "preview" in shown.out) == (0, True, True)
    assert command("repair", local_store.uri, "--confirm").code == 1
    assert command("repair", local_store.uri, "--force").code == 2
    done = command("repair", local_store.uri, "--confirm", "--force", "--json")
    assert done.code == 0
    (repaired,) = [entry for entry in done.json["tables"] if entry["action"] != "no_op"]
    assert (repaired["table_key"], repaired["action"], repaired["operations"]) == (PERSON, "forced", ["Append"])


@pytest.mark.parametrize("failpoint", ["publish.before_stage", "publish.before_commit", "publish.after_commit"])
def test_one_that_dies_can_be_repeated(local_store: Store, failpoint: str) -> None:
    """It publishes once and does nothing else, so it has happened or it has not."""
    graph = new_graph(local_store)
    rearrange(graph)
    before = contents(graph)

    def interrupt() -> None:
        raise Interrupted

    with failpoints.armed(failpoint, interrupt), pytest.raises(Interrupted):
        graph.repair(confirm=True)
    graph.repair(confirm=True)
    assert contents(graph) == before
    assert [commit.kind for commit in graph.commits()].count("repair") == 1
    found_city(graph, "main")
    assert_settled(graph)
