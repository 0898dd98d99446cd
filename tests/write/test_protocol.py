"""What `commit_write` gives back: the commit, and the result of the very preparation that was committed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.recovery.racers import once
from tests.write.support import change, ids_of, new_graph, put

from omnigraph import Graph, failpoints
from omnigraph.arguments import LONGEST_MESSAGE
from omnigraph.errors import InvalidArgument, ManifestConflict, StorageUnavailable
from omnigraph.lang.schema.catalog import load_catalog
from omnigraph.write.base import Base
from omnigraph.write.delta import TableDelta
from omnigraph.write.protocol import Prepared, WriteRequest, Written, commit_write

SCHEMA = "node Person { name: String @key }"
CATALOG = load_catalog(SCHEMA)
PERSON = "node:Person"


@pytest.fixture
def graph() -> Graph:
    return new_graph(SCHEMA)


def person(name: str) -> TableDelta:
    return change(CATALOG, PERSON, [{"id": name, "name": name}])


def counting(base: Base) -> Prepared[int]:
    """Adds Ada; the result is how many people there were before."""
    return Prepared({PERSON: person("Ada")}, base.pin(PERSON).row_count, repeatable=True)


def write(graph: Graph, prepare: Callable[[Base], Prepared[int]], message: str | None = None) -> Written[int]:
    repository = graph._repository
    request = WriteRequest("load", repository.branches.find("main"), message=message)
    return commit_write(repository, request, prepare)


def test_the_result_comes_with_the_commit(graph: Graph) -> None:
    written = write(graph, counting)
    assert written.result == 0
    assert written.commit == graph.commits()[0]


def test_the_result_of_a_retry_replaces_the_first_one(graph: Graph) -> None:
    """Another writer adds a person while the change is staged, so it is prepared again."""
    with failpoints.armed("write.after_stage", once(lambda: put(graph, person("Bo")))):
        assert write(graph, counting).result == 1
    assert ids_of(graph, PERSON) == ["Ada", "Bo"]


def test_a_change_that_is_not_repeatable_is_prepared_once(graph: Graph) -> None:
    seen: list[int] = []

    def prepare(base: Base) -> Prepared[int]:
        seen.append(base.pin(PERSON).row_count)
        return Prepared({PERSON: person("Ada")}, 0, repeatable=False)

    with (
        failpoints.armed("write.after_stage", once(lambda: put(graph, person("Bo")))),
        pytest.raises(ManifestConflict),
    ):
        write(graph, prepare)
    assert seen == [0]


def test_a_change_of_nothing_has_a_result_and_no_commit(graph: Graph) -> None:
    before = graph.snapshot()
    assert write(graph, lambda _: Prepared({}, 7, repeatable=True)) == Written(None, 7)
    assert graph.snapshot() == before


def test_a_write_that_was_in_doubt_has_its_result(graph: Graph) -> None:
    """The store fails after the publish. The commit is found, and the result is that of the attempt."""

    def refuse() -> None:
        raise StorageUnavailable("the store", "it went away")

    with failpoints.armed("write.after_publish", once(refuse)):
        written = write(graph, counting)
    assert (written.result, written.commit) == (0, graph.commits()[0])


def test_a_prepared_change_may_bring_its_own_message(graph: Graph) -> None:
    def prepare(base: Base) -> Prepared[int]:
        return Prepared({PERSON: person("Ada")}, 0, repeatable=True, message="left out 3")

    write(graph, prepare, "a load")
    assert graph.commits()[0].message == "left out 3"


def test_a_message_that_is_too_long_is_refused_wherever_it_comes_from(graph: Graph) -> None:
    long = "x" * (LONGEST_MESSAGE + 1)
    with pytest.raises(InvalidArgument, match="message"):
        write(graph, counting, long)
    with pytest.raises(InvalidArgument, match="message"):
        write(graph, lambda _: Prepared({PERSON: person("Ada")}, 0, repeatable=True, message=long))
    assert ids_of(graph, PERSON) == []
