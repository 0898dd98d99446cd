"""Version files that are built without Lance are those that Lance would have written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.storage import layout
from omnigraph.storage.files.successors import successor
from omnigraph.storage.files.versionfiles import Sections
from omnigraph.storage.files.wire import read_fields
from omnigraph.storage.stage.changes import field_ids

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("age", pa.int32()),
        ("vector", pa.list_(pa.float32(), 2)),
        ("tags", pa.list_(pa.string())),
        ("inner", pa.struct([("a", pa.int32())])),
    ]
)
TIMESTAMP = 7


def rows(first: int, count: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"r{i}" for i in range(first, first + count)],
            "age": [1] * count,
            "vector": [[1.0, 2.0]] * count,
            "tags": [["x"]] * count,
            "inner": [{"a": 1}] * count,
        },
        schema=SCHEMA,
    )


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    return LanceDataset.commit(
        str(tmp_path / "t"), LanceOperation.Overwrite(SCHEMA, []), enable_stable_row_ids=True
    )


def content(folder: Path, branch: str | None, version: int) -> bytes:
    return (folder / layout.version_file("t", branch, version)).read_bytes()


def parts(file: bytes) -> tuple[bytes, list[tuple[int, int | bytes]], bytes]:
    """What stands in a version file, but for the time at which it was made."""
    sections = Sections.of(file)
    fields = sorted((n, v) for n, v in read_fields(sections.description) if n != TIMESTAMP)
    return sections.before, fields, sections.end


def written(handle: LanceDataset, first: int, count: int, per_file: int) -> list[FragmentMetadata]:
    return list(write_fragments(rows(first, count), handle, mode="append", max_rows_per_file=per_file))


def added(handle: LanceDataset, fragments: list[FragmentMetadata]) -> LanceOperation.Update:
    """Fragments with new rows, as an update that changes no row that there is."""
    return LanceOperation.Update(
        removed_fragment_ids=[],
        updated_fragments=[],
        new_fragments=fragments,
        fields_modified=[],
        fields_for_preserving_frag_bitmap=field_ids(handle),
        update_mode="rewrite_rows",
    )


def commit_both_ways(
    folder: Path, handle: LanceDataset, operation: LanceOperation.BaseOperation, branch: str | None
) -> LanceDataset:
    """Commit with Lance; the file is the one that was built before."""
    properties = {"omnigraph:operation": "01ABC"}
    transaction = Transaction(handle.version, operation, transaction_properties=properties)
    ours = successor(content(folder, branch, handle.version), handle.version, transaction)
    after = LanceDataset.commit(handle, transaction, max_retries=0)
    assert ours is not None
    assert parts(ours) == parts(content(folder, branch, after.version))
    return after


def test_files_are_those_of_lance(tmp_path: Path, table: LanceDataset) -> None:
    """Into an empty table, behind other rows, with an index, after a delete, and on a branch."""
    handle = commit_both_ways(tmp_path, table, LanceOperation.Append(written(table, 0, 1, 9)), None)
    handle = commit_both_ways(tmp_path, handle, added(handle, written(handle, 1, 5, 2)), None)
    handle.create_scalar_index("id", "BTREE")
    handle.delete("id = 'r2'")
    handle = lance.dataset(str(tmp_path / "t"))
    handle = commit_both_ways(tmp_path, handle, LanceOperation.Append(written(handle, 6, 200, 150)), None)
    handle.create_branch("dev.1")
    forked = lance.dataset(str(tmp_path / "t" / "tree" / "dev.1"))
    forked = commit_both_ways(tmp_path, forked, added(forked, written(forked, 300, 1, 9)), "dev.1")
    forked = commit_both_ways(tmp_path, forked, added(forked, written(forked, 301, 2, 1)), "dev.1")
    assert forked.count_rows() == 208


def test_a_built_version_is_read_and_followed_by_lance(tmp_path: Path, table: LanceDataset) -> None:
    transaction = Transaction(1, LanceOperation.Append(written(table, 0, 3, 2)))
    built = successor(content(tmp_path, None, 1), 1, transaction)
    assert built is not None
    (tmp_path / layout.version_file("t", None, 2)).write_bytes(built)
    handle = lance.dataset(str(tmp_path / "t"))
    made_by = handle.read_transaction(2)
    assert made_by is not None
    assert (handle.version, made_by.uuid) == (2, transaction.uuid)
    handle.delete("id = 'r1'")
    after = lance.dataset(str(tmp_path / "t")).to_table(columns=["id"], with_row_id=True)
    assert after.to_pydict() == {"id": ["r0", "r2"], "_rowid": [0, 2]}


def test_what_does_more_than_add_rows_is_left_to_lance(tmp_path: Path, table: LanceDataset) -> None:
    fragments = written(table, 0, 1, 9)
    before = content(tmp_path, None, 1)
    overwrite = LanceOperation.Overwrite(SCHEMA, fragments)
    update = replace(added(table, fragments), removed_fragment_ids=[0])
    for operation in (overwrite, update, LanceOperation.Append([]), LanceOperation.Delete([], [0], "true")):
        assert successor(before, 1, Transaction(1, operation)) is None
    assert successor(before, 1, Transaction(2, LanceOperation.Append(fragments))) is None


def test_a_description_with_an_unknown_field_is_left_to_lance(tmp_path: Path, table: LanceDataset) -> None:
    sections = Sections.of(content(tmp_path, None, 1))
    newer = replace(sections, description=sections.description + b"\xf8\x06\x01").encode()
    transaction = Transaction(1, LanceOperation.Append(written(table, 0, 1, 9)))
    assert successor(newer, 1, transaction) is None
