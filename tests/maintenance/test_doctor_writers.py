"""The doctor beside writers: those that live are let alone, and what dead ones left is told from damage."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from tests.cli.command import omnigraph_on_terminal
from tests.maintenance.patients import PERSON, codes, dataset, examined, forged, healthy, only
from tests.processes import children
from tests.recovery.scenes import WRITES, new_graph
from tests.recovery.test_windows import fail_at
from tests.recovery.victims import kill_at
from tests.sampling import sampled
from tests.stores import Store, present

import omnigraph
from omnigraph import DoctorProgress, failpoints
from omnigraph.recovery.sidecar import list_sidecars
from omnigraph.storage import layout
from omnigraph.storage.control.sealed import seal

KILLS = ["write.between_tables", "write.after_sidecar", "write.after_tables"]


@pytest.mark.parametrize("failpoint", ["write.after_sidecar", "write.between_tables", "write.after_publish"])
def test_a_write_in_flight_is_no_damage(local_store: Store, failpoint: str) -> None:
    graph = new_graph(local_store)
    seen: list[set[str]] = []
    with failpoints.armed(failpoint, lambda: seen.append(codes(examined(local_store)))):
        WRITES["merge"].run(graph, "main")
    assert seen == [{"write_in_flight", "lock_held"}]
    assert examined(local_store).findings == ()


@pytest.mark.parametrize("failpoint", sampled(KILLS, 1))
def test_a_write_that_was_killed(local_store: Store, failpoint: str) -> None:
    graph = new_graph(local_store)
    kill_at(failpoint, "write", local_store, "merge", "dev")
    found = only(examined(local_store), "write_interrupted")
    assert (found.branch, found.severity.value) == ("dev", "warning")
    graph.refresh()
    assert examined(local_store).findings == ()


def test_a_write_that_was_killed_before_its_sidecar_leaves_nothing_to_do(local_store: Store) -> None:
    new_graph(local_store)
    kill_at("write.after_stage", "write", local_store, "merge", "dev")
    assert examined(local_store).findings == ()


def test_a_write_that_was_killed_and_whose_branch_is_gone(local_store: Store) -> None:
    graph = new_graph(local_store)
    fail_at("write.after_tables", graph, "merge", "dev")
    Path(local_store.uri, layout.branch_ref("dev")).unlink()
    assert only(examined(local_store, quick=True), "sidecar_orphaned").branch == "dev"
    reopened = omnigraph.open(local_store.uri, read_only=True)
    assert [cure.code for cure in reopened.repair().cures] == ["sidecar_orphaned"]
    graph.repair(confirm=True)
    assert examined(local_store, quick=True).findings == ()


def test_a_write_that_other_programs_have_made_unrecoverable(local_store: Store) -> None:
    graph = new_graph(local_store)
    fail_at("write.after_tables", graph, "merge", "main")
    handle = dataset(graph)
    lance.write_dataset(handle.to_table(limit=1), handle, mode="append")
    found = only(examined(local_store, quick=True), "recovery_blocked")
    assert PERSON in found.message


def test_a_sidecar_of_a_newer_release(local_store: Store) -> None:
    graph = new_graph(local_store)
    fail_at("write.after_sidecar", graph, "merge", "main")
    (key,) = list_sidecars(graph._repository.objects)
    content = present(graph._repository.objects, key).content
    graph._repository.objects.put(key, forged(key, content, version=99))
    assert only(examined(local_store, quick=True), "newer_release").file == key


def test_leases_of_the_living_and_of_the_dead(s3_store: Store) -> None:
    """A lease that is not renewed belongs to a dead process; a damaged one is waited for."""
    graph = new_graph(s3_store)
    locks = s3_store.locks(time_to_live=1.0)
    with locks.commit("main"):
        assert codes(examined(s3_store, checks=["locks"])) == {"lock_held"}
    key = f"{layout.LOCKS}/graph.json"
    content = {"holder": "host:1:abc", "fence": 1, "beat": 0, "ttl": 0.2}
    s3_store.objects().put(key, seal(content))
    found = only(examined(s3_store, checks=["locks"]), "lock_expired")
    assert "host:1:abc" in found.message
    s3_store.objects().put(key, b"{")
    assert only(examined(s3_store, checks=["locks"], quick=True), "lock_damaged").file == key
    assert graph.doctor(checks=["files", "counts"]).findings == ()


def test_objects_that_are_missing_from_a_bucket(s3_store: Store) -> None:
    graph = new_graph(s3_store)
    (file,) = dataset(graph).get_fragments()[0].data_files()
    key = f"{graph.snapshot().tables[PERSON].location}/data/{file.path}"
    whole = s3_store.objects().get(key)
    assert whole is not None
    s3_store.objects().put(key, whole.content[:-3])
    report = examined(s3_store, quick=True, checks=["files"])
    assert codes(report) == {"file_size"}
    s3_store.objects().delete(key)
    report = examined(s3_store, quick=True, checks=["files"])
    assert codes(report) == {"file_missing"}
    assert report.findings[0].table_key == PERSON


@pytest.mark.parametrize("check", ["counts", "files"])
def test_a_branch_that_is_deleted_meanwhile_is_not_damaged(local_store: Store, check: str) -> None:
    graph = new_graph(local_store)
    WRITES["merge"].run(graph, "dev")

    def delete(progress: DoctorProgress) -> None:
        if progress.check == check and "dev" in {branch.name for branch in graph.branches()}:
            graph.delete_branch("dev")

    assert examined(local_store, listener=delete).findings == ()


@pytest.mark.long
def test_what_a_terminal_shows(local_store: Store) -> None:
    new_graph(local_store)
    shown = omnigraph_on_terminal("doctor", local_store.uri)
    assert "healthy" in shown
    assert "rules" in shown


def _write_much(store: Store, branch: str) -> None:
    graph = omnigraph.open(store.uri, storage_options=store.options)
    for turn in range(10):
        graph.load([{"type": "Person", "data": {"name": f"{branch}{turn}"}}], mode="append", branch=branch)
        if turn % 4 == 3:
            graph.mutate(f'query q() {{ delete Person where name = "{branch}{turn}" }}', branch=branch)


def _examine_often(store: Store) -> None:
    allowed = {"write_in_flight", "lock_held", "write_interrupted"}
    for _ in range(5):
        found = examined(store)
        assert found.is_healthy, found.findings
        assert codes(found) <= allowed, found.findings


@pytest.mark.long
def test_beside_writers_it_finds_nothing_wrong(local_store: Store) -> None:
    healthy(local_store)
    writers = [(_write_much, local_store, branch) for branch in ("main", "dev")]
    with children(*writers, (_examine_often, local_store)) as everyone:
        for child in everyone:
            child.join()
    assert examined(local_store).findings == ()
