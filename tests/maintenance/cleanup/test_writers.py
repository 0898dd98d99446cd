"""Cleanups beside writers and readers, in this process and in others."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from tests.maintenance.cleanup.worlds import NOW, PEOPLE, add, connect, create, files, names, remove
from tests.processes import children, ready, say, start_together
from tests.sampling import quick_and_long
from tests.stores import Store

from omnigraph import Graph
from omnigraph.errors import ConflictError, HistoryReclaimed
from omnigraph.failpoints import armed


@pytest.fixture
def graph(local_store: Store) -> Graph:
    graph = create(local_store)
    for name in ("Ada", "Bo", "Cy"):
        add(graph, name)
    return graph


def once(work: Callable[[], object]) -> Callable[[], None]:
    """Work that is done the first time it is asked for."""
    left = [work]

    def run() -> None:
        while left:
            left.pop()()

    return run


WRITES: dict[str, Callable[[Graph], object]] = {
    "append": lambda graph: add(graph, "Di"),
    "delete": lambda graph: remove(graph, "Bo"),
    "update": lambda graph: graph.mutate('query q() { update Person set { age: 5 } where name = "Bo" }'),
    "overwrite": lambda graph: graph.load([{"type": "Person", "data": {"name": "Di"}}], mode="overwrite"),
    "indexes": lambda graph: graph.ensure_indices(),
    "compaction": lambda graph: graph.optimize(),
    "schema": lambda graph: graph.apply_schema(
        "node Person { name: String @key  age: I64?  mail: String? }\nnode City { name: String @key }\n"
        "edge Knows: Person -> Person { since: I32? }\n"
    ),
    "first write of a branch": lambda graph: add(graph, "Di", branch="dev"),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_whose_files_are_removed_before_its_commit_is_prepared_again(
    graph: Graph, local_store: Store, name: str
) -> None:
    """With no grace period a cleanup removes whatever is staged; the writer finds out, and nothing is lost."""
    graph.create_branch("dev")
    other = connect(local_store)
    removed: list[int] = []

    def clean() -> None:
        removed.append(other.cleanup(keep=1, grace=NOW, confirm=True).files_removed)

    with armed("write.after_stage", once(clean)):
        WRITES[name](graph)
    assert removed[0] > 0
    left = connect(local_store)
    expected = {"delete": {"Ada", "Cy"}, "overwrite": {"Di"}, "append": {"Ada", "Bo", "Cy", "Di"}}
    assert names(left) == expected.get(name, {"Ada", "Bo", "Cy"})
    add(left, "Zoe")
    assert "Zoe" in names(connect(local_store))


def test_a_state_that_is_tagged_during_a_cleanup_stays(graph: Graph, local_store: Store) -> None:
    """The tag is made when the cleanup has decided what goes, and before it holds the lock."""
    other, oldest = connect(local_store), graph.commits()[-2].graph_commit_id
    with armed("cleanup.after_mark", once(lambda: other.tag("v1", at=oldest))):
        graph.cleanup(keep=1, grace=NOW, confirm=True)
    assert names(connect(local_store), at="v1") == {"Ada"}
    with armed("cleanup.after_states", once(lambda: other.tag("v2"))):
        graph.cleanup(keep=1, grace=NOW, confirm=True)
    assert names(connect(local_store), at="v2") == {"Ada", "Bo", "Cy"}


def test_a_state_that_is_gone_cannot_be_tagged(graph: Graph, local_store: Store) -> None:
    other, oldest = connect(local_store), graph.commits()[-2].graph_commit_id
    assert names(other, at=oldest) == {"Ada"}
    graph.cleanup(keep=1, grace=NOW, confirm=True)
    with pytest.raises(HistoryReclaimed):
        other.tag("v1", at=oldest)


@pytest.mark.parametrize("failpoint", ["cleanup.after_states", "cleanup.after_versions", "cleanup.after_files"])
def test_what_is_written_during_a_cleanup_stays(graph: Graph, local_store: Store, failpoint: str) -> None:
    other = connect(local_store)

    def write() -> None:
        add(other, "Di")
        other.create_branch("dev")
        add(other, "Ed", branch="dev")
        remove(other, "Ada", branch="dev")

    with armed(failpoint, once(write)):
        graph.cleanup(keep=1, grace=NOW, confirm=True)
    left = connect(local_store)
    assert names(left) == {"Ada", "Bo", "Cy", "Di"}
    assert names(left, branch="dev") == {"Bo", "Cy", "Di", "Ed"}
    left.merge("dev")
    assert names(left) == {"Bo", "Cy", "Di", "Ed"}


class TestReaders:
    def test_within_the_grace_period_a_reader_finishes(self, graph: Graph) -> None:
        held = graph.snapshot()
        for name in ("Di", "Ed", "Flo"):
            add(graph, name)
        graph.optimize()
        graph.cleanup(keep=0, confirm=True)
        assert {row["p.name"] for row in graph.query(PEOPLE, at=held).rows} == {"Ada", "Bo", "Cy"}

    @pytest.mark.parametrize("has_read", [False, True])
    def test_after_it_a_reader_fails_with_the_reason(
        self, local_store: Store, graph: Graph, has_read: bool
    ) -> None:
        reader = connect(local_store, read_only=True)
        held = reader.snapshot()
        if has_read:
            reader.query(PEOPLE, at=held)
        for name in ("Di", "Ed", "Flo"):
            add(graph, name)
        graph.optimize()
        graph.cleanup(keep=1, grace=NOW, confirm=True)
        newest = graph.commits(limit=1)[0].graph_commit_id
        if has_read:
            assert len(reader.query(PEOPLE, at=held).rows) == 3, "all of it was in memory"
        else:
            with pytest.raises(HistoryReclaimed, match=f"{held.graph_commit_id}.*{newest}"):
                reader.query(PEOPLE, at=held)


def reporting(step: Callable[[int], object]) -> None:
    """In a child: repeat a step for ever, and say how each one ended."""
    ready()
    for number in count():
        try:
            step(number)
        except ConflictError as error:
            say(f"conflict {type(error).__name__}")
        except HistoryReclaimed:
            say("reclaimed")
        except BaseException as error:
            say(f"failed {error!r}")
            raise
        else:
            say(number)


def write_forever(store: Store, number: int) -> None:
    """Insert people, sometimes on a branch that comes and goes."""
    graph, branch = connect(store), f"w{number}"

    def write(step: int) -> None:
        if branch in {found.name for found in graph.branches()}:
            graph.delete_branch(branch)
        add(graph, f"{number}-{step}")
        if step % 5 == 0:
            graph.create_branch(branch)
            add(graph, f"{number}-{step}-b", branch=branch)
            graph.merge(branch)

    reporting(write)


def read_forever(store: Store) -> None:
    """Hold a snapshot for a while and read it again and again: it never changes."""
    graph = connect(store, read_only=True)

    def read(step: int) -> None:
        held = graph.snapshot()
        seen = [len(graph.query(PEOPLE, at=held).rows) for _ in range(3)]
        assert len(set(seen)) == 1

    reporting(read)


def clean_forever(store: Store, grace: str) -> None:
    graph = connect(store)
    reporting(lambda step: graph.cleanup(keep=step % 4, grace=grace, confirm=True))


@pytest.mark.parametrize("steps", quick_and_long(4, 25))
def test_writers_readers_and_cleanups_in_other_processes(local_store: Store, steps: int) -> None:
    """A reader that is slower than the grace period may be told that its state is gone, and nothing worse happens
    to anyone."""
    graph = create(local_store)
    tasks = [
        (write_forever, local_store, 1),
        (write_forever, local_store, 2),
        (read_forever, local_store),
        (clean_forever, local_store, "2s"),
    ]
    with children(*tasks) as running:
        start_together(running)
        heard = [[child.hear() for _ in range(steps)] for child in running]
        for child in running:
            child.kill()
        heard = [lines + child.heard() for lines, child in zip(heard, running, strict=True)]
    assert not [line for lines in heard for line in lines if line.startswith("failed")]
    assert not {"reclaimed"} & {*heard[0], *heard[1], *heard[3]}
    left = connect(local_store)
    found = names(left)
    for number in (1, 2):
        done = {f"{number}-{line}" for line in heard[number - 1] if line.isdecimal()}
        assert done <= found, "no commit is lost"
    left.cleanup(keep=1, grace=NOW, confirm=True)
    assert names(connect(local_store)) == names(graph) == found
    assert len(files(local_store)) < 20 * len(found) + 200
