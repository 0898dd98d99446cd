"""Tables at fixed versions: creating, reading, committing what was staged, going back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.processes import children, start_together
from tests.storage.rows import LOCATION, SCHEMA, ages, appended, change, changed, people, populated, row_ids
from tests.storage.table_writers import append_lines
from tests.stores import S3Server, Store

from omnigraph.errors import HistoryReclaimed, ObjectDamaged, StorageUnavailable
from omnigraph.storage import layout
from omnigraph.storage.stage.changes import stage_append, stage_overwrite
from omnigraph.storage.tables import LOG_FILES, LOG_ROWS_PER_FILE, TableRef, Tables

ADA_AND_BO = {"ada": 36, "bo": 7}


@pytest.fixture
def tables(store: Store) -> Tables:
    return store.tables()


class TestCreate:
    def test_a_new_table_is_empty_and_has_stable_row_ids(self, tables: Tables) -> None:
        ref = tables.create(LOCATION, SCHEMA)
        assert ref == TableRef(LOCATION, None, 1)
        assert tables.open(ref).schema == SCHEMA
        assert tables.open(ref).has_stable_row_ids
        assert tables.count(ref) == 0

    def test_an_empty_table_of_an_interrupted_creation_is_taken_over(self, tables: Tables) -> None:
        first = tables.create(LOCATION, SCHEMA)
        assert tables.create(LOCATION, SCHEMA) == first

    def test_one_of_another_shape_gets_the_new_shape(self, tables: Tables) -> None:
        tables.create(LOCATION, pa.schema([pa.field("id", pa.string()), pa.field("gone", pa.int8())]))
        ref = tables.create(LOCATION, SCHEMA)
        assert tables.open(ref).schema == SCHEMA
        assert tables.open(ref).has_stable_row_ids

    def test_a_table_with_rows_is_left_alone(self, tables: Tables) -> None:
        ref = populated(tables, ADA_AND_BO)
        with pytest.raises(StorageUnavailable, match=LOCATION):
            tables.create(LOCATION, SCHEMA)
        assert tables.newest(LOCATION) == ref.version
        assert ages(tables.scan(ref)) == ADA_AND_BO

    def test_a_table_may_have_its_first_rows_from_the_start(self, tables: Tables) -> None:
        ref = tables.create_filled(LOCATION, people(ADA_AND_BO))
        assert ref == TableRef(LOCATION, None, 1)
        assert ages(tables.scan(ref)) == ADA_AND_BO
        assert tables.open(ref).has_stable_row_ids
        with pytest.raises(StorageUnavailable, match=LOCATION):
            tables.create_filled(LOCATION, people({}))


class TestVersions:
    def test_every_version_stays_as_it_was(self, tables: Tables) -> None:
        second = populated(tables, ADA_AND_BO)
        third = change(tables, second, {"ada": 37}, ["bo"])
        assert ages(tables.scan(TableRef(LOCATION, None, 1))) == {}
        assert ages(tables.scan(second)) == ADA_AND_BO
        assert ages(tables.scan(third)) == {"ada": 37}
        assert tables.count(third) == 1

    def test_another_client_sees_the_same(self, store: Store) -> None:
        ref = populated(store.tables(), ADA_AND_BO)
        other = store.tables()
        assert other.newest(LOCATION) == ref.version
        assert ages(other.scan(ref)) == ADA_AND_BO

    def test_which_versions_there_are(self, tables: Tables) -> None:
        assert tables.newest(LOCATION) is None
        assert not tables.exists(TableRef(LOCATION, None, 1))
        second = populated(tables, ADA_AND_BO)
        assert tables.newest(LOCATION) == 2
        assert [tables.exists(TableRef(LOCATION, None, version)) for version in (1, 2, 3)] == [True, True, False]
        assert tables.moved(TableRef(LOCATION, None, 1))
        assert not tables.moved(second)

    def test_a_version_that_cleanup_removed_was_there_once(self, shared_store: Store) -> None:
        third = change(tables := shared_store.tables(), populated(tables, ADA_AND_BO), {"ada": 37})
        trunk = lance.dataset(tables.uri(LOCATION), storage_options=shared_store.options or None)
        trunk.cleanup_old_versions(older_than=dt.timedelta(0))
        later = shared_store.tables()
        for use in (later.open, later.scan, later.count, lambda ref: later.restore(ref, third.version)):
            with pytest.raises(HistoryReclaimed, match=f"version 2 of table {LOCATION}"):
                use(TableRef(LOCATION, None, 2))
        with pytest.raises(HistoryReclaimed, match="version 2"):
            later.delta(third, since=2)
        assert ages(later.scan(third)) == {"ada": 37, "bo": 7}

    def test_a_store_that_refuses_is_not_a_store_without_tables(self, s3_server: S3Server) -> None:
        tables, ref = s3_server.refusing_store().tables(), TableRef(LOCATION, None, 1)
        looks: list[Callable[[], object]] = [
            lambda: tables.open(ref),
            lambda: tables.newest(LOCATION),
            lambda: tables.exists(ref),
        ]
        for look in looks:
            with pytest.raises(StorageUnavailable):
                look()

    def test_a_damaged_table_is_not_an_absent_one(self, local_store: Store) -> None:
        ref = populated(local_store.tables(), ADA_AND_BO)
        damaged = Path(local_store.uri) / layout.version_file(LOCATION, None, ref.version)
        damaged.write_bytes(b"rubbish")
        with pytest.raises(ObjectDamaged, match=LOCATION):
            local_store.tables().open(ref)
        with pytest.raises(StorageUnavailable, match=LOCATION):
            local_store.tables().open(replace(ref, checksum=None))

    def test_a_version_whose_end_was_never_written_is_none(self, local_store: Store) -> None:
        """A power cut or a full disk left it, and its writer was not told that it succeeded."""
        tables = local_store.tables()
        ref = populated(tables, ADA_AND_BO)
        torn = Path(local_store.uri) / layout.version_file(LOCATION, None, ref.version + 1)
        torn.write_bytes(b"")
        assert local_store.tables().newest(LOCATION) == ref.version
        assert not tables.moved(ref)
        staged = stage_append(tables.open(ref), LOCATION, None, people({"cy": 1}), "test")
        assert tables.commit_staged(staged).version == ref.version + 1


class TestScan:
    @pytest.fixture
    def ref(self, tables: Tables) -> TableRef:
        return populated(tables, {"ada": 36, "bo": 7, "o'neil": 50, "nobody": None})

    def test_some_columns(self, tables: Tables, ref: TableRef) -> None:
        assert tables.scan(ref, ["age", "id"]).schema.names == ["age", "id"]

    def test_some_rows(self, tables: Tables, ref: TableRef) -> None:
        assert ages(tables.scan(ref, where="age > 10")) == {"ada": 36, "o'neil": 50}
        assert ages(tables.scan(ref, where="age is null")) == {"nobody": None}
        assert ages(tables.scan(ref, where="id = 'o''neil'")) == {"o'neil": 50}
        assert ages(tables.scan(ref, ["id", "age"], "`bio` like 'bo %'")) == {"bo": 7}

    def test_row_ids(self, tables: Tables, ref: TableRef) -> None:
        found = row_ids(tables, ref)
        assert len(set(found.values())) == 4
        assert row_ids(tables, ref, f"_rowid = {found['bo']}") == {"bo": found["bo"]}


class TestStaging:
    def test_nothing_staged_is_visible(self, tables: Tables) -> None:
        ref = populated(tables, ADA_AND_BO)
        appended(tables, ref, {"cy": 1})
        changed(tables, ref, {"ada": 99}, ["bo"])
        stage_overwrite(tables.open(ref), LOCATION, None, people({}), "test")
        assert tables.newest(LOCATION) == ref.version
        assert ages(tables.scan(ref)) == ADA_AND_BO

    def test_rows_are_appended(self, tables: Tables) -> None:
        ref = populated(tables, ADA_AND_BO)
        assert ages(tables.scan(tables.commit_staged(appended(tables, ref, {"cy": 1})))) == {**ADA_AND_BO, "cy": 1}

    def test_appending_nothing_makes_an_equal_version(self, tables: Tables) -> None:
        ref = populated(tables, ADA_AND_BO)
        next_one = tables.commit_staged(appended(tables, ref, {}))
        assert next_one.version == ref.version + 1
        assert ages(tables.scan(next_one)) == ADA_AND_BO

    @pytest.mark.parametrize("rows", [{"cy": 1, "ada": 2}, {}], ids=["rows", "empty"])
    def test_everything_is_overwritten(self, tables: Tables, rows: dict[str, int | None]) -> None:
        ref = populated(tables, ADA_AND_BO)
        staged = stage_overwrite(tables.open(ref), LOCATION, None, people(rows), "test")
        new = tables.commit_staged(staged)
        assert ages(tables.scan(new)) == rows
        assert tables.open(new).has_stable_row_ids
        more = change(tables, new, {"later": 5})
        assert not set(row_ids(tables, more).values()) & set(row_ids(tables, ref).values()), "no id is used twice"

    def test_an_overwrite_may_bring_other_columns(self, tables: Tables) -> None:
        ref = populated(tables, ADA_AND_BO)
        rows = pa.table({"id": ["x"], "height": [1.5]})
        new = tables.commit_staged(stage_overwrite(tables.open(ref), LOCATION, None, rows, "test"))
        assert tables.scan(new).read_all().to_pylist() == [{"id": "x", "height": 1.5}]

    def test_a_commit_can_be_recognised(self, tables: Tables) -> None:
        """Recovery asks a version which staged change made it."""
        staged = appended(tables, populated(tables, ADA_AND_BO), {"cy": 1})
        made = tables.commit_staged(staged)
        assert tables.transaction_id(made) == staged.transaction_id
        assert tables.operation_of(made) == "test"

    def test_a_disk_in_the_way_is_reported(self, local_store: Store) -> None:
        tables = local_store.tables()
        ref = tables.create(LOCATION, SCHEMA)
        (Path(local_store.uri) / LOCATION / "data").write_text("a file where the folder for data must be")
        with pytest.raises(StorageUnavailable, match=LOCATION):
            appended(tables, ref, ADA_AND_BO)


class TestRestore:
    def test_an_older_version_becomes_the_newest(self, tables: Tables) -> None:
        second = populated(tables, ADA_AND_BO)
        third = change(tables, second, {"ada": 37, "cy": 1}, ["bo"])
        fourth = tables.restore(second, third.version, owner="recovery")
        assert tables.operation_of(fourth) == "recovery"
        assert fourth == TableRef(LOCATION, None, 4)
        assert ages(tables.scan(fourth)) == ADA_AND_BO
        assert row_ids(tables, fourth) == row_ids(tables, second)

    def test_to_whoever_saw_the_older_version_nothing_happened(self, tables: Tables) -> None:
        """A rollback publishes the restored version; diffs across it must be empty."""
        second = populated(tables, ADA_AND_BO)
        third = change(tables, second, {"ada": 37, "cy": 1}, ["bo"])
        delta = tables.delta(tables.restore(second, third.version), since=second.version)
        assert (len(delta.inserted), len(delta.updated), len(delta.deleted)) == (0, 0, 0)

    def test_row_ids_of_what_was_undone_are_not_used_again(self, tables: Tables) -> None:
        second = populated(tables, ADA_AND_BO)
        third = change(tables, second, {"cy": 1})
        undone = row_ids(tables, third)["cy"]
        fifth = change(tables, tables.restore(second, third.version), {"di": 2})
        assert row_ids(tables, fifth)["di"] != undone


class TestLog:
    LINES = pa.schema([pa.field("line", pa.string(), nullable=False)])

    def test_it_grows(self, tables: Tables) -> None:
        for line in ("first", "second"):
            tables.append_to_log("log", pa.Table.from_pylist([{"line": line}], schema=self.LINES))
        newest = tables.newest("log")
        assert newest is not None
        assert tables.scan(TableRef("log", None, newest)).read_all()["line"].to_pylist() == ["first", "second"]

    def test_it_stays_in_few_files(self, tables: Tables) -> None:
        """Otherwise each append would add a request to every later look at the log."""
        for number in range(3 * LOG_FILES):
            tables.append_to_log("log", pa.Table.from_pylist([{"line": str(number)}], schema=self.LINES))
        newest = tables.newest("log")
        assert newest is not None
        ref = TableRef("log", None, newest)
        assert len(tables.open(ref).get_fragments()) < LOG_FILES
        assert tables.scan(ref).read_all()["line"].to_pylist() == [str(number) for number in range(3 * LOG_FILES)]

    def test_files_that_are_large_are_not_written_again(self, memory_store: Store) -> None:
        tables = memory_store.tables()
        many = [{"line": str(number)} for number in range(LOG_ROWS_PER_FILE)]
        tables.append_to_log("log", pa.Table.from_pylist(many, schema=self.LINES))
        for number in range(2 * LOG_FILES):
            tables.append_to_log("log", pa.Table.from_pylist([{"line": str(number)}], schema=self.LINES))
        newest = tables.newest("log")
        assert newest is not None
        first, *_ = tables.open(TableRef("log", None, newest)).get_fragments()
        assert (first.fragment_id, first.count_rows()) == (0, LOG_ROWS_PER_FILE)

    def test_processes_that_append_together_lose_nothing(self, shared_store: Store) -> None:
        """From the first line on, when several find that there is no log yet."""
        with children(*[(append_lines, shared_store, str(number), 10) for number in range(3)]) as writers:
            start_together(writers)
            for child in writers:
                child.join()
        tables = shared_store.tables()
        newest = tables.newest("log")
        assert newest is not None
        found = tables.scan(TableRef("log", None, newest)).read_all()["line"].to_pylist()
        assert sorted(found) == sorted(f"{name}.{number}" for name in "012" for number in range(10))
