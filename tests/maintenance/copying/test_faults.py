"""Disks and stores that fail, and a source that changes, while it is copied: nothing half-made looks whole."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import lance
import pytest
from tests.crash.operations import LEASE
from tests.faults.disk import Action, Rule, heard_from, watched
from tests.faults.store import Rule as RequestRule
from tests.faults.store import faulty_store
from tests.maintenance.copying.scenes import glance, look, names, person, small, write_and_merge
from tests.processes import say, see_killed
from tests.sampling import sampled
from tests.stores import S3Server, Store, local_store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import CopyUnfinished, LockTimeout, ObjectDamaged, OmniError, StorageUnavailable
from omnigraph.maintenance.copying.clone import clone
from omnigraph.maintenance.copying.extent import Wanted
from omnigraph.manifest.repository import Repository
from omnigraph.storage.locks import DEFAULT_WAIT, Locks


@pytest.mark.long
def test_a_disk_that_fails_ends_the_copy_which_goes_on_when_it_works_again(tmp_path: Path) -> None:
    graph = small(local_store(tmp_path))
    for line in heard_from(fail_everywhere, str(tmp_path), "EIO"):
        assert line.startswith("ok"), line
    assert names(graph, "dev") == {"Ada", "Bo"}


@pytest.mark.long
@pytest.mark.parametrize("action", ["ENOSPC", "short", "EROFS"])
def test_a_disk_that_fails_in_other_ways(tmp_path: Path, action: Action) -> None:
    small(local_store(tmp_path))
    for line in heard_from(fail_everywhere, str(tmp_path), action):
        assert line.startswith("ok"), line


def fail_everywhere(folder: str, action: Action) -> None:
    """Let each kind of file fail once while a graph is copied; say what was wrong, if anything was."""
    graph = omnigraph.open(Path(folder, "g"), read_only=True)
    patterns = ("**/data/*", "**/_transactions/*", "**/_versions/*", "_refs/**", "__place.json", "_schema.pg")
    for number, pattern in enumerate(patterns):
        target = Path(folder, f"copy{number}")
        target.mkdir()
        with watched(target, Path(folder, f"journal{number}")) as disk:
            disk.arm(Rule("room", "**", 10 + 7 * number, action, sticky=True))
            try:
                graph.clone(target)
                say(f"ok: {pattern} was not needed")
                continue
            except OmniError as error:
                told = str(error)
            disk.disarm()
            try:
                omnigraph.open(target)
                say(f"{pattern}: there is a graph after {told}")
            except OmniError:
                pass
            graph.clone(target)
            say("ok" if glance(omnigraph.open(target)) == glance(graph) else f"{pattern}: another graph")


@pytest.mark.parametrize("action", sampled(["500", "lost"], 1))
def test_a_bucket_that_fails_leaves_a_part_which_is_completed(
    s3_server: S3Server, tmp_path: Path, action: str
) -> None:
    graph = small(local_store(tmp_path))
    with faulty_store(s3_server) as faults:
        store = faults.store
        faults.arm(RequestRule("PUT", "nodes/**", 3, action, sticky=True))  # type: ignore[arg-type]
        with pytest.raises(StorageUnavailable):
            graph.clone(store.uri, storage_options=store.options)
        faults.disarm()
        with pytest.raises(CopyUnfinished):
            omnigraph.open(store.uri, storage_options=store.options)
        faults.forget()
        graph.clone(store.uri, storage_options=store.options)
        copy = omnigraph.open(store.uri, storage_options=store.options)
        assert glance(copy) == glance(graph)


def test_what_is_there_is_not_sent_again(s3_server: S3Server, tmp_path: Path) -> None:
    graph = small(local_store(tmp_path))
    for number in range(4):
        graph.load([person(f"P{number}")], mode="append", branch="dev")
    with faulty_store(s3_server) as faults:
        store = faults.store
        graph.clone(store.uri, storage_options=store.options)
        first = [request for request in faults.journal() if request.method == "PUT"]
        faults.forget()
        graph.load([person("New")], mode="append", branch="dev")
        graph.clone(store.uri, storage_options=store.options)
        second = faults.journal()
        sent = [
            r.key for r in second if r.method == "PUT" and not r.key.startswith(("__locks", "_refs", "__place"))
        ]
        assert len(sent) == 4, "a data file and a version of the table and of the manifest"
        assert len(first) > 30
        listings = [request for request in second if request.method == "LIST"]
        assert len(listings) <= 12


@pytest.mark.long
@pytest.mark.parametrize("failpoint", ["copy.after_claim", "copy.after_versions"])
def test_a_clone_to_a_bucket_that_is_killed_goes_on(s3_store: Store, tmp_path: Path, failpoint: str) -> None:
    graph = small(local_store(tmp_path))
    see_killed(failpoint, clone_with_short_leases, graph.address, s3_store)
    with pytest.raises(CopyUnfinished):
        omnigraph.open(s3_store.uri, storage_options=s3_store.options)
    clone_with_short_leases(graph.address, s3_store)
    copy = omnigraph.open(s3_store.uri, storage_options=s3_store.options)
    assert glance(copy) == glance(graph)


def clone_with_short_leases(uri: str, store: Store) -> None:
    graph = omnigraph.open(uri, read_only=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Locks.__init__, "__defaults__", (DEFAULT_WAIT, LEASE))
        graph.clone(store.uri, storage_options=store.options)


def test_two_copies_to_one_place_do_not_meet(tmp_path: Path) -> None:
    graph = small(local_store(tmp_path))
    target = Store(str(tmp_path / "copy"))
    held: list[BaseException] = []

    def second() -> None:
        try:
            with target.locks(wait=0.1).control():
                pass
        except LockTimeout as error:
            held.append(error)

    with failpoints.armed("copy.after_content", second):
        graph.clone(target.uri)
    assert held
    assert glance(omnigraph.open(target.uri)) == glance(graph)


def test_a_source_that_is_cleaned_up_meanwhile_is_copied_as_it_is_then(tmp_path: Path) -> None:
    graph = small(local_store(tmp_path))
    for number in range(3):
        graph.load([person(f"P{number}")], mode="overwrite")
    location = graph.snapshot().tables["node:Person"].location
    cleaned: list[bool] = []

    def clean() -> None:
        if not cleaned:
            table = lance.dataset(str(Path(graph.address, location)))
            table.cleanup_old_versions(timedelta(0), delete_unverified=True)
            cleaned.append(True)

    with failpoints.armed("copy.after_claim", clean):
        graph.clone(tmp_path / "copy")
    copy = omnigraph.open(tmp_path / "copy")
    assert names(copy) == {"P2"}
    assert names(copy, "dev") == {"Ada", "Bo"}
    write_and_merge(copy)


def test_a_source_that_loses_files_is_named(tmp_path: Path) -> None:
    graph = small(local_store(tmp_path))

    def lose() -> None:
        for path in Path(graph.address, "nodes").rglob("data/*.lance"):
            path.unlink()

    with failpoints.armed("copy.after_claim", lose), pytest.raises(ObjectDamaged, match="missing"):
        graph.clone(tmp_path / "copy")
    with pytest.raises(CopyUnfinished):
        omnigraph.open(tmp_path / "copy")


@pytest.mark.parametrize("failpoint", ["write.after_sidecar", "write.after_tables"])
def test_what_a_dead_writer_has_not_published_is_not_copied(tmp_path: Path, failpoint: str) -> None:
    graph = small(local_store(tmp_path))
    before = glance(graph)
    see_killed(failpoint, write, graph.address)
    graph.clone(tmp_path / "copy")
    shutil.rmtree(graph.address)
    copy = omnigraph.open(tmp_path / "copy")
    assert glance(copy) == before
    assert copy.recoveries() == []
    write_and_merge(copy)


def write(uri: str) -> None:
    omnigraph.open(uri).load([person("Never")], mode="append", branch="dev")


def test_what_a_merge_has_brought_is_copied_with_where_it_came_from(tmp_path: Path) -> None:
    """A branch is read before another one merges its newest commit: both are copied, as of after the merge."""
    graph = small(local_store(tmp_path))
    repository = graph._repository
    latest = repository.manifest.latest
    late: list[str] = []

    def read(native: str | None) -> object:
        state = latest(native)
        if native is not None and not late:
            late.append(native)
            other = omnigraph.open(graph.address)
            other.load([person("Late")], mode="append", branch="dev")
            other.merge("dev", into="main")
        return state

    order = repository.branches.listed

    def reversed_order() -> tuple[list[omnigraph.Branch], list[ObjectDamaged]]:
        branches, damaged = order()
        return branches[::-1], damaged

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repository.manifest, "latest", read)
        patch.setattr(repository.branches, "listed", reversed_order)
        clone(repository, Store(str(tmp_path / "copy")).address, Wanted())
    copy = omnigraph.open(tmp_path / "copy")
    assert "Late" in names(copy)
    assert "Late" in names(copy, "dev")
    assert look(copy) == look(Graph(Repository.at(graph._repository.address, read_only=True)))
