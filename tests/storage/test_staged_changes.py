"""Inserts, updates and deletes of one table as one transaction: exact deltas, kept row ids, right indexes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.storage.rows import LOCATION, SCHEMA, ages, change, changed, people, populated, row_ids, with_row_ids
from tests.stores import Store

from omnigraph.storage.stage.changes import stage_appends, stage_changes
from omnigraph.storage.stage.indexes import IndexSpec, stage_create_index
from omnigraph.storage.stage.lookups import locate_rows
from omnigraph.storage.tables import TableRef, Tables

ABCD = {"ada": 36, "bo": 7, "cy": 50, "di": 12}


@pytest.fixture
def tables(store: Store) -> Tables:
    return store.tables()


@pytest.fixture
def ref(tables: Tables) -> TableRef:
    return populated(tables, ABCD)


class TestOneTransaction:
    def test_it_inserts_updates_and_deletes(self, tables: Tables, ref: TableRef) -> None:
        change = changed(tables, ref, {"ada": 37, "eve": 1, "bo": 8}, ["cy"])
        assert (change.inserted, change.updated, change.deleted) == (1, 2, 1)
        after = tables.commit_staged(change.staged)
        assert after.version == ref.version + 1
        assert ages(tables.scan(after)) == {"ada": 37, "bo": 8, "di": 12, "eve": 1}

    def test_an_updated_row_keeps_its_row_id_and_a_new_one_gets_a_new_one(
        self, tables: Tables, ref: TableRef
    ) -> None:
        before = row_ids(tables, ref)
        after = row_ids(tables, change(tables, ref, {"eve": 1, "di": 13, "fay": 2, "ada": 37}, ["cy"]))
        assert {name: after[name] for name in ("ada", "bo", "di")} == {n: before[n] for n in ("ada", "bo", "di")}
        assert len(set(after.values()) | set(before.values())) == 6

    def test_the_delta_is_exact(self, tables: Tables, ref: TableRef) -> None:
        before = row_ids(tables, ref)
        after = change(tables, ref, {"ada": 37, "eve": 1}, ["cy"])
        delta = tables.delta(after, since=ref.version)
        assert list(with_row_ids(tables, after, delta.inserted).values()) == ["eve"]
        assert delta.updated.to_pylist() == [before["ada"]]
        assert delta.deleted.to_pylist() == [before["cy"]]

    def test_a_delta_over_several_versions_tells_the_sum(self, tables: Tables, ref: TableRef) -> None:
        before = row_ids(tables, ref)
        third = change(tables, ref, {"ada": 37, "eve": 1, "fay": 2})
        fourth = change(tables, third, {"ada": 38, "eve": 3}, ["bo", "fay"])
        delta = tables.delta(fourth, since=ref.version)
        assert list(with_row_ids(tables, fourth, delta.inserted).values()) == ["eve"]
        assert delta.updated.to_pylist() == [before["ada"]]
        assert delta.deleted.to_pylist() == [before["bo"]]
        nothing = tables.delta(fourth, since=fourth.version)
        assert (len(nothing.inserted), len(nothing.updated), len(nothing.deleted)) == (0, 0, 0)

    @pytest.mark.parametrize(
        ("upserts", "deletes", "expected"),
        [
            pytest.param({"eve": 1}, [], ABCD | {"eve": 1}, id="inserts only"),
            pytest.param({"ada": 37}, [], ABCD | {"ada": 37}, id="updates only"),
            pytest.param({}, ["ada", "cy"], {"bo": 7, "di": 12}, id="deletes only"),
            pytest.param({}, [], ABCD, id="nothing at all"),
            pytest.param({}, list(ABCD), {}, id="everything deleted"),
            pytest.param(dict.fromkeys(ABCD, 0), [], dict.fromkeys(ABCD, 0), id="everything updated"),
            pytest.param({"eve": 1}, list(ABCD), {"eve": 1}, id="everything replaced"),
            pytest.param({"ada": None}, [], ABCD | {"ada": None}, id="a value taken away"),
        ],
    )
    def test_at_the_edges(
        self,
        tables: Tables,
        ref: TableRef,
        upserts: dict[str, int | None],
        deletes: list[str],
        expected: dict[str, int | None],
    ) -> None:
        after = change(tables, ref, upserts, deletes)
        assert ages(tables.scan(after)) == expected
        again = change(tables, after, {"zoe": 99})
        assert ages(tables.scan(again)) == expected | {"zoe": 99}
        assert len(set(row_ids(tables, again).values())) == len(expected) + 1

    def test_deleting_what_is_not_there_does_nothing(self, tables: Tables, ref: TableRef) -> None:
        change = changed(tables, ref, {}, ["nobody", "bo", "o'nobody"])
        assert (change.inserted, change.updated, change.deleted) == (0, 0, 1)
        assert ages(tables.scan(tables.commit_staged(change.staged))) == {"ada": 36, "cy": 50, "di": 12}

    @pytest.mark.parametrize("name", ["o'neil", "''", '"quoted"', "back\\slash", "ünï 日本", "", "a,b", "%", "`"])
    def test_an_id_may_be_any_text(self, local_store: Store, name: str) -> None:
        tables = local_store.tables()
        with_name = change(tables, populated(tables, ABCD), {name: 1})
        updated = change(tables, with_name, {name: 2})
        assert ages(tables.scan(updated)) == ABCD | {name: 2}
        assert row_ids(tables, updated) == row_ids(tables, with_name)
        assert ages(tables.scan(change(tables, updated, {}, [name]))) == ABCD

    @pytest.mark.parametrize(
        ("upserts", "deletes"),
        [(["eve", "eve"], []), (["ada", "ada"], []), (["ada"], ["ada"]), ([], ["ada", "ada"])],
    )
    def test_an_id_may_be_changed_only_once(
        self, local_store: Store, upserts: list[str], deletes: list[str]
    ) -> None:
        tables = local_store.tables()
        handle = tables.open(populated(tables, ABCD))
        rows = pa.concat_tables([SCHEMA.empty_table(), *(people({name: 1}) for name in upserts)])
        with pytest.raises(ValueError, match="twice"):
            stage_changes(handle, LOCATION, None, rows, pa.array(deletes, pa.string()), "test")


class TestManyRows:
    """Lance writes several files, and finds many rows by reading all ids."""

    def test_row_ids_are_kept_over_several_files(self, store: Store) -> None:
        tables = store.tables()
        ref = populated(tables, {f"p{number:02}": number for number in range(50)}, rows_per_file=10)
        assert len(tables.open(ref).get_fragments()) == 5
        upserts: dict[str, int | None] = {f"p{number:02}": -number for number in range(5, 30)}
        upserts |= {f"q{number:02}": number for number in range(12)}
        deletes = [f"p{number:02}" for number in range(30, 42)]
        before = row_ids(tables, ref)
        after = change(tables, ref, upserts, deletes, rows_per_file=10)

        expected = {f"p{number:02}": number for number in range(50)} | upserts
        assert ages(tables.scan(after)) == {name: age for name, age in expected.items() if name not in deletes}
        kept = row_ids(tables, after)
        assert all(kept[name] == before[name] for name in kept if name.startswith("p"))
        assert len(set(before.values()) | set(kept.values())) == 50 + 12
        delta = tables.delta(after, since=ref.version)
        assert set(delta.inserted.to_pylist()) == {kept[name] for name in upserts if name.startswith("q")}
        assert set(delta.updated.to_pylist()) == {kept[name] for name in upserts if name.startswith("p")}
        assert set(delta.deleted.to_pylist()) == {before[name] for name in deletes}

    @pytest.mark.parametrize("probe", [0, 3, 1000])
    def test_rows_are_found_by_probing_or_by_reading_all(self, tables: Tables, ref: TableRef, probe: int) -> None:
        where = locate_rows(tables.open(ref), pa.array(["cy", "nobody", "ada", "o'neil"]), probe)
        known = row_ids(tables, ref)
        assert dict(zip(where["id"].to_pylist(), where["row_id"].to_pylist(), strict=True)) == {
            name: known[name] for name in ("ada", "cy")
        }
        after = change(tables, ref, {"ada": 37, "o'neil": 1}, ["cy", "nobody"], probe_limit=probe)
        assert ages(tables.scan(after)) == {"ada": 37, "bo": 7, "di": 12, "o'neil": 1}

    def test_more_keys_than_are_probed(self, local_store: Store) -> None:
        tables = local_store.tables()
        ref = populated(tables, {f"p{number}": number for number in range(6_000)})
        change = changed(tables, ref, {f"p{number}": 0 for number in range(5_500, 11_000)})
        assert (change.inserted, change.updated, change.deleted) == (5_000, 500, 0)
        after = tables.commit_staged(change.staged)
        assert tables.count(after) == 11_000
        assert tables.scan(after, ["id"], "age = 0").read_all().num_rows == 5_501


class TestIndexes:
    SPECS = (
        IndexSpec("id", "BTREE", "by_id"),
        IndexSpec("age", "BTREE", "by_age"),
    )

    @pytest.fixture
    def indexed(self, tables: Tables, ref: TableRef) -> TableRef:
        return tables.commit_staged(stage_create_index(tables.open(ref), LOCATION, None, self.SPECS, "test"))

    def test_several_are_built_in_one_version_and_used(
        self, tables: Tables, ref: TableRef, indexed: TableRef
    ) -> None:
        assert indexed.version == ref.version + 1
        names = {index.name for index in tables.open(indexed).describe_indices()}
        assert names == {spec.name for spec in self.SPECS}
        plan = tables.open(indexed).scanner(columns=["id"], filter="id = 'bo'").explain_plan()
        assert "ScalarIndexQuery" in plan

    def test_they_do_not_change_what_is_there(self, tables: Tables, ref: TableRef, indexed: TableRef) -> None:
        assert ages(tables.scan(indexed)) == ABCD
        delta = tables.delta(indexed, since=ref.version)
        assert (len(delta.inserted), len(delta.updated), len(delta.deleted)) == (0, 0, 0)

    def test_they_follow_every_change(self, tables: Tables, indexed: TableRef) -> None:
        """Neither a stale hit nor a missing row: what was updated is found by its new values only."""
        after = change(tables, indexed, {"ada": 7, "eve": 99}, ["cy"])
        for _ in range(2):
            assert ages(tables.scan(after, where="id = 'ada'")) == {"ada": 7}
            assert ages(tables.scan(after, where="id in ('cy', 'eve', 'di')")) == {"eve": 99, "di": 12}
            assert ages(tables.scan(after, where="age = 7")) == {"ada": 7, "bo": 7}
            assert ages(tables.scan(after, where="age in (36, 50)")) == {}
            after = change(tables, after, {"fay": 1})

    def test_they_can_be_built_before_there_are_rows(self, tables: Tables) -> None:
        empty = tables.create("nodes/empty", SCHEMA)
        ref = tables.commit_staged(
            stage_create_index(tables.open(empty), empty.location, None, self.SPECS, "test")
        )
        after = change(tables, ref, ABCD)
        assert ages(tables.scan(after, where="id = 'bo'")) == {"bo": 7}

    @pytest.mark.parametrize("rows", [0, 1, 40])
    def test_an_index_of_vectors(self, local_store: Store, rows: int) -> None:
        place = pa.field("place", pa.list_(pa.float32(), 2))
        schema = pa.schema([pa.field("id", pa.string(), nullable=False), place])
        table = [{"id": f"{n}", "place": [n, 0]} for n in range(50)]
        specs = [IndexSpec("place", "IVF_FLAT", "places")]
        tables = local_store.tables()

        def upsert(ref: TableRef, rows: list[dict[str, Any]]) -> TableRef:
            upserts, none = pa.Table.from_pylist(rows, schema=schema), pa.array([], pa.string())
            staged = stage_changes(tables.open(ref), LOCATION, None, upserts, none, "test").staged
            return tables.commit_staged(staged)

        ref = upsert(tables.create(LOCATION, schema), table[:rows])
        ref = tables.commit_staged(stage_create_index(tables.open(ref), LOCATION, None, specs, "test"))
        ref = upsert(ref, table[rows:])
        nearest = {"column": "place", "q": pa.array([7, 0], pa.float32()), "k": 3}
        near = tables.open(ref).scanner(columns=["id", "_distance"], nearest=nearest).to_table()
        assert set(near["id"].to_pylist()) == {"6", "7", "8"}


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 2), (1, 3, 2)], ids=str)
def test_changes_that_are_staged_together_share_no_file(
    tables: Tables, ref: TableRef, sizes: tuple[int, ...]
) -> None:
    """Each can be committed without those behind it, whether Lance wrote them with one call or with several."""
    parts = [{f"{part}-{row}": part for row in range(size)} for part, size in enumerate(sizes)]
    staged = stage_appends(
        tables.open(ref),
        ref.location,
        ref.branch,
        [(people(rows), f"change {part}") for part, rows in enumerate(parts)],
    )
    expected = dict(ABCD)
    for one, rows in zip(staged, parts, strict=True):
        moved = replace(one.transaction, read_version=ref.version)
        ref = tables.commit_staged(replace(one, read_version=ref.version, transaction=moved))
        expected |= rows
        assert ages(tables.scan(ref)) == expected
