"""`omnigraph cleanup`, and what other commands say about states that are gone."""

from __future__ import annotations

import asyncio

import pytest
from tests.cli.command import omnigraph
from tests.maintenance.cleanup.worlds import add, create, files
from tests.stores import Store

from omnigraph import AsyncGraph, Graph


@pytest.fixture
def graph(local_store: Store) -> Graph:
    graph = create(local_store)
    for name in ("Ada", "Bo", "Cy"):
        add(graph, name)
    return graph


def test_it_shows_before_it_removes(graph: Graph, local_store: Store) -> None:
    before = files(local_store)
    shown = omnigraph("cleanup", local_store.uri, "--keep", "1", "--grace", "0s")
    assert shown.code == 0
    assert shown.out.splitlines()[0] == "table\tversions\tfiles\tbytes"
    assert "node:Person\t3 of 4" in shown.out
    assert "main: 3 states could be read no more" in shown.out
    assert "run it with --confirm" in shown.out
    assert files(local_store) == before
    done = omnigraph("cleanup", local_store.uri, "--keep", "1", "--grace", "0s", "--confirm")
    assert done.code == 0
    assert "removed " in done.out
    assert len(files(local_store)) < len(before)
    again = omnigraph("cleanup", local_store.uri, "--keep", "1", "--grace", "0s", "--confirm")
    assert again.out == "nothing to remove\n"


def test_as_json(graph: Graph, local_store: Store) -> None:
    options = ["--keep", "2", "--older-than", "0s", "--grace", "0s"]
    shown = omnigraph("cleanup", local_store.uri, *options, "--json").json
    newest = graph.commits(limit=2)[1].graph_commit_id
    assert (shown["keep"], shown["older_than_secs"], shown["grace_secs"], shown["confirmed"]) == (2, 0, 0, False)
    assert shown["branches"] == [
        {
            "branch": "main",
            "states_removed": 2,
            "oldest_manifest_version": 3,
            "oldest_commit_id": newest,
            "also_kept": 0,
        }
    ]
    assert {"__manifest", "node:Person"} <= {table["table_key"] for table in shown["tables"]}
    assert shown["files_removed"] == sum(table["files_removed"] for table in shown["tables"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--older-than"),
        (["--keep", "-1"], "--keep"),
        (["--older-than", "soon"], "is no duration"),
        (["--keep", "1", "--grace", "1y"], "is no duration"),
        (["--keep", "1", "--confirm", "--store", "s3://bucket/g"], "two graphs"),
    ],
)
def test_what_makes_no_sense(graph: Graph, local_store: Store, options: list[str], message: str) -> None:
    ran = omnigraph("cleanup", local_store.uri, *options)
    assert ran.code != 0
    assert message in ran.err


def test_commits_are_listed_with_what_is_left_of_them(graph: Graph, local_store: Store) -> None:
    graph.cleanup(keep=1, grace="0s", confirm=True)
    log = omnigraph("log", "--store", local_store.uri)
    assert log.out.count("its state is gone from the store") == 3
    listed = omnigraph("commit", "list", local_store.uri, "--json").json["commits"]
    assert [commit["reclaimed"] for commit in listed] == [False, True, True, True]
    assert "(gone)" in omnigraph("commit", "list", local_store.uri).out
    entries = graph.log()
    assert [entry.is_reclaimed for entry in entries] == [False, True, True, True]
    read = omnigraph("snapshot", local_store.uri, "--at", entries[1].commit.graph_commit_id)
    assert read.code == 1
    assert entries[0].commit.graph_commit_id in read.err, "it names the oldest that is left"


def test_in_a_program_with_an_event_loop(graph: Graph, local_store: Store) -> None:
    async def clean() -> int:
        async with await AsyncGraph.open(local_store.uri) as opened:
            return (await opened.cleanup(keep=1, grace="0s", confirm=True)).files_removed

    assert asyncio.run(clean())


def test_a_graph_that_is_not_local_needs_consent() -> None:
    ran = omnigraph("cleanup", "s3://bucket/g", "--keep", "1", "--confirm")
    assert ran.code == 2
    assert "--yes" in ran.err
