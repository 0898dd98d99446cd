"""Backups: each can be restored, costs what is new, and is not harmed by those after it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.maintenance.copying.scenes import (
    found,
    glance,
    look,
    names,
    person,
    small,
    write_and_merge,
    write_everywhere,
)
from tests.processes import see_killed
from tests.sampling import sampled
from tests.stores import Store, local_store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BackupNotFound,
    CopyRefused,
    CopyUnfinished,
    GraphExists,
    InvalidArgument,
    NotAGraph,
    ObjectDamaged,
)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph to be backed up."""
    return small(local_store(tmp_path))


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
def test_a_restored_graph_has_everything(tmp_path: Path) -> None:
    graph = found(local_store(tmp_path))
    seen = look(graph)
    made = graph.backup(tmp_path / "backups")
    assert made.backup.branches == {name: log[0] for name, log in seen.logs.items()}
    shutil.rmtree(graph.address)
    shutil.move(tmp_path / "backups", tmp_path / "moved backups")
    omnigraph.restore(tmp_path / "moved backups", tmp_path / "restored")
    shutil.rmtree(tmp_path / "moved backups")
    restored = omnigraph.open(tmp_path / "restored")
    assert look(restored) == seen
    write_everywhere(restored)


def test_each_backup_can_be_restored(graph: Graph, tmp_path: Path) -> None:
    seen = {}
    graph.create_branch("brief")
    for number in range(3):
        made = graph.backup(tmp_path / "backups")
        seen[made.backup.id] = glance(graph)
        graph.load([person(f"P{number}")], mode="append", branch="dev" if number < 2 else "main")
        if number == 1:
            graph.delete_branch("brief")
            graph.delete_tag("v1")
    shutil.rmtree(graph.address)
    listed = omnigraph.backups(tmp_path / "backups")
    assert [backup.id for backup in listed] == list(seen)
    for number, (backup, before) in enumerate(seen.items()):
        omnigraph.restore(tmp_path / "backups", tmp_path / f"restored {number}", backup=backup)
        restored = omnigraph.open(tmp_path / f"restored {number}")
        assert glance(restored) == before
        restored.load([person("New")], mode="append", branch="dev")


def test_a_backup_costs_what_is_new(graph: Graph, tmp_path: Path) -> None:
    first = graph.backup(tmp_path / "backups")
    assert graph.backup(tmp_path / "backups").files == 0
    before = files(tmp_path / "backups")
    graph.load([person("Flo")], mode="append")
    second = graph.backup(tmp_path / "backups")
    assert second.files == 4, "a data file and a version of the table and of the manifest"
    assert second.bytes < first.bytes
    assert files(tmp_path / "backups") > before


@pytest.mark.long
def test_a_backup_makes_requests_for_what_is_new(s3_store: Store, tmp_path: Path) -> None:
    graph = small(local_store(tmp_path))
    for number in range(5):
        graph.load([person(f"P{number}")], mode="append")
    first = graph.backup(s3_store.uri, storage_options=s3_store.options)
    graph.load([person("New")], mode="append")
    second = graph.backup(s3_store.uri, storage_options=s3_store.options)
    assert first.files > 5 * second.files - 2
    assert second.files == 4
    restored = tmp_path / "restored"
    omnigraph.restore(s3_store.uri, restored, storage_options=s3_store.options)
    assert names(omnigraph.open(restored)) == {"Ada", "New", *(f"P{number}" for number in range(5))}


def test_backups_are_no_graph(graph: Graph, tmp_path: Path) -> None:
    graph.backup(tmp_path / "backups")
    for read_only in (True, False):
        with pytest.raises(NotAGraph, match="omnigraph restore"):
            omnigraph.open(tmp_path / "backups", read_only=read_only)
    with pytest.raises(CopyRefused):
        graph.clone(tmp_path / "backups")


def test_old_backups_are_removed_with_the_files_that_only_they_need(graph: Graph, tmp_path: Path) -> None:
    graph.create_branch("short")
    graph.load([person("Short")], mode="append", branch="short")
    graph.backup(tmp_path / "backups")
    graph.delete_branch("short")
    second = graph.backup(tmp_path / "backups")
    assert any("short." in name for name in files(tmp_path / "backups"))
    graph.load([person("Flo")], mode="append")
    third = graph.backup(tmp_path / "backups", keep=2)
    assert len(third.removed) == 1
    assert third.files_removed > 0
    assert not any("short." in name for name in files(tmp_path / "backups"))
    assert [b.id for b in omnigraph.backups(tmp_path / "backups")] == [second.backup.id, third.backup.id]
    for number, backup in enumerate((second.backup.id, third.backup.id)):
        omnigraph.restore(tmp_path / "backups", tmp_path / f"r{number}", backup=backup)
        write_and_merge(omnigraph.open(tmp_path / f"r{number}"))


def test_backups_of_another_line_of_history_are_not_mixed(graph: Graph, tmp_path: Path) -> None:
    first = graph.backup(tmp_path / "backups")
    graph.load([person("Lost")], mode="append")
    graph.backup(tmp_path / "backups")
    omnigraph.restore(tmp_path / "backups", tmp_path / "restored", backup=first.backup.id)
    restored = omnigraph.open(tmp_path / "restored")
    restored.load([person("Other")], mode="append")
    with pytest.raises(CopyRefused, match="does not have"):
        restored.backup(tmp_path / "backups")
    restored.backup(tmp_path / "other backups")


