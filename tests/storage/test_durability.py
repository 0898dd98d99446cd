"""Local control objects survive power cuts, and writers that are stopped or killed in the middle hinder nobody."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.processes import children
from tests.storage.object_writers import die_while_putting, stop_while, write_too_much
from tests.stores import Store, present

from omnigraph.errors import LockTimeout, RequestError, StorageUnavailable
from omnigraph.storage.control.local import LocalObjects
from omnigraph.storage.files import durability


class Disk:
    """What reached the disk, in order: `sync NAME` for files and folders, `name NAME` for new names."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.events: list[str] = []

    def shown(self, path: str | Path) -> str:
        inner = os.path.relpath(path, self.root)
        return "half" if "#" in inner else inner


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Watch what is brought to the disk below a root that does not exist yet."""
    seen = Disk(tmp_path / "g")
    sync, replace, link, unlink = os.fsync, os.replace, os.link, Path.unlink

    def watched_sync(descriptor: int) -> None:
        seen.events.append(f"sync {seen.shown(Path(f'/proc/self/fd/{descriptor}').readlink())}")
        sync(descriptor)

    def watched_replace(old: Path, new: Path) -> None:
        seen.events.append(f"name {seen.shown(new)}")
        replace(old, new)

    def watched_link(old: Path, new: Path) -> None:
        seen.events.append(f"name {seen.shown(new)}")
        link(old, new)

    def watched_unlink(path: Path, missing_ok: bool = False) -> None:
        if "#" not in path.name:
            seen.events.append(f"remove {seen.shown(path)}")
        unlink(path, missing_ok)

    monkeypatch.setattr(os, "fsync", watched_sync)
    monkeypatch.setattr(os, "replace", watched_replace)
    monkeypatch.setattr(os, "link", watched_link)
    monkeypatch.setattr(Path, "unlink", watched_unlink)
    return seen


class TestPowerCuts:
    @pytest.mark.parametrize("operation", ["put", "put_if_absent"])
    def test_content_comes_before_the_name_and_the_folders_after_it(self, disk: Disk, operation: str) -> None:
        objects = LocalObjects(disk.root)
        getattr(objects, operation)("a/b/c.json", b"x")
        assert disk.events == ["sync half", "name a/b/c.json", "sync a/b", "sync a", "sync .", "sync .."]

    def test_folders_that_are_known_are_not_synced_again(self, disk: Disk) -> None:
        objects = LocalObjects(disk.root)
        objects.put("a/b/c.json", b"x")
        disk.events.clear()
        objects.put("a/b/d.json", b"x")
        assert disk.events == ["sync half", "name a/b/d.json", "sync a/b"]

    def test_what_is_deleted_stays_deleted(self, disk: Disk) -> None:
        objects = LocalObjects(disk.root)
        objects.put("a/b.json", b"x")
        disk.events.clear()
        objects.delete("a/b.json")
        assert disk.events == ["remove a/b.json", "sync a"]

    def test_files_of_others_are_synced_once_each(self, disk: Disk) -> None:
        for name in ("t/data/1", "t/data/2", "t/_versions/1"):
            (disk.root / name).parent.mkdir(parents=True, exist_ok=True)
            (disk.root / name).write_bytes(b"x")
        files = [disk.root / name for name in ("t/data/1", "t/data/2", "t/data/1", "t/_versions/1")]
        durability.sync_files(files, disk.root)
        assert sorted(disk.events[:3]) == ["sync t/_versions/1", "sync t/data/1", "sync t/data/2"]
        assert sorted(disk.events[3:5]) == ["sync t/_versions", "sync t/data"]
        assert disk.events[5:] == ["sync t", "sync ."]

    def test_a_file_that_cannot_be_synced_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(StorageUnavailable, match="gone"):
            durability.sync_files([tmp_path / "gone"], tmp_path)


class TestTheSetting:
    def test_off_syncs_nothing(self, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OMNIGRAPH_SYNC", "off")
        objects = LocalObjects(disk.root)
        objects.put("a/b", b"x")
        objects.put_if_absent("a/c", b"x")
        objects.delete("a/b")
        durability.sync_files([disk.root / "a/c"], disk.root)
        assert not [event for event in disk.events if event.startswith("sync")]
        assert present(objects, "a/c").content == b"x"

    def test_a_value_nobody_knows_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OMNIGRAPH_SYNC", "fast")
        with pytest.raises(RequestError, match="OMNIGRAPH_SYNC=fast"):
            LocalObjects(tmp_path).put("a", b"x")
        assert LocalObjects(tmp_path).list("") == []


class TestOthers:
    def test_a_writer_that_is_stopped_keeps_nobody_waiting(self, local_store: Store) -> None:
        with children((stop_while, local_store, "put")) as (child,):
            assert child.hear() == "frozen"
            objects = local_store.objects()
            objects.put("a", b"mine")
            objects.put("b", b"mine")
            assert objects.put_if_absent("c", b"mine") is not None
            objects.delete("b")
            assert objects.list("") == ["a", "c"]
            assert present(objects, "a").content == b"mine"

    def test_a_replacement_that_is_stopped_is_named_to_those_who_wait(self, local_store: Store) -> None:
        with children((stop_while, local_store, "put_if_match")) as (child,):
            assert child.hear() == "frozen"
            objects = LocalObjects(Path(local_store.uri), wait=0.05)
            with pytest.raises(LockTimeout) as caught:
                objects.put("a", b"mine")
            assert caught.value.lock == "__locks/objects.lock"
            assert str(caught.value.holder).endswith(f":{child.pid}")
            with pytest.raises(LockTimeout, match=r"__locks/objects\.lock"):
                objects.put_if_match("a", b"mine", present(objects, "a").token)
            assert objects.put_if_absent("c", b"mine") is not None

    def test_what_a_killed_writer_leaves_is_no_object(self, local_store: Store) -> None:
        objects = local_store.objects()
        objects.put("folder/a", b"before")
        ended = pytest.raises(AssertionError, match="the child ended")
        with children((die_while_putting, local_store)) as (child,), ended:
            child.hear()
        assert len(list((Path(local_store.uri) / "folder").iterdir())) == 2
        assert objects.list("") == ["folder/a"]
        assert present(objects, "folder/a").content == b"before"
        objects.put("folder/a", b"mine")
        objects.delete_prefix("folder")
        assert not (Path(local_store.uri) / "folder").exists()

    def test_what_cannot_be_written_in_full_is_refused_and_leaves_nothing(self, local_store: Store) -> None:
        with children((write_too_much, local_store, 1000)) as (child,):
            for name in ("a", "b"):
                assert child.hear().startswith(f"the store at {local_store.uri}/folder/{name} failed: [Errno 27]")
            assert child.hear() == "before"
        assert [path.name for path in (Path(local_store.uri) / "folder").iterdir()] == ["a"]
