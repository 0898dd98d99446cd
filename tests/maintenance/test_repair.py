"""Tables at versions that the graph does not know: shown, published if only rearranged, undone if they are a dead
writer's, forced if not."""

from __future__ import annotations

import lance
import pytest
from tests.cli.command import omnigraph as command
from tests.maintenance.patients import forged
from tests.recovery.folds import FOLDING_WRITES, worn_graph
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
from tests.recovery.test_folds import interrupted
from tests.recovery.test_windows import Interrupted, fail_at
from tests.recovery.victims import kill_at
from tests.sampling import sampled
from tests.stores import Store, present

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import ReadOnlyGraph, SidecarUnreadable, TableDrift
from omnigraph.storage import layout

STEPS = ["recovery.after_restore", "publish.after_commit", "recovery.after_publish"]
LOSSES = [
    ("write.between_tables", "main"),
    ("write.between_tables", "dev"),
    ("write.after_tables", "main"),
    ("write.after_tables", "dev"),
]


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


def lose_sidecars(store: Store) -> None:
    for key in store.objects().list(layout.SIDECARS):
        store.objects().delete(key)


def test_a_compaction_that_rewrote_indexes_too(local_store: Store) -> None:
    """Lance's Python side cannot read the record of such a compaction."""
    graph = new_graph(local_store)
    for name in ("Zoe", "Yan", "Xia"):
        graph.load([person(name)], mode="append")
    graph.ensure_indices()
    table(graph).optimize.compact_files()
    before = contents(graph)
    assert actions(graph.repair(confirm=True)) == {PERSON: ("verified_maintenance", "healed")}
    assert contents(graph) == before
    found_city(graph, "main")


def test_what_was_done_is_shown_for_review(local_store: Store) -> None:
    graph = new_graph(local_store)
    add_rows(graph)
    table(graph).delete("name = 'Bo'")
    (shown,) = [t for t in graph.repair().tables if t.action != "no_op"]
    assert shown.operations == ("Append", "Delete")
    assert shown.changes is not None
    assert str(shown.changes) == "+1 ~0 -1"
    assert all(version.made_at is not None and version.operation_id is None for version in shown.versions)
    assert "+1 ~0 -1" in command("repair", local_store.uri).out


@pytest.mark.parametrize(("failpoint", "branch"), sampled(LOSSES, 2))
def test_the_next_writer_undoes_a_write_whose_sidecar_is_lost(store: Store, branch: str, failpoint: str) -> None:
    """It was never published, so its writer was never told that it succeeded."""
    graph = new_graph(store)
    fail_at(failpoint, graph, "merge", branch)
    lose_sidecars(store)
    assert actions(graph.repair(branch=branch))[PERSON] == ("unpublished_write", "preview")
    assert {finding.code for finding in graph.doctor().findings} == {"unpublished_write"}
    WRITES["merge"].run(graph, branch)
    assert contents(graph, branch) == WRITES["merge"].effect(BEGINNING)
    assert {recovery.recovery_kind for recovery in graph.recoveries()} == {"UnpublishedVersionUndone"}
    WRITES["delete"].run(graph, branch)
    assert_settled(graph)


@pytest.mark.parametrize("failpoint", sampled(STEPS, 1))
def test_undoing_it_can_be_repeated(local_store: Store, failpoint: str) -> None:
    new_graph(local_store)
    kill_at("write.after_tables", "write", local_store, "merge", "main")
    lose_sidecars(local_store)
    kill_at(failpoint, "write", local_store, "merge", "main")
    graph = omnigraph.open(local_store.uri)
    assert contents(graph) == BEGINNING
    WRITES["merge"].run(graph, "main")
    assert contents(graph) == WRITES["merge"].effect(BEGINNING)
    assert graph.doctor().findings == ()


@pytest.mark.parametrize("branch", ["main", "dev"])
def test_a_repair_undoes_it_as_well(local_store: Store, branch: str) -> None:
    graph = new_graph(local_store)
    fail_at("write.after_tables", graph, "merge", branch)
    lose_sidecars(local_store)
    (found, other) = [t for t in graph.repair(branch=branch).tables if t.action != "no_op"]
    assert found.versions[0].operation_id == other.versions[0].operation_id is not None
    assert set(actions(graph.repair(confirm=True, branch=branch)).values()) == {("unpublished_write", "undone")}
    assert contents(graph, branch) == BEGINNING
    assert graph.doctor().findings == ()
    WRITES["merge"].run(graph, branch)
    assert contents(graph, branch) == WRITES["merge"].effect(BEGINNING)
    assert_settled(graph)


def test_a_recovery_whose_sidecar_is_lost(s3_store: Store) -> None:
    """It died when it had fenced the first table, and somebody has deleted the sidecar since."""
    graph = new_graph(s3_store)
    fail_at("write.after_sidecar", graph, "merge", "main")

    def interrupt() -> None:
        raise Interrupted

    with failpoints.armed("recovery.after_fence", interrupt), pytest.raises(Interrupted):
        graph.refresh()
    lose_sidecars(s3_store)
    for name in ("merge", "delete"):
        WRITES[name].run(graph, "main")
    assert_settled(graph)