def test_what_is_not_there_is_named(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(BackupNotFound, match="there is no backup at"):
        omnigraph.backups(tmp_path / "nothing")
    with pytest.raises(BackupNotFound):
        omnigraph.restore(tmp_path / "nothing", tmp_path / "restored")
    graph.backup(tmp_path / "backups")
    with pytest.raises(BackupNotFound, match="omnigraph backups"):
        omnigraph.restore(tmp_path / "backups", tmp_path / "restored", backup="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(InvalidArgument, match="keep"):
        graph.backup(tmp_path / "backups", keep=0)
    assert not (tmp_path / "restored").exists()


def test_a_graph_is_not_restored_over_another(graph: Graph, tmp_path: Path) -> None:
    graph.backup(tmp_path / "backups")
    with pytest.raises((GraphExists, CopyRefused)):
        omnigraph.restore(tmp_path / "backups", graph.address)
    omnigraph.init(tmp_path / "other", "node A { name: String @key }")
    with pytest.raises(CopyRefused):
        omnigraph.restore(tmp_path / "backups", tmp_path / "other")
    with pytest.raises(CopyRefused):
        graph.backup(tmp_path / "other")


def test_a_damaged_backup_is_named_and_others_can_be_restored(graph: Graph, tmp_path: Path) -> None:
    first = graph.backup(tmp_path / "backups").backup.id
    graph.load([person("Flo")], mode="append")
    known = files(tmp_path / "backups")
    second = graph.backup(tmp_path / "backups").backup.id
    victim = next(name for name in files(tmp_path / "backups") - known if "nodes/" in name and "/data/" in name)
    content = (tmp_path / "backups" / victim).read_bytes()
    (tmp_path / "backups" / victim).write_bytes(content[:-5] + b"#" + content[-4:])
    with pytest.raises(ObjectDamaged, match=Path(victim).name):
        omnigraph.restore(tmp_path / "backups", tmp_path / "r2", backup=second)
    with pytest.raises(CopyUnfinished):
        omnigraph.open(tmp_path / "r2")
    omnigraph.restore(tmp_path / "backups", tmp_path / "r1", backup=first)
    assert "Flo" not in names(omnigraph.open(tmp_path / "r1"))


KILLED = ["copy.after_claim", "copy.after_content", "copy.after_versions", "copy.before_end"]


@pytest.mark.parametrize("failpoint", sampled(KILLED, 1))
def test_a_backup_that_is_killed_leaves_the_earlier_ones_and_is_made_again(
    graph: Graph, tmp_path: Path, failpoint: str
) -> None:
    first = graph.backup(tmp_path / "backups").backup
    graph.load([person("Flo")], mode="append", branch="dev")
    see_killed(failpoint, back_up, graph.address, str(tmp_path / "backups"))
    assert omnigraph.backups(tmp_path / "backups") == [first]
    omnigraph.restore(tmp_path / "backups", tmp_path / "r1")
    assert "Flo" not in names(omnigraph.open(tmp_path / "r1"), "dev")
    graph.backup(tmp_path / "backups")
    omnigraph.restore(tmp_path / "backups", tmp_path / "r2")
    assert glance(omnigraph.open(tmp_path / "r2")) == glance(graph)


def back_up(uri: str, target: str) -> None:
    omnigraph.open(uri, read_only=True).backup(target)


def test_a_removal_that_is_killed_leaves_files_that_a_later_one_removes(graph: Graph, tmp_path: Path) -> None:
    graph.create_branch("short")
    graph.load([person("Short")], mode="append", branch="short")
    graph.backup(tmp_path / "backups")
    graph.delete_branch("short")
    see_killed("backup.before_removal", back_up_keeping_one, graph.address, str(tmp_path / "backups"))
    assert len(omnigraph.backups(tmp_path / "backups")) == 1
    omnigraph.restore(tmp_path / "backups", tmp_path / "restored")
    assert glance(omnigraph.open(tmp_path / "restored")) == glance(graph)


def back_up_keeping_one(uri: str, target: str) -> None:
    omnigraph.open(uri, read_only=True).backup(target, keep=1)


@pytest.mark.parametrize("failpoint", sampled(KILLED[::-1], 1))
def test_a_clone_or_restore_that_is_killed_is_no_graph_and_goes_on(
    graph: Graph, tmp_path: Path, failpoint: str
) -> None:
    graph.backup(tmp_path / "backups")
    for work, source in ((clone, graph.address), (restore, str(tmp_path / "backups"))):
        target = tmp_path / work.__name__
        see_killed(failpoint, work, source, str(target))
        for read_only in (True, False):
            with pytest.raises(CopyUnfinished):
                omnigraph.open(target, read_only=read_only)
        work(source, str(target))
        assert glance(omnigraph.open(target)) == glance(graph)
        write_and_merge(omnigraph.open(target))


def clone(uri: str, target: str) -> None:
    omnigraph.open(uri, read_only=True).clone(target)


def restore(uri: str, target: str) -> None:
    omnigraph.restore(uri, target)


@pytest.mark.parametrize("failpoint", sampled(KILLED[1:], 1))
def test_an_update_that_is_killed_leaves_a_copy_that_can_be_read(
    graph: Graph, tmp_path: Path, failpoint: str
) -> None:
    graph.clone(tmp_path / "copy")
    graph.load([person("Flo")], mode="append", branch="dev")
    graph.load([person("Gil")], mode="append")
    see_killed(failpoint, clone, graph.address, str(tmp_path / "copy"))
    reader = omnigraph.open(tmp_path / "copy", read_only=True)
    assert names(reader, "dev") in (names(graph, "dev"), names(graph, "dev") - {"Flo"})
    with pytest.raises(CopyUnfinished):
        omnigraph.open(tmp_path / "copy")
    graph.clone(tmp_path / "copy")
    assert glance(omnigraph.open(tmp_path / "copy")) == glance(graph)
    write_and_merge(omnigraph.open(tmp_path / "copy"))
