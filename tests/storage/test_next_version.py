"""The next version of a table on an object store is computed here: it is Lance's, and no versions are listed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pytest
from lance import LanceDataset
from tests.faults.store import Faults, Rule, faulty_store
from tests.storage.rows import LOCATION, ages, appended, change, changed, populated
from tests.stores import S3Server, Store

from omnigraph.errors import StorageUnavailable, TableMoved
from omnigraph.storage import layout
from omnigraph.storage.next_version import next_version
from omnigraph.storage.stage.changes import Staged, stage_overwrite
from omnigraph.storage.stage.compaction import plan_compaction, stage_compaction
from omnigraph.storage.stage.indexes import IndexSpec, stage_create_index
from omnigraph.storage.tables import TableRef, Tables

INDEX = [IndexSpec("id", "BTREE", "by_id")]


@pytest.fixture
def place(s3_server: S3Server) -> Iterator[Faults]:
    """A store that says what it was asked, and does what it is told to do wrong."""
    with faulty_store(s3_server) as faults:
        yield faults


def compaction(tables: Tables, ref: TableRef) -> Staged:
    return stage_compaction(plan_compaction(tables.open(ref)), ref.location, ref.branch, "test").staged


def overwritten(tables: Tables, ref: TableRef) -> Staged:
    handle = tables.open(ref)
    return stage_overwrite(handle, LOCATION, ref.branch, handle.to_table().slice(0, 2), "test")


CHANGES: dict[str, Callable[[Tables, TableRef], Staged]] = {
    "append": lambda tables, ref: appended(tables, ref, {"cy": 3, "di": 4}),
    "insert, update and delete": lambda tables, ref: changed(tables, ref, {"ada": 37, "eve": 5}, ["bo"]).staged,
    "delete": lambda tables, ref: changed(tables, ref, {}, ["cy", "di"]).staged,
    "compaction": compaction,
    "update": lambda tables, ref: changed(tables, ref, {"ada": 38}).staged,
    "overwrite": overwritten,
}
"""Every kind of change that is computed, to be made in this order."""


def everything(handle: LanceDataset) -> list[dict[str, Any]]:
    """All rows with what Lance knows about them, and what its indexes answer for."""
    columns = ["id", "age", "_row_created_at_version", "_row_last_updated_at_version"]
    rows = handle.scanner(columns, with_row_id=True, with_row_address=True).to_table()
    indexes = [(index.name, index.num_rows_indexed) for index in handle.describe_indices()]
    found: list[dict[str, Any]] = [*rows.sort_by("id").to_pylist(), {"indexes": indexes}]
    return found


@pytest.mark.parametrize("branch", [None, "dev.1"])
def test_it_is_the_version_that_lance_would_have_made(tmp_path: Path, branch: str | None) -> None:
    tables = Store(str(tmp_path / "g")).tables()
    ref = populated(tables, {"ada": 36, "bo": 7})
    ref = tables.commit_staged(stage_create_index(tables.open(ref), LOCATION, None, INDEX, "test"))
    ref = ref if branch is None else tables.fork(ref, branch)
    for what, stage in CHANGES.items():
        staged = stage(tables, ref)
        content = next_version(ref, tables.version_path(ref).read_bytes(), staged.transaction)
        assert content is not None, what
        ref = tables.commit_staged(staged)
        copy = tmp_path / what
        shutil.copytree(tmp_path / "g", copy)
        (copy / layout.version_file(LOCATION, branch, ref.version)).write_bytes(content)
        ours = lance.dataset(str(copy / layout.native_prefix(LOCATION, branch)), version=ref.version)
        assert everything(ours) == everything(tables.open(ref)), what
        made = ours.read_transaction(ref.version)
        assert made is not None
        assert made.uuid == staged.transaction_id


def test_nothing_is_computed_from_what_is_no_version(tmp_path: Path) -> None:
    tables = Store(str(tmp_path / "g")).tables()
    ref = populated(tables, {"ada": 36})
    assert next_version(ref, b"not the file of a version", appended(tables, ref, {"bo": 7}).transaction) is None


@pytest.mark.quick_on_s3
def test_a_commit_asks_the_store_as_often_and_for_as_little_however_many_versions_there_are(place: Faults) -> None:
    tables = place.store.tables()
    ref = populated(tables, {"ada": 36})
    ref = tables.commit_staged(appended(tables, ref, {"bo": 7}))
    counts = []
    for turn in range(12):
        staged = appended(tables, ref, {f"p{turn}": turn})
        place.forget()
        ref = tables.commit_staged(staged)
        requests = place.journal()
        assert not [request for request in requests if request.method == "LIST"]
        counts.append(len(requests))
    assert set(counts) == {1}, "the version is put"
    assert len(ages(tables.scan(ref))) == 14


def test_a_process_that_did_not_make_the_version_before_reads_its_file(place: Faults) -> None:
    tables = place.store.tables()
    ref = populated(tables, {"ada": 36})
    ref = change(place.store.tables(), ref, {"bo": 7})
    staged = appended(tables, ref, {"cy": 3})
    place.forget()
    done = tables.commit_staged(staged)
    assert not [request for request in place.journal() if request.method == "LIST"]
    assert ages(place.store.tables().scan(done)) == {"ada": 36, "bo": 7, "cy": 3}


def test_of_two_writers_one_makes_the_version(place: Faults) -> None:
    tables, others = place.store.tables(), place.store.tables()
    ref = populated(tables, {"ada": 36})
    late = appended(others, ref, {"cy": 3})
    done = tables.commit_staged(appended(tables, ref, {"bo": 7}))
    with pytest.raises(TableMoved):
        others.commit_staged(late)
    assert others.newest(LOCATION) == done.version
    assert ages(others.scan(done)) == {"ada": 36, "bo": 7}


def test_a_version_whose_answer_got_lost_is_there_when_the_request_is_repeated(s3_server: S3Server) -> None:
    with faulty_store(s3_server) as faults:
        patient = Store(faults.store.uri, s3_server.faulty_store().options)
        tables = patient.tables()
        ref = populated(tables, {"ada": 36})
        staged = appended(tables, ref, {"bo": 7})
        faults.arm(Rule("PUT", "**/_versions/*", 1, "lost"))
        done = tables.commit_staged(staged)
        assert faults.disarm() == [1]
        assert ages(tables.scan(done)) == {"ada": 36, "bo": 7}


def test_a_writer_that_does_not_try_again_is_told_that_the_store_failed(place: Faults) -> None:
    tables = place.store.tables()
    ref = populated(tables, {"ada": 36})
    staged = appended(tables, ref, {"bo": 7})
    place.arm(Rule("PUT", "**/_versions/*", 1, "500"))
    with pytest.raises(StorageUnavailable):
        tables.commit_staged(staged)
    place.disarm()
    assert tables.newest(LOCATION) == ref.version
