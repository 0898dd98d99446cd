"""Sidecars that cannot be read: kept and named, in the way of writers, and of nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.recovery.scenes import BEGINNING, as_read, assert_settled, contents, found_city, new_graph, with_city
from tests.recovery.test_faults import AFTERWARDS, kinds, merge
from tests.recovery.test_windows import fail_at
from tests.stores import Store, present

import omnigraph
from omnigraph.errors import RecoveryBlocked, SidecarUnreadable
from omnigraph.manifest.publisher import COMMIT_TAIL, BranchName, Change, CommitDraft
from omnigraph.recovery.sidecar import list_sidecars
from omnigraph.storage import layout
from omnigraph.storage.control.sealed import unseal

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


class TestWordsOfOlderReleases:
    """They took actors and messages that cannot be published, and wedged the graph with them."""

    @pytest.mark.parametrize("died", ["write.between_tables", "write.after_tables"])
    def test_half_a_character_in_a_sidecar(self, local_store: Store, died: str) -> None:
        graph = new_graph(local_store)
        fail_at(died, graph, "merge", "main")
        (key,) = list_sidecars(graph._repository.objects)
        stored = unseal(key, present(graph._repository.objects, key).content)
        stored["commit"]["actor_id"] = "M\udcfcller"
        graph._repository.objects.put(key, json.dumps(stored).encode())
        found_city(graph, "main")
        assert [recovery.recovery_for_actor for recovery in graph.recoveries()] == ["M?ller"]
        assert_settled(graph)

    def test_one_that_raises_what_nobody_foresaw(
        self, local_store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is reported by name, and other branches go on."""
        graph = new_graph(local_store)
        fail_at("write.after_tables", graph, "merge", "main")
        (key,) = list_sidecars(graph._repository.objects)

        def fail(*_: object) -> None:
            raise UnicodeEncodeError("utf-8", "?", 0, 1, "no such thing")

        with monkeypatch.context() as patched:
            patched.setattr("omnigraph.recovery.heal.movements_of", fail)
            operation = key.rpartition("/")[2].removesuffix(".json")
            with pytest.raises(RecoveryBlocked, match=f"{operation}.*UnicodeEncodeError"):
                found_city(graph, "main")
            with pytest.warns(RuntimeWarning, match=operation):
                opened = omnigraph.open(local_store.uri)
            found_city(opened, "dev")
            assert contents(opened) == BEGINNING
        found_city(graph, "main")
        assert contents(graph) == with_city(AFTERWARDS)

    def test_an_actor_that_is_no_text_in_the_manifest(self, local_store: Store) -> None:
        """The commit is archived all the same when its time comes."""
        graph = new_graph(local_store)
        manifest = graph._repository.manifest
        state = manifest.latest(None)
        odd = replace(state.commits[-1], actor_id=5, graph_commit_id="01J00000000000000000000005")  # type: ignore[arg-type]
        manifest.write(BranchName("main", None), replace(state, version=state.version + 1, commits=(odd,)))
        fresh = omnigraph.open(local_store.uri)
        for _ in range(COMMIT_TAIL + 1):
            fresh._repository.manifest.publish(BranchName("main", None), Change(), {}, CommitDraft("load"))
        assert fresh.commit("01J00000000000000000000005").actor_id == "5"
        found_city(fresh, "main")
