"""Killed at moments nobody chose: what was acknowledged is there, and at most the one step that was under way."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from tests.crash.view import NOTHING, View, look
from tests.crash.walkers import kill_after, stepped
from tests.manifest.support import SCHEMA, new_graph
from tests.stores import Store

import omnigraph
from omnigraph.errors import GraphExists, GraphNotFound, NotAGraph

pytestmark = pytest.mark.long


@pytest.fixture
def chance() -> random.Random:
    """Shown when a test fails; OMNIGRAPH_TEST_SEED runs it again."""
    seed = int(os.environ.get("OMNIGRAPH_TEST_SEED") or random.randrange(2**32))
    print(f"OMNIGRAPH_TEST_SEED={seed}")  # noqa: T201
    return random.Random(seed)


def test_changes_on_a_disk(local_store: Store, chance: random.Random) -> None:
    walk(local_store, chance, rounds=8, longest=0.3)


def test_changes_on_an_object_store(s3_store: Store, chance: random.Random) -> None:
    walk(s3_store, chance, rounds=2, longest=1.5)


def walk(store: Store, chance: random.Random, rounds: int, longest: float) -> None:
    new_graph(store)
    view, step = look(store), 0
    for _ in range(rounds):
        acknowledged = kill_after(chance.uniform(0, longest), "changes", store, step)
        for _ in range(acknowledged):
            view, step = stepped(view, step), step + 1
        found = look(store)
        assert look(store, read_only=False) == found
        if found != view:
            view, step = stepped(view, step), step + 1
        assert found == view


def test_creations_on_a_disk(tmp_path: Path, chance: random.Random) -> None:
    new_graph(tmp_path / "undisturbed")
    whole = look(Store(str(tmp_path / "undisturbed")))
    for number in range(6):
        store = Store(str(tmp_path / str(number)))
        created = kill_after(chance.uniform(0, 0.15), "creations", store, 0)
        for finished in range(created):
            assert look(Store(f"{store.uri}/{finished}")) == whole
        check_last(Store(f"{store.uri}/{created}"), whole)


def check_last(store: Store, whole: View) -> None:
    """The graph whose creation was killed is whole, or can be created again."""
    found = look(store)
    assert found in (NOTHING, whole)
    if found == NOTHING:
        with pytest.raises((GraphNotFound, NotAGraph)):
            omnigraph.open(store.uri)
        omnigraph.init(store.uri, SCHEMA)
    else:
        with pytest.raises(GraphExists):
            omnigraph.init(store.uri, SCHEMA)
    assert look(store, read_only=False) == whole
