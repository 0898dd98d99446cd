"""What a poll costs, counted in requests to an object store: what it gives, not what there is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.faults.store import Faults, faulty_store
from tests.history.feed.replica import SCHEMA, knows, person
from tests.stores import S3Server

import omnigraph
from omnigraph import Graph
from omnigraph.manifest.publisher import COMMIT_TAIL, Change, CommitDraft
from omnigraph.manifest.refs.objects import TRUNK
from omnigraph.storage import layout


@pytest.fixture
def place(s3_server: S3Server) -> Iterator[Faults]:
    with faulty_store(s3_server) as faults:
        graph = omnigraph.init(faults.store.uri, SCHEMA, storage_options=faults.store.options)
        graph.load([person("Ada"), person("Bo"), knows("Ada", "Bo")], mode="append")
        yield faults


def opened(place: Faults) -> Graph:
    return omnigraph.open(place.store.uri, read_only=True, storage_options=place.store.options)


def grow(place: Faults, commits: int) -> None:
    """Commits that change nothing, each with a version of the manifest, and in the end a row of the archive."""
    graph = omnigraph.open(place.store.uri, storage_options=place.store.options)
    for _ in range(commits):
        graph._repository.manifest.publish(TRUNK.ref, Change(), {}, CommitDraft("load"))


def asked_for(place: Faults) -> list[str]:
    """The keys of all requests since the last time."""
    found = [request.key for request in place.journal()]
    place.forget()
    return found


@pytest.mark.long
def test_a_poll_that_is_caught_up_reads_the_head_and_no_table(place: Faults) -> None:
    """As much after hundreds of commits as after two, in the same process and in a new one."""
    counts = []
    for commits in (0, COMMIT_TAIL + 2, COMMIT_TAIL):
        grow(place, commits)
        graph = opened(place)
        cursor = graph.changes().cursor
        asked_for(place)
        assert graph.changes(cursor=cursor).caught_up
        warm = asked_for(place)
        assert opened(place).changes(cursor=cursor).caught_up
        cold = asked_for(place)
        assert not [key for key in warm + cold if key.startswith((layout.NODES, layout.EDGES, layout.COMMITS))]
        counts.append((len(warm), len(cold)))
    assert counts[0] == counts[1] == counts[2]


@pytest.mark.long
def test_a_page_reads_the_tables_that_its_commits_touched(place: Faults) -> None:
    graph = omnigraph.open(place.store.uri, storage_options=place.store.options)
    counts = []
    for commits in (0, COMMIT_TAIL + 2):
        grow(place, commits)
        cursor = graph.changes().cursor
        graph.load([person("Ada", age=commits)], mode="merge")
        pins, reader = graph.snapshot().tables, opened(place)
        asked_for(place)
        (block,) = reader.changes(cursor=cursor).blocks
        assert [change.id for change in block.changes] == ["Ada"]
        asked = asked_for(place)
        assert [key for key in asked if key.startswith(pins["node:Person"].location)]
        untouched = (pins["node:Place"].location, pins["edge:Knows"].location, layout.COMMITS)
        assert not [key for key in asked if key.startswith(untouched)]
        counts.append(len([key for key in asked if key.startswith(layout.MANIFEST)]))
    assert counts[0] == counts[1]
