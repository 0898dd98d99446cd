"""The paths of a graph, and that they are the paths Lance really writes."""

from __future__ import annotations

import pytest
from tests.storage.rows import appended, populated
from tests.stores import Store

from omnigraph.storage import layout
from omnigraph.storage.tables import TableRef


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("", "cbf29ce484222325"),
        ("a", "af63dc4c8601ec8c"),
        ("b", "af63df4c8601f1a5"),
        ("foobar", "85944171f73967e8"),
        ("chongo was here!\n", "46810940eff5f915"),
    ],
)
def test_fnv1a64_has_the_published_values(text: str, digits: str) -> None:
    assert layout.fnv1a64(text) == digits


def fold(value: int, byte: int) -> int:
    return (value ^ byte) * 0x100000001B3 % 2**64


def test_fnv1a64_is_of_the_utf8_form() -> None:
    assert layout.fnv1a64("ü") == f"{fold(fold(0xCBF29CE484222325, 0xC3), 0xBC):016x}"


def test_a_table_is_found_by_the_kind_and_the_name_of_its_type() -> None:
    person = layout.fnv1a64("Person")
    assert layout.table_location("node:Person") == f"nodes/{person}"
    assert layout.table_location("edge:Person") == f"edges/{person}"
    assert layout.table_location("node:Person", added_by="01A") == f"nodes/{person}-01a"


def test_small_objects_have_their_places() -> None:
    assert layout.branch_ref("review/1") == "_refs/branches/review/1.json"
    assert layout.head_hint(None) == "_refs/heads/main.json"
    assert layout.head_hint("dev.01") == "_refs/heads/dev.01.json"


def test_a_native_branch_keeps_its_files_in_a_tree() -> None:
    assert layout.native_prefix("nodes/x", None) == "nodes/x"
    assert layout.native_prefix("nodes/x", "dev/a") == "nodes/x/tree/dev/a"


def test_a_version_is_the_file_that_lance_writes_for_it(shared_store: Store) -> None:
    """One look at one file tells whether a version exists, so its name must be right, also on branches."""
    tables, objects = shared_store.tables(), shared_store.objects()
    second = populated(tables, {"ada": 36})
    fork = tables.fork(second, "dev/a")
    third = tables.commit_staged(appended(tables, fork, {"bo": 7}))

    expected = {TableRef(second.location, None, 1), second, fork, third}
    listed = {key for key in objects.list(second.location) if key.endswith(".manifest")}
    assert listed == {layout.version_file(ref.location, ref.branch, ref.version) for ref in expected}


@pytest.mark.parametrize("name", ["dev", "review/1.01jx-a_B"])
def test_a_native_branch_is_listed_where_lance_lists_it(shared_store: Store, name: str) -> None:
    tables, objects = shared_store.tables(), shared_store.objects()
    ref = populated(tables, {"ada": 36})
    tables.fork(ref, name)
    assert objects.list(f"{ref.location}/_refs") == [layout.branch_entry(ref.location, name)]