def test_changes_by_others_on_top_of_it_are_left_to_a_person(local_store: Store) -> None:
    graph = new_graph(local_store)
    fail_at("write.after_tables", graph, "merge", "main")
    lose_sidecars(local_store)
    add_rows(graph)
    with pytest.raises(TableDrift, match="omnigraph repair"):
        WRITES["merge"].run(graph, "main")
    assert actions(graph.repair())[PERSON] == ("suspicious", "preview")


@pytest.mark.parametrize("branch", ["main", "dev"])
def test_a_write_whose_sidecar_is_damaged_can_be_given_up(local_store: Store, branch: str) -> None:
    graph = new_graph(local_store)
    fail_at("write.between_tables", graph, "merge", branch)
    (key,) = local_store.objects().list(layout.SIDECARS)
    local_store.objects().put(key, b"{")
    with pytest.raises(SidecarUnreadable, match="--confirm --force"):
        graph.repair(confirm=True, branch=branch)
    assert [(cure.code, cure.file) for cure in graph.repair(branch=branch).cures] == [("sidecar_damaged", key)]
    assert set(actions(graph.repair(confirm=True, force=True, branch=branch)).values()) == {
        ("unpublished_write", "undone")
    }
    assert contents(graph, branch) == BEGINNING
    assert [recovery.recovery_kind for recovery in graph.recoveries()] == ["GivenUp"]
    WRITES["merge"].run(graph, branch)
    assert contents(graph, branch) == WRITES["merge"].effect(BEGINNING)
    assert graph.doctor().findings == ()


def test_a_sidecar_of_a_newer_release_is_never_given_up(local_store: Store) -> None:
    graph = new_graph(local_store)
    fail_at("write.after_sidecar", graph, "merge", "main")
    (key,) = local_store.objects().list(layout.SIDECARS)
    content = present(local_store.objects(), key).content
    local_store.objects().put(key, forged(key, content, version=99))
    with pytest.raises(SidecarUnreadable, match="Upgrade omnigraph"):
        graph.repair(confirm=True, force=True)
    assert present(local_store.objects(), key)


def test_a_preview_beside_a_writer(local_store: Store) -> None:
    graph = new_graph(local_store)
    seen: list[dict[str, tuple[str, str]]] = []
    with failpoints.armed("write.after_tables", lambda: seen.append(actions(graph.repair()))):
        WRITES["mutation"].run(graph, "main")
    assert set(seen[0].values()) == {("pending_write", "preview")}
    assert actions(graph.repair()) == {}


def test_all_branches(local_store: Store) -> None:
    graph = new_graph(local_store)
    rearrange(graph, "dev")
    rearrange(graph, "main")
    shown = command("repair", local_store.uri, "--all-branches", "--json")
    assert [entry["branch"] for entry in shown.json["branches"]] == ["main", "dev"]
    reports = graph.repair_all(confirm=True)
    assert [actions(report) for report in reports] == [{PERSON: ("verified_maintenance", "healed")}] * 2
    assert graph.doctor().findings == ()
    assert command("repair", local_store.uri, "--all-branches", "--branch", "dev").code == 2


@pytest.mark.parametrize("failpoint", sampled(["write.after_fold", "write.before_fold"], 1))
def test_a_lost_write_that_folded_files_as_well(local_store: Store, failpoint: str) -> None:
    """Both of its versions are undone."""
    graph = worn_graph(local_store)
    before = contents(graph)
    interrupted(graph, failpoint, "one table")
    lose_sidecars(local_store)
    (found,) = [t for t in graph.repair().tables if t.action != "no_op"]
    assert (found.table_key, found.classification) == (PERSON, "unpublished_write")
    FOLDING_WRITES["one table"].run(graph, "main")
    assert contents(graph) == FOLDING_WRITES["one table"].effect(before)
    assert {recovery.recovery_kind for recovery in graph.recoveries()} == {"UnpublishedVersionUndone"}
    assert graph.doctor().findings == ()


def test_a_lost_write_whose_fold_was_fenced(s3_store: Store) -> None:
    graph = worn_graph(s3_store)
    before = contents(graph)
    interrupted(graph, "write.before_fold", "one table")

    def interrupt() -> None:
        raise Interrupted

    with failpoints.armed("recovery.after_upkeep_fence", interrupt), pytest.raises(Interrupted):
        graph.refresh()
    lose_sidecars(s3_store)
    assert actions(graph.repair()) == {PERSON: ("unpublished_write", "preview")}
    FOLDING_WRITES["one table"].run(graph, "main")
    assert contents(graph) == FOLDING_WRITES["one table"].effect(before)
    assert_settled(graph)


def test_undoing_that_dies_is_repeated_without_another_version(local_store: Store) -> None:
    graph = new_graph(local_store)
    fail_at("write.after_tables", graph, "merge", "main")
    lose_sidecars(local_store)

    def interrupt() -> None:
        raise Interrupted

    with failpoints.armed("publish.before_stage", interrupt), pytest.raises(Interrupted):
        graph.repair(confirm=True)
    head = table(graph).version
    assert actions(graph.repair(confirm=True))[PERSON] == ("unpublished_write", "undone")
    assert table(graph).version == head == graph.snapshot().tables[PERSON].table_version
    assert contents(graph) == BEGINNING
    assert_settled(graph)
