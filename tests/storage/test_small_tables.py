"""Rows of small tables in memory are the rows that a scan finds, with their row ids and addresses."""

from __future__ import annotations

from typing import Any

import pytest
from tests.storage.rows import SCHEMA, change, populated
from tests.stores import Store

from omnigraph.storage.rows import small
from omnigraph.storage.rows.small import SmallTables
from omnigraph.storage.tables import TableRef, Tables


def scanned(tables: Tables, ref: TableRef) -> list[dict[str, Any]]:
    rows = tables.open(ref).scanner(with_row_id=True, with_row_address=True).to_table()
    return sorted(rows.to_pylist(), key=lambda row: str(row["id"]))


def kept(memory: SmallTables, ref: TableRef) -> list[dict[str, Any]]:
    rows = memory.rows(ref, SCHEMA)
    assert rows is not None
    return sorted(rows.to_pylist(), key=lambda row: str(row["id"]))


def test_each_version_has_its_rows(store: Store) -> None:
    tables = store.tables()
    memory = SmallTables(tables)
    ref = populated(tables, {"ada": 1, "bo": 2, "cy": 3})
    for upserts, deletes in (({"di": 4}, []), ({"ada": 9}, ["bo"]), ({}, ["di"]), ({"bo": 5, "cy": 6}, [])):
        assert kept(memory, ref) == scanned(tables, ref)
        ref = change(tables, ref, upserts, deletes)
    assert kept(memory, ref) == scanned(tables, ref)


def test_a_large_table_is_not_kept(local_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = local_store.tables()
    ref = populated(tables, {"ada": 1, "bo": 2, "cy": 3})
    monkeypatch.setattr(small, "MOST_ROWS", 2)
    assert SmallTables(tables).rows(ref, SCHEMA) is None


def test_what_is_kept_is_limited(local_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that had to make room are read again."""
    tables = local_store.tables()
    memory = SmallTables(tables)
    monkeypatch.setattr(small, "_KEPT_BYTES", 1)
    ref = populated(tables, {"ada": 1})
    for name in ("bo", "cy"):
        ref = change(tables, ref, {name: 2})
        assert kept(memory, ref) == scanned(tables, ref)
