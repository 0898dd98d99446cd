"""Stores that do not do what we need: they must say so, and never look like an empty store."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.processes import children, say
from tests.stores import S3Server, Store, present

from omnigraph.errors import StorageUnavailable, StoreUnsupported
from omnigraph.storage.objects import ObjectStore, require_conditional_put

OPERATIONS: dict[str, Callable[[ObjectStore], object]] = {
    "get": lambda objects: objects.get("a"),
    "put": lambda objects: objects.put("a", b"x"),
    "put_if_absent": lambda objects: objects.put_if_absent("new", b"x"),
    "put_if_match": lambda objects: objects.put_if_match("a", b"y", present(objects, "a").token),
    "list": lambda objects: objects.list("folder"),
    "delete": lambda objects: objects.delete("a"),
    "delete_prefix": lambda objects: objects.delete_prefix("folder"),
    "exists": lambda objects: objects.exists("folder"),
    "has": lambda objects: objects.has("a"),
}
CHANGES = ("put", "put_if_absent", "put_if_match", "delete", "delete_prefix")


def give_up_privileges() -> None:
    """In a child: obey permission bits, also as root."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    assert ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)()) == 0


def try_as_anybody(store: Store, name: str) -> None:
    """In a child without privileges: read everything, then try one operation and say what came of it."""
    give_up_privileges()
    objects = store.objects()
    try:
        if name != "list":
            say(f"reads {objects.list('')}")
        OPERATIONS[name](objects)
    except StorageUnavailable as error:
        say(error)


@contextmanager
def locked(folder: Path, mode: int) -> Iterator[None]:
    """Give a folder and those below it other permissions for a while."""
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for each in folders:
        each.chmod(mode)
    try:
        yield
    finally:
        for each in folders:
            each.chmod(0o755)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_store_that_lets_nobody_in_is_not_an_empty_store(s3_server: S3Server, name: str) -> None:
    place = s3_server.refusing_store()
    with pytest.raises(StorageUnavailable) as caught:
        OPERATIONS[name](place.objects())
    assert caught.value.address == place.uri


@pytest.mark.parametrize("name", ["put", "put_if_absent", "list", "exists"])
def test_a_bucket_that_is_not_there_is_not_an_empty_bucket(s3_server: S3Server, name: str) -> None:
    place = Store("s3://no-such-bucket/g", s3_server.options())
    with pytest.raises(StorageUnavailable, match="no-such-bucket"):
        OPERATIONS[name](place.objects())


@pytest.mark.parametrize("name", ["put", "put_if_absent"])
def test_a_file_where_a_folder_must_be(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("I am in the way")
    with pytest.raises(StorageUnavailable, match="file"):
        OPERATIONS[name](Store(str(tmp_path / "file" / "g")).objects())


def test_a_folder_where_an_object_must_be(local_store: Store) -> None:
    objects = local_store.objects()
    objects.put("a/b", b"x")
    with pytest.raises(StorageUnavailable, match="a"):
        objects.put("a", b"x")
    assert objects.has("a/b")


def test_a_name_that_the_disk_cannot_hold(local_store: Store) -> None:
    objects = local_store.objects()
    objects.put("a", b"x")
    for operation in (objects.has, objects.get, lambda key: objects.put(key, b"x")):
        with pytest.raises(StorageUnavailable):
            operation("x" * 300)


@pytest.mark.parametrize("name", CHANGES)
def test_a_read_only_disk_can_be_read_and_says_what_it_refuses(local_store: Store, name: str) -> None:
    objects = local_store.objects()
    objects.put("a", b"x")
    objects.put("folder/b", b"x")
    with locked(Path(local_store.uri), 0o555), children((try_as_anybody, local_store, name)) as (child,):
        assert child.hear() == "reads ['a', 'folder/b']"
        assert child.hear().startswith(f"the store at {local_store.uri}/")
    assert objects.list("") == ["a", "folder/b"]


def test_a_folder_that_may_not_be_read_is_not_an_empty_folder(local_store: Store) -> None:
    local_store.objects().put("folder/b", b"x")
    with locked(Path(local_store.uri) / "folder", 0), children((try_as_anybody, local_store, "list")) as (child,):
        assert child.hear().startswith(f"the store at {local_store.uri}/folder failed: ")


class TestTheProbe:
    def test_a_store_that_keeps_conditions_is_accepted(self, store: Store) -> None:
        objects = store.objects()
        require_conditional_put(objects, store.address, "1")
        assert objects.list("") == [], "the probe cleans up"

    def test_a_store_that_ignores_conditions_is_refused(self, s3_server: S3Server) -> None:
        place = s3_server.careless_store()
        with pytest.raises(StoreUnsupported) as caught:
            require_conditional_put(place.objects(), place.address, "1")
        assert (caught.value.address, caught.value.store) == (place.uri, place.options["aws_endpoint"])
        assert place.objects().list("") == []
