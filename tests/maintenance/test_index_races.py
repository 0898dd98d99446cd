"""Building indexes while others write, build or read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count

from tests.maintenance.looks import ensure, ids, indexed, reasons, table
from tests.recovery.racers import once
from tests.recovery.scenes import KNOWS, PERSON, assert_settled, new_graph, person
from tests.stores import Store

import omnigraph
from omnigraph import Graph, failpoints


def test_rows_that_are_added_meanwhile_wait(store: Store) -> None:
    """What was built for the rows before them is committed on top of them, and they are found by a scan."""
    graph = new_graph(store)
    other = omnigraph.open(store.uri, storage_options=store.options)
    meanwhile = once(lambda: other.load([person("Cy", 9)], mode="append"))
    with failpoints.armed("write.after_stage", meanwhile):
        report = ensure(graph)
    assert [c.kind for c in graph.commits()][:2] == ["ensure_indices", "load"]
    assert len(report.built) == len({(b.table_key, b.name) for b in report.built}) == 10
    assert set(indexed(graph, PERSON).values()) == {2}
    assert ids(graph, PERSON, "name = 'Cy'") == ["Cy"]
    ensure(graph)
    assert set(indexed(graph, PERSON).values()) == {3}
    assert ids(graph, PERSON, "name = 'Cy'") == ["Cy"]
    assert_settled(graph)


def test_nothing_is_built_twice_for_a_table_that_grows(local_store: Store) -> None:
    graph = new_graph(local_store)
    other = omnigraph.open(local_store.uri)
    with failpoints.armed("write.after_stage", once(lambda: other.load([person("Cy")], mode="append"))):
        ensure(graph)
    assert (len(segments(graph, KNOWS)), len(segments(graph, PERSON))) == (3, 2)


def test_files_that_are_replaced_meanwhile_are_indexed_again(local_store: Store) -> None:
    """Only those; and what was built in vain is removed."""
    graph = new_graph(local_store)
    other = omnigraph.open(local_store.uri)
    everyone = [person("Ada", 1), person("Bo", 2)]
    with failpoints.armed("write.after_stage", once(lambda: other.load(everyone, mode="overwrite"))):
        ensure(graph)
    assert set(indexed(graph, PERSON).values()) == {2}
    assert (len(segments(graph, KNOWS)), len(segments(graph, PERSON))) == (3, 2)
    assert ids(graph, PERSON, "name = 'Ada'") == ["Ada"]
    assert_settled(graph)


def test_a_table_whose_files_are_replaced_again_and_again_waits(local_store: Store) -> None:
    graph = new_graph(local_store)
    other = omnigraph.open(local_store.uri)
    everyone = [person("Ada", 1), person("Bo", 2)]
    disturb = each_time(lambda: other.load(everyone, mode="overwrite"))
    with failpoints.armed("write.after_stage", disturb):
        report = ensure(graph)
    assert reasons(report) == {PERSON: {"other writers changed it meanwhile; try again"}}
    assert (indexed(graph, PERSON), segments(graph, PERSON), len(indexed(graph, KNOWS))) == ({}, set(), 3)
    assert_settled(graph)


def test_writers_who_never_rest_do_not_keep_it_from_ending(local_store: Store) -> None:
    graph = new_graph(local_store)
    other = omnigraph.open(local_store.uri)
    numbers = count()
    disturb = each_time(lambda: other.load([person(f"p{next(numbers)}")], mode="append"))
    with failpoints.armed("write.after_stage", disturb):
        ensure(graph)
    assert next(numbers) == 2
    assert set(indexed(graph, PERSON).values()) == {2}
    assert_settled(graph)


def test_two_at_once_build_once(local_store: Store) -> None:
    graph = new_graph(local_store)
    other = omnigraph.open(local_store.uri)
    with failpoints.armed("write.after_stage", once(lambda: ensure(other))):
        report = ensure(graph)
    assert (report.commit, report.built) == (None, ())
    assert [c.kind for c in graph.commits()].count("ensure_indices") == 1


def test_readers_are_not_disturbed(local_store: Store) -> None:
    """Lance bars a handle while it builds through it; it is not the one that readers use."""
    graph = new_graph(local_store)
    graph.load([person(f"p{n}", n) for n in range(20_000)], mode="append")
    handle, problems, reads, done = table(graph, PERSON), [], count(), threading.Event()

    def read() -> None:
        while not done.is_set():
            try:
                handle.scanner(columns=["id"], filter="id = 'Ada'").to_table()
                next(reads)
            except RuntimeError as error:
                problems.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert ensure(graph).commit is not None
    finally:
        done.set()
        reader.join()
    assert problems == []
    assert next(reads) > 0


def segments(graph: Graph, table_key: str) -> set[str]:
    """The parts of indexes that a table's folder has, whether anything refers to them or not."""
    prefix = f"{graph.snapshot().tables[table_key].location}/_indices"
    return {key.removeprefix(prefix).split("/")[1] for key in graph._repository.objects.list(prefix)}


def each_time(action: Callable[[], object]) -> Callable[[], None]:
    """An action for a failpoint that the action itself comes by."""
    running = threading.Lock()

    def act() -> None:
        if running.acquire(blocking=False):
            try:
                action()
            finally:
                running.release()

    return act
