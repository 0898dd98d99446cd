"""One contract for control objects, on a disk, in memory and on S3."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.stores import Store, present

from omnigraph.storage.objects import ObjectStore

pytestmark = pytest.mark.quick_on_s3


@pytest.fixture
def objects(store: Store) -> ObjectStore:
    return store.objects()


class TestOneObject:
    def test_what_is_put_can_be_got(self, objects: ObjectStore) -> None:
        token = objects.put("a/b.json", b"content")
        found = objects.get("a/b.json")
        assert found is not None
        assert (found.content, found.token) == (b"content", token)

    def test_there_may_be_nothing(self, objects: ObjectStore) -> None:
        assert objects.get("a") is None
        objects.put("a/b", b"x")
        assert objects.get("a") is None
        assert objects.get("a/b/c") is None

    def test_a_put_replaces_what_was_there(self, objects: ObjectStore) -> None:
        objects.put("a", b"long content")
        objects.put("a", b"short")
        found = present(objects, "a")
        assert found.content == b"short"

    def test_an_object_may_be_empty(self, objects: ObjectStore) -> None:
        token = objects.put("a", b"")
        found = present(objects, "a")
        assert (found.content, found.token) == (b"", token)
        assert objects.has("a")

    def test_another_content_has_another_token(self, objects: ObjectStore) -> None:
        assert objects.put("a", b"1") != objects.put("a", b"2")

    @pytest.mark.parametrize("key", ["with space/a b.json", "ünïcode/日本.json", "50%/a%20b", "q?x=1&y", "a#b"])
    def test_a_key_is_taken_literally(self, store: Store, key: str) -> None:
        objects = store.objects()
        objects.put(key, b"x")
        assert objects.list("") == [key]
        assert objects.has(key)
        found = present(store.objects(), key)
        assert found.content == b"x"
        objects.delete(key)
        assert objects.list("") == []

    def test_other_clients_see_it_at_once(self, store: Store) -> None:
        store.objects().put("a", b"x")
        assert store.objects().has("a")


class TestPutIfAbsent:
    def test_it_writes_where_nothing_is(self, objects: ObjectStore) -> None:
        token = objects.put_if_absent("a/b", b"first")
        found = present(objects, "a/b")
        assert (found.content, found.token) == (b"first", token)

    def test_it_leaves_what_is_there(self, objects: ObjectStore) -> None:
        objects.put("a", b"first")
        assert objects.put_if_absent("a", b"second") is None
        assert objects.put_if_absent("a", b"first") is None
        found = present(objects, "a")
        assert found.content == b"first"

    def test_it_writes_again_after_a_delete(self, objects: ObjectStore) -> None:
        objects.put("a", b"first")
        objects.delete("a")
        assert objects.put_if_absent("a", b"second") is not None


class TestPutIfMatch:
    def test_it_replaces_the_content_the_token_names(self, objects: ObjectStore) -> None:
        first = objects.put("a", b"1")
        second = objects.put_if_match("a", b"2", first)
        found = present(objects, "a")
        assert (found.content, found.token) == (b"2", second)

    def test_tokens_of_every_kind_of_put_and_of_get_are_good(self, objects: ObjectStore) -> None:
        token = objects.put_if_absent("a", b"1")
        assert token is not None
        token = objects.put_if_match("a", b"2", token)
        assert token is not None
        found = present(objects, "a")
        assert objects.put_if_match("a", b"3", found.token) is not None

    def test_a_stale_token_is_refused(self, objects: ObjectStore) -> None:
        stale = objects.put("a", b"1")
        objects.put("a", b"2")
        assert objects.put_if_match("a", b"3", stale) is None
        found = present(objects, "a")
        assert found.content == b"2"

    def test_a_token_that_never_was_is_refused(self, objects: ObjectStore) -> None:
        objects.put("a", b"1")
        assert objects.put_if_match("a", b"2", "0" * 32) is None

    def test_only_what_was_seen_is_retired(self, objects: ObjectStore) -> None:
        assert not objects.retire_if_match("a", "0" * 32)
        stale = objects.put("a", b"1")
        token = objects.put("a", b"2")
        assert not objects.retire_if_match("a", stale)
        assert present(objects, "a").content == b"2"
        assert objects.retire_if_match("a", token)
        assert objects.get("a") is None
        assert not objects.has("a")
        assert objects.put_if_absent("a", b"3") is not None

    def test_an_absent_object_is_refused_and_stays_absent(self, objects: ObjectStore) -> None:
        token = objects.put("a", b"1")
        objects.delete("a")
        assert objects.put_if_match("a", b"2", token) is None
        assert objects.put_if_match("never", b"2", token) is None
        assert not objects.has("a")
        assert not objects.has("never")


class TestManyObjects:
    @pytest.fixture
    def objects(self, store: Store) -> ObjectStore:
        objects = store.objects()
        for key in ("refs/b.json", "refs/a/deep.json", "refs/a.json", "refs-2/c.json", "refs.json", "other"):
            objects.put(key, b"x")
        return objects

    def test_a_listing_is_sorted_and_goes_all_the_way_down(self, objects: ObjectStore) -> None:
        assert objects.list("refs") == ["refs/a.json", "refs/a/deep.json", "refs/b.json"]
        assert objects.list("refs/a") == ["refs/a/deep.json"]

    def test_an_object_is_not_below_itself(self, objects: ObjectStore) -> None:
        assert objects.list("other") == []
        assert objects.list("nowhere") == []

    def test_below_the_root_is_everything(self, objects: ObjectStore) -> None:
        listed = ["other", "refs-2/c.json", "refs.json", "refs/a.json", "refs/a/deep.json", "refs/b.json"]
        assert objects.list("") == sorted(listed)

    def test_a_slash_at_the_end_changes_nothing(self, objects: ObjectStore) -> None:
        assert objects.list("refs/") == objects.list("refs")
        assert objects.exists("refs/")
        objects.delete_prefix("refs/")
        assert objects.list("refs") == []

    def test_two_graphs_in_one_bucket_do_not_see_each_other(self, store: Store) -> None:
        for name, neighbour in (("g", "g2"), ("g2", "g")):
            mine = Store(store.uri + name[1:], store.options).objects()
            mine.put("who", name.encode())
            mine.put(f"only-{name}", b"")
            assert not mine.has(f"only-{neighbour}")
            assert sorted(mine.list("")) == [f"only-{name}", "who"]

    def test_existence_is_that_of_an_object_or_of_something_below(self, objects: ObjectStore) -> None:
        assert [objects.exists(key) for key in ("", "refs", "refs/a", "refs/a.json", "other")] == [True] * 5
        assert [objects.exists(key) for key in ("ref", "refs/a.jso", "refs/a/", "other/x")] == [
            False,
            False,
            True,
            False,
        ]

    def test_has_looks_for_one_object(self, objects: ObjectStore) -> None:
        assert objects.has("refs/a.json")
        assert [objects.has(key) for key in ("refs", "refs/a", "ref", "other/x")] == [False] * 4

    def test_a_deleted_object_is_gone_and_may_be_deleted_again(self, objects: ObjectStore) -> None:
        for _ in range(2):
            objects.delete("refs/a/deep.json")
            assert objects.get("refs/a/deep.json") is None
            assert not objects.exists("refs/a"), "an empty folder is nothing"
        objects.delete("never/was")

    def test_deleting_a_key_leaves_what_is_below_it(self, objects: ObjectStore) -> None:
        objects.delete("refs")
        objects.delete("other/x")
        assert objects.has("refs/a.json")
        assert objects.has("other")

    def test_deleting_below_a_prefix_takes_all_of_it_and_nothing_else(self, objects: ObjectStore) -> None:
        for prefix in ("refs", "refs", "never", "other"):
            objects.delete_prefix(prefix)
        assert objects.list("") == ["other", "refs-2/c.json", "refs.json"]
        assert not objects.exists("refs")

    def test_a_listing_may_have_many_pages(self, s3_store: Store) -> None:
        objects = s3_store.objects()
        keys = [f"many/{number:04}" for number in range(1050)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda key: objects.put(key, b""), keys))
        assert objects.list("many") == keys
        objects.delete_prefix("many")
        assert objects.list("many") == []


class TestWholeOrNotThere:
    def test_an_acknowledged_object_can_be_read_in_full(self, objects: ObjectStore) -> None:
        for size in (1, 1 << 10, 12 << 20):
            content = os.urandom(size)
            token = objects.put("large", content)
            found = present(objects, "large")
            assert found.content == content
            assert found.token == token


class TestFiles:
    def test_entries_say_how_large_and_how_old_they_are(self, objects: ObjectStore) -> None:
        objects.put("a/b/c.json", b"content")
        objects.put("ab/d", b"")
        (found,) = objects.entries("a")
        assert (found.key, found.size) == ("a/b/c.json", 7)
        assert found.modified.tzinfo is not None
        assert sorted(entry.key for entry in objects.entries("") if "lock" not in entry.key) == [
            "a/b/c.json",
            "ab/d",
        ]
        assert list(objects.entries("none")) == []

    def test_many_are_removed_at_once_whether_they_are_there_or_not(self, objects: ObjectStore) -> None:
        keys = [f"a/{number}" for number in range(30)]
        for key in keys[::2]:
            objects.put(key, b"x")
        objects.put("a/kept", b"x")
        objects.delete_all(keys)
        objects.prune(["a", "b"])
        assert objects.list("a") == ["a/kept"]
        objects.delete_all(["a/kept"])
        objects.delete_all([])
        objects.prune(["a"])
        assert objects.list("") == []
