"""Control objects under many hands: one winner, nothing lost, nothing half-written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from tests.processes import children, start_together
from tests.storage.contenders import CLAIMS, claim, count_up
from tests.stores import Store

T = TypeVar("T")
THREADS = 8


def at_once(work: Callable[[int], T], threads: int = THREADS) -> list[T]:
    """Run a function in many threads that start at the same moment."""
    barrier = threading.Barrier(threads)

    def start(number: int) -> T:
        barrier.wait(60)
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(start, range(threads)))


def test_of_many_threads_one_wins(store: Store) -> None:
    objects = store.objects()
    for turn in range(5):
        written = at_once(lambda number, turn=turn: objects.put_if_absent(f"{turn}", b"%d" % number))  # type: ignore[misc]
        winners = [number for number, token in enumerate(written) if token is not None]
        assert len(winners) == 1
        assert (found := objects.get(f"{turn}")) is not None
        assert found.content == b"%d" % winners[0]


def test_of_many_processes_one_wins(shared_store: Store) -> None:
    with children(*[(claim, shared_store, number) for number in range(4)]) as contenders:
        start_together(contenders)
        won = [set(child.hear().split()) for child in contenders]
    objects = shared_store.objects()
    for number, keys in enumerate(won):
        assert all((found := objects.get(key)) and found.content == b"%d" % number for key in keys)
    assert sum(len(keys) for keys in won) == len(CLAIMS)


def test_in_each_round_of_racing_threads_one_wins(store: Store) -> None:
    objects = store.objects()
    token = objects.put("a", b"start")
    for turn in range(5):
        contents = [b"%d by %d" % (turn, number) for number in range(THREADS)]
        written = at_once(lambda n, contents=contents, token=token: objects.put_if_match("a", contents[n], token))  # type: ignore[misc]
        winners = [number for number, new in enumerate(written) if new is not None]
        assert len(winners) == 1
        assert (found := objects.get("a")) is not None
        assert found.content == contents[winners[0]]
        token = found.token


def test_processes_that_count_together_lose_nothing(shared_store: Store) -> None:
    shared_store.objects().put("counter", b"0")
    with children(*[(count_up, shared_store, 15) for _ in range(4)]) as counters:
        start_together(counters)
        for child in counters:
            child.join()
    assert (found := shared_store.objects().get("counter")) is not None
    assert found.content == b"60"


def test_it_never_undoes_a_put_it_has_not_seen(store: Store) -> None:
    """A plain put that comes between reading and replacing makes the replacement fail."""
    objects = store.objects()
    objects.put("a", b"start")
    replaced: dict[bytes, bytes] = {}
    done = threading.Event()

    def replace() -> None:
        number = 0
        while not done.is_set():
            if (seen := objects.get("a")) is None:
                continue
            number += 1
            content = b"replacement %d" % number
            replaced[content] = seen.content
            if objects.put_if_match("a", content, seen.token) is None:
                del replaced[content]

    replacer = threading.Thread(target=replace)
    replacer.start()
    try:
        for number in range(150):
            mine = b"put %d" % number
            objects.put("a", mine)
            assert (found := objects.get("a")) is not None
            content = found.content
            while content != mine:
                assert content in replaced, "a put is gone, and no replacement has seen it"
                content = replaced[content]
    finally:
        done.set()
        replacer.join()


def test_deleting_together_leaves_nothing(store: Store) -> None:
    objects = store.objects()
    for key in (f"heap/{a}/{b}" for a in range(10) for b in range(5)):
        objects.put(key, b"")
    at_once(lambda _: objects.delete_prefix("heap"), threads=4)
    assert objects.list("heap") == []


def test_a_listing_survives_folders_that_come_and_go(store: Store) -> None:
    objects = store.objects()
    objects.put("mix/stays", b"")
    done = threading.Event()

    def come_and_go() -> None:
        while not done.is_set():
            objects.put("mix/goes/a/b", b"")
            objects.delete_prefix("mix/goes")

    mover = threading.Thread(target=come_and_go)
    mover.start()
    try:
        for _ in range(100):
            assert set(objects.list("mix")) - {"mix/goes/a/b"} == {"mix/stays"}
            assert objects.exists("mix")
    finally:
        done.set()
        mover.join()


def test_a_reader_sees_all_of_one_write_while_a_writer_replaces_it(store: Store) -> None:
    objects = store.objects()
    objects.put("a", b"0" * 50_000)
    done = threading.Event()

    def rewrite() -> None:
        number = 0
        while not done.is_set():
            number += 1
            objects.put("a", b"%d" % (number % 10) * (50_000 + number % 7))

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        for _ in range(100):
            assert (found := objects.get("a")) is not None
            assert len(set(found.content)) == 1, "two writes in one object"
            assert len(found.content) >= 50_000, "part of an object"
            assert objects.has("a")
            assert objects.list("") == ["a"]
    finally:
        done.set()
        writer.join()
