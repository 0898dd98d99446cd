"""Random histories: a baseline with the changes after it is the newest state, whenever it was written."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.history.feed.replica import SCHEMA, Entities, apply, exported, in_records, knows, person, place
from tests.sampling import examples
from tests.stores import memory_store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import DataError, MergeConflicts

NAMES = st.sampled_from(["a", "b", "c", "d"])
PEOPLE = st.lists(
    st.builds(person, NAMES, age=st.sampled_from([None, 0, 1]), city=st.sampled_from([None, "", "x"])),
    max_size=3,
    unique_by=lambda record: record["data"]["name"],
)
STEPS = st.one_of(
    st.tuples(st.just("merge"), PEOPLE),
    st.tuples(st.just("overwrite"), PEOPLE),
    st.tuples(st.just("place"), NAMES),
    st.tuples(st.just("connect"), st.tuples(NAMES, NAMES)),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("disconnect"), NAMES),
    st.tuples(st.just("index"), st.none()),
    st.tuples(st.just("dev"), PEOPLE),
    st.tuples(st.just("bring in"), st.none()),
    st.tuples(st.just("revert"), st.none()),
    st.tuples(st.just("baseline"), st.none()),
)


def do(graph: Graph, step: str, value: Any) -> None:
    """One commit on main, or one that prepares another; some are refused."""
    match step:
        case "merge":
            graph.load(value or [person("a")], mode="merge")
        case "overwrite":
            graph.load(value or [person("a")], mode="overwrite")
        case "place":
            graph.load([place(value)], mode="merge")
        case "connect":
            graph.load([*map(person, sorted(set(value))), knows(*value)], mode="merge")
        case "delete":
            graph.mutate(f'query q() {{ delete Person where name = "{value}" }}')
        case "disconnect":
            graph.mutate(f'query q() {{ delete Knows where from = "{value}" }}')
        case "index":
            graph.ensure_indices()
        case "dev":
            if len(graph.branches()) == 1:
                graph.create_branch("dev")
            graph.load(value or [person("b", age=7)], mode="merge", branch="dev")
        case "bring in" if len(graph.branches()) > 1:
            graph.merge("dev", resolve="theirs")
            graph.delete_branch("dev")
        case "revert" if len(graph.commits()) > 1:
            graph.revert(graph.commits()[0].graph_commit_id, resolve="theirs")


@settings(max_examples=examples(10, of=100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    history=st.lists(STEPS, min_size=3, max_size=9),
    limit=st.sampled_from([1, 2, 3, 1_000]),
    commits=st.sampled_from([1, 2, 128]),
)
def test_a_baseline_and_its_changes_are_the_newest_state(
    history: list[tuple[str, Any]], limit: int, commits: int
) -> None:
    graph = omnigraph.init(memory_store().uri, SCHEMA)
    replicas: list[tuple[Entities, str | None]] = [({}, graph.changes(start="beginning", limit_commits=1).cursor)]
    for step, value in history:
        if step == "baseline":
            sink = io.BytesIO()
            done = graph.baseline(sink)
            replicas.append((in_records(sink.getvalue().decode().splitlines()), done.resume_cursor))
        with contextlib.suppress(DataError, MergeConflicts):
            do(graph, step, value)
    newest = exported(graph)
    for entities, cursor in replicas:
        for page in graph.change_pages(cursor=cursor, limit=limit, limit_commits=commits):
            for block in page.blocks:
                apply(entities, block.as_json()["changes"])
        assert entities == newest
    graph.close()
