"""Sidecars that cannot be read: kept and named, in the way of writers, and of nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.recovery.scenes import BEGINNING, as_read, assert_settled, contents, found_city, new_graph, with_city
from tests.recovery.test_faults import AFTERWARDS, kinds, merge
from tests.recovery.test_windows import fail_at
from tests.stores import Store, present

import omnigraph
from omnigraph.errors import SidecarUnreadable
from omnigraph.recovery.sidecar import list_sidecars
from omnigraph.storage import layout
from omnigraph.storage.sealed import unseal

DAMAGED = {
    "empty": b"",
    "cut off": b'{"version": 1, "operation_id": "01',
    "not text": b"\xff\xfe\x00",
    "not an object": b"[1, 2]",
    "without content": b'{"version": 1}',
    "from the future": b'{"version": 2, "everything": "is different"}',
    "null": b"null",
}


class TestDamagedSidecars:
    @pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
    def test_it_stops_writes_and_nothing_else(self, local_store: Store, content: bytes) -> None:
        graph = new_graph(local_store)
        key = f"{layout.SIDECARS}/01J00000000000000000000000.json"
        graph._repository.objects.put(key, content)
        for branch in ("main", "dev"):
            with pytest.raises(SidecarUnreadable, match=key):
                merge(graph, branch)
        with pytest.raises(SidecarUnreadable, match=key):
            graph.refresh()
        with pytest.warns(RuntimeWarning, match=key):
            opened = omnigraph.open(local_store.uri)
        assert contents(opened) == as_read(local_store) == BEGINNING
        found = graph._repository.objects.get(key)
        assert found is not None
        assert found.content == content
        graph._repository.objects.delete(key)
        merge(graph)
        assert contents(graph) == AFTERWARDS

    def test_one_beside_a_good_one(self, local_store: Store) -> None:
        """What can be healed is; the graph opens."""
        graph = new_graph(local_store)
        fail_at("write.after_tables", graph, "merge", "main")
        graph._repository.objects.put(f"{layout.SIDECARS}/0.json", b"?")
        with pytest.warns(RuntimeWarning, match=r"0\.json"):
            opened = omnigraph.open(local_store.uri)
        assert contents(opened) == AFTERWARDS
        assert kinds(opened) == ["RolledForward"]
        with pytest.raises(SidecarUnreadable):
            found_city(graph, "main")

    def test_a_value_of_the_wrong_kind_anywhere_in_one(self, local_store: Store) -> None:
        """Nothing is done on the word of a sidecar that makes no sense."""
        graph = new_graph(local_store)
        objects = graph._repository.objects
        fail_at("write.between_tables", graph, "merge", "main")
        (key,) = list_sidecars(objects)
        good = present(objects, key).content
        for place in list(places(unseal(key, good))):
            objects.put(key, json.dumps(spoiled(unseal(key, good), place)).encode())
            with pytest.raises(SidecarUnreadable):
                graph.refresh()
        objects.put(key, good)
        found_city(graph, "main")
        assert contents(graph) == with_city(BEGINNING)
        assert_settled(graph)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a JSON value."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def spoiled(value: Any, path: tuple[Any, ...]) -> Any:
    """The JSON value with something of another kind in one place."""
    target = value
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = "7" if isinstance(target[path[-1]], int | list | dict) else 7
    return value
