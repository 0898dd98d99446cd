"""Commits that are too large to be compared at once: window by window they give the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from tests.history.feed.replica import SCHEMA, knows, person
from tests.sampling import sampled
from tests.stores import Store

import omnigraph
from omnigraph import Change, Graph
from omnigraph.history.diff import ChangeFilter, Op
from omnigraph.history.feed.blocks import PageLimits
from omnigraph.history.feed.pages import PollRequest, poll
from omnigraph.history.feed.windows import HeldWindows

NAMES = [f"p{number:02}" for number in range(40)]


@pytest.fixture
def graph(local_store: Store) -> Graph:
    """A branch with commits that insert, update, rewrite as they were, and delete many rows."""
    graph = omnigraph.init(local_store.uri, SCHEMA)
    graph.load([person(name, age=1) for name in NAMES], mode="append")
    graph.create_branch("dev")
    dev = graph.branch("dev")
    dev.load([person(name, age=int(name[1:]) % 3) for name in NAMES[::-1]], mode="merge")
    dev.load([knows(name, NAMES[0], id=f"k{name}") for name in NAMES], mode="append")
    dev.mutate("query q() { delete Person where age = 2 }")
    dev.load([person(name, age=5) for name in NAMES[20:]], mode="merge")
    dev.load([person(name, age=5) for name in NAMES[20:]], mode="merge")
    return dev


def commits(
    graph: Graph, window: int, limit: int, ops: frozenset[Op] | None, *, resumed: bool
) -> Iterator[list[Change]]:
    """The changes of each commit of dev, read page by page; resumed, each page is read by another process."""
    repository, held = graph._repository, HeldWindows(window)
    branch, limits, wanted = repository.branches.find("dev"), PageLimits(limit), ChangeFilter(ops=ops)
    request, found = PollRequest(branch, wanted, "beginning", limits=limits), list[Change]()
    while True:
        page = poll(repository, HeldWindows(window) if resumed else held, request)
        for block in page.blocks:
            found += block.changes
            if block.complete:
                yield found
                found = []
        if page.next_page_token is None:
            return
        assert sum(len(block.changes) for block in page.blocks) <= limit
        request = PollRequest(branch, wanted, page_token=page.next_page_token, limits=limits)


RESUMED = (True, False)
SIZES = ((1, 1_000), (3, 1), (3, 7), (4, 4), (16, 5), (39, 1_000))
OPS = (None, frozenset({Op.UPDATE}), frozenset({Op.INSERT, Op.DELETE}))
CASES = [(resumed, window, limit, ops) for resumed, (window, limit), ops in product(RESUMED, SIZES, OPS)]


@pytest.mark.parametrize(("resumed", "window", "limit", "ops"), sampled(CASES, 7))
def test_windows_of_any_size_give_the_same(
    graph: Graph, resumed: bool, window: int, limit: int, ops: frozenset[Op] | None
) -> None:
    whole = list(commits(graph, 10_000, 1_000, ops, resumed=False))
    assert list(commits(graph, window, limit, ops, resumed=resumed)) == whole
    if ops is None:
        assert [len(changes) for changes in whole] == [0, 40, 27, 40, 26, 20, 0]
