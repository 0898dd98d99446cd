"""What is left of a graph that many small writes have made, compared with the same rows loaded at once; and what a
cleanup costs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.maintenance.cleanup.worlds import NOW, add, connect, create, names
from tests.stores import Store

import omnigraph
from omnigraph.storage.control.contents import Entry
from omnigraph.storage.control.local import LocalObjects

SCHEMA = "node Note { name: String @key  text: String }"


def note(number: int) -> dict[str, Any]:
    text = random.Random(number).randbytes(2_000).hex()
    return {"type": "Note", "data": {"name": f"n{number}", "text": text}}


def size(store: Store) -> tuple[int, int]:
    """How many files a graph has, and their bytes."""
    entries = [entry for entry in store.objects().entries("") if not entry.key.startswith("__locks/")]
    return len(entries), sum(entry.size for entry in entries)


@pytest.mark.long
def test_small_writes_leave_little_more_than_one_large_load(tmp_path_factory: pytest.TempPathFactory) -> None:
    slow, quick = (Store(str(tmp_path_factory.mktemp(name) / "g")) for name in ("slow", "quick"))
    notes = [note(number) for number in range(200)]
    graph = omnigraph.init(slow.uri, SCHEMA)
    for each in notes:
        graph.load([each], mode="append")
    graph.optimize()
    graph.cleanup(keep=10, grace=NOW, confirm=True)
    other = omnigraph.init(quick.uri, SCHEMA)
    other.load(notes, mode="append")
    other.optimize()
    (files, stored), (least, content) = size(slow), size(quick)
    assert files <= 3 * least
    assert stored <= 3 * content


def test_each_table_is_listed_once_and_no_row_is_read(local_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = create(local_store)
    for number in range(12):
        add(graph, f"p{number}")
    cleaner, listed, read = connect(local_store), Counter[str](), Counter[str]()
    entries, get = LocalObjects.entries, LocalObjects.get

    def counted_entries(self: LocalObjects, prefix: str) -> Iterator[Entry]:
        listed[prefix] += 1
        return entries(self, prefix)

    def counted_get(self: LocalObjects, key: str) -> Any:
        read[key.rpartition(".")[2]] += 1
        return get(self, key)

    monkeypatch.setattr(LocalObjects, "entries", counted_entries)
    monkeypatch.setattr(LocalObjects, "get", counted_get)
    cleaner.cleanup(keep=2, grace=NOW, confirm=True)
    assert {listed[folder] for folder in ("__manifest", "nodes", "edges")} == {1}
    assert read["manifest"] <= 2 * 2 + 3, "the versions that stay, of the manifest and of each table"
    assert read["lance"] == 0
    assert len(names(connect(local_store))) == 12
