"""Control objects under many hands: one winner, nothing lost, nothing half-written."""

from __future__ import annotations

from tests.processes import children, start_together
from tests.storage.contenders import CLAIMS, claim, count_up, rewrite
from tests.storage.threads import THREADS, at_once, meanwhile
from tests.stores import Store, present

ROUNDS = 60


def test_of_many_threads_that_create_an_object_one_wins(store: Store) -> None:
    objects = store.objects()
    contents = [b"by %d" % number for number in range(THREADS)]
    for key in ("first", "second", "third"):

        def create(number: int, key: str = key) -> str | None:
            return objects.put_if_absent(key, contents[number])

        winners = [number for number, token in enumerate(at_once(create)) if token is not None]
        assert len(winners) == 1
        found = present(objects, key)
        assert found.content == contents[winners[0]]


def test_of_many_processes_that_create_objects_one_wins_each(shared_store: Store) -> None:
    with children(*[(claim, shared_store, number) for number in range(4)]) as contenders:
        start_together(contenders)
        won = [set(child.hear().split()) for child in contenders]
    objects = shared_store.objects()
    for number, keys in enumerate(won):
        assert all((found := objects.get(key)) and found.content == b"%d" % number for key in keys)
    assert sum(len(keys) for keys in won) == len(CLAIMS)


def test_of_many_threads_that_replace_an_object_one_wins(store: Store) -> None:
    objects = store.objects()
    token = objects.put("a", b"start")
    for turn in range(3):
        contents = [b"%d by %d" % (turn, number) for number in range(THREADS)]

        def replace(number: int, token: str = token, contents: list[bytes] = contents) -> str | None:
            return objects.put_if_match("a", contents[number], token)

        winners = [number for number, new in enumerate(at_once(replace)) if new is not None]
        assert len(winners) == 1
        found = present(objects, "a")
        assert found.content == contents[winners[0]]
        token = found.token


def test_processes_that_count_together_lose_nothing(shared_store: Store) -> None:
    shared_store.objects().put("counter", b"0")
    with children(*[(count_up, shared_store, 15) for _ in range(4)]) as counters:
        start_together(counters)
        for child in counters:
            child.join()
    found = present(shared_store.objects(), "counter")
    assert found.content == b"60"


def test_a_replacement_never_undoes_a_put_it_has_not_seen(store: Store) -> None:
    objects = store.objects()
    objects.put("a", b"start")
    predecessor: dict[bytes, bytes] = {}

    def replace(number: int) -> None:
        seen = objects.get("a")
        assert seen is not None
        content = b"replacement %d" % number
        predecessor[content] = seen.content
        if objects.put_if_match("a", content, seen.token) is None:
            del predecessor[content]

    with meanwhile(replace):
        for number in range(ROUNDS):
            mine = b"put %d" % number
            objects.put("a", mine)
            found = present(objects, "a")
            content = found.content
            while content != mine:
                assert content in predecessor, "a put is gone, and no replacement has seen it"
                content = predecessor[content]


def test_deleting_together_leaves_nothing(store: Store) -> None:
    objects = store.objects()
    for key in (f"heap/{a}/{b}" for a in range(8) for b in range(4)):
        objects.put(key, b"")
    at_once(lambda _: objects.delete_prefix("heap"), threads=4)
    assert objects.list("heap") == []


def test_a_listing_survives_folders_that_come_and_go(store: Store) -> None:
    objects = store.objects()
    objects.put("mix/stays", b"")

    def come_and_go(_: int) -> None:
        objects.put("mix/goes/a/b", b"")
        objects.delete_prefix("mix/goes")

    with meanwhile(come_and_go):
        for _ in range(ROUNDS):
            assert set(objects.list("mix")) - {"mix/goes/a/b"} == {"mix/stays"}
            assert objects.exists("mix")


def test_a_put_survives_a_folder_that_others_remove(store: Store) -> None:
    objects = store.objects()
    with meanwhile(lambda _: objects.delete_prefix("folder")):
        for number in range(ROUNDS):
            objects.put(f"folder/{number}/a", b"")
            objects.put_if_absent(f"folder/{number}/b", b"")


def test_a_reader_sees_all_of_one_write_while_a_writer_replaces_it(store: Store) -> None:
    objects = store.objects()
    objects.put("a", b"0" * 50_000)

    with meanwhile(lambda number: objects.put("a", b"%d" % (number % 10) * (50_000 + number % 7))):
        for _ in range(ROUNDS):
            found = present(objects, "a")
            assert len(set(found.content)) == 1, "two writes in one object"
            assert len(found.content) >= 50_000, "part of an object"
            assert objects.has("a")
            assert objects.list("") == ["a"]


def test_what_one_process_writes_another_reads_whole(shared_store: Store) -> None:
    """The writer is another process and dies in the middle of its work; what it acknowledged is whole."""
    objects = shared_store.objects()
    objects.put("a", b"0" * 50_000)
    with children((rewrite, shared_store)) as (writer,):
        start_together([writer])
        for _ in range(ROUNDS):
            found = present(objects, "a")
            assert (len(found.content), len(set(found.content))) == (50_000, 1)
        writer.kill()
    found = present(objects, "a")
    assert (len(found.content), len(set(found.content))) == (50_000, 1)
    assert objects.list("") == ["a"], "what a dead writer leaves half-written is no object"
