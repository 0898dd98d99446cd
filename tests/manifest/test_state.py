"""Rows and states: what one version of the `__manifest` table says, and how older releases said it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.manifest.stamp import INTERNAL_SCHEMA_VERSION, STAMP
from omnigraph.manifest.state import (
    MANIFEST_SCHEMA,
    Commit,
    ManifestState,
    TablePin,
    Tombstone,
    decode,
    encode,
    read_stamp,
)

NOON = dt.datetime(2026, 5, 1, 12, 0, tzinfo=dt.UTC)


def registered(key: str, location: str) -> dict[str, Any]:
    return {
        "object_id": f"table:{key}:{location}",
        "object_type": "table",
        "table_key": key,
        "location": location,
    }


def at_version(
    key: str, version: int, location: str | None = None, branch: str | None = None, rows: int = 0
) -> dict[str, Any]:
    return {
        "object_id": f"version:{key}:{location}:{branch}:{version}",
        "object_type": "table_version",
        "table_key": key,
        "location": location,
        "table_version": version,
        "table_branch": branch,
        "row_count": rows,
    }


def dropped(key: str, version: int, location: str | None = None) -> dict[str, Any]:
    return {
        "object_id": f"tombstone:{key}:{location}:{version}",
        "object_type": "table_tombstone",
        "table_key": key,
        "location": location,
        "table_version": version,
    }


def seen(rows: Iterable[dict[str, Any]]) -> dict[str, TablePin]:
    """The tables that rows of an older release show."""
    table = pa.Table.from_pylist(list(rows), schema=MANIFEST_SCHEMA.with_metadata({STAMP: "3"}))
    return dict(decode(table, 1).tables)


def commit(number: int, **more: Any) -> Commit:
    at = NOON + dt.timedelta(seconds=number)
    return Commit(f"C{number:03}", "main", number, (f"C{number - 1:03}",), at, "load", **more)


def test_a_state_survives_its_rows() -> None:
    state = ManifestState(
        version=9,
        tables={
            "edge:Knows": TablePin("edge:Knows", "edges/e", 4, "dev.01k", 12),
            "node:Person": TablePin("node:Person", "nodes/p", 7, None, 3),
        },
        tombstones=(Tombstone("node:City", "nodes/c", 2),),
        commits=(commit(8), commit(9, actor_id="ada", message="naïve “quotes” and ' marks")),
    )
    assert decode(encode(state, "dev"), 9) == state


def test_rows_that_are_kept_are_not_those_of_another_checksum() -> None:
    """Pins are equal whatever the checksum of the version's file is."""
    states = [
        ManifestState(3, {"node:P": TablePin("node:P", "nodes/p", 2, None, 1, checksum)})
        for checksum in ("one", None, "two", "one")
    ]
    read = [decode(encode(state, "main"), 3).tables["node:P"].checksum for state in states]
    assert read == ["one", None, "two", "one"]


def test_an_empty_state_survives_its_rows() -> None:
    assert decode(encode(ManifestState(1), "main"), 1) == ManifestState(1)


def test_rows_carry_the_stamp_and_mark_their_key() -> None:
    written = encode(ManifestState(1), "main").schema
    assert read_stamp(written) == INTERNAL_SCHEMA_VERSION
    assert written.field("object_id").metadata == {b"lance-schema:unenforced-primary-key": b"true"}


def test_a_manifest_without_a_stamp_is_the_first_kind() -> None:
    assert read_stamp(MANIFEST_SCHEMA.with_metadata(None)) == 1


def test_the_head_is_the_newest_commit() -> None:
    assert ManifestState(0).head is None
    shuffled = ManifestState(3, commits=(commit(3), commit(1), commit(2)))
    head = decode(encode(shuffled, "main"), 3).head
    assert head is not None
    assert head.graph_commit_id == "C003"


def test_the_head_row_names_the_branch_and_its_commit() -> None:
    rows = encode(ManifestState(2, commits=(commit(2),)), "review/1").to_pylist()
    (head,) = [row for row in rows if row["object_type"] == "graph_head"]
    assert (head["object_id"], head["metadata"]) == ("graph_head:review/1", '{"graph_commit_id": "C002"}')


def test_commit_rows_of_older_releases_are_not_ours_to_read() -> None:
    foreign = {"object_id": "x", "object_type": "graph_commit", "metadata": "not json"}
    table = pa.Table.from_pylist([foreign], schema=MANIFEST_SCHEMA.with_metadata({STAMP: "3"}))
    assert decode(table, 1).commits == ()


class TestRowsOfOlderReleases:
    """They kept one row for every version ever published; a table's place has to be found among them."""

    def test_the_newest_version_counts(self) -> None:
        rows = [registered("node:P", "nodes/p"), *(at_version("node:P", v, "nodes/p", rows=v) for v in (1, 3, 2))]
        assert seen(rows) == {"node:P": TablePin("node:P", "nodes/p", 3, None, 3)}

    def test_a_branch_goes_on_from_its_parents_version(self) -> None:
        rows = [at_version("node:P", 4, "nodes/p"), at_version("node:P", 5, "nodes/p", branch="dev")]
        assert seen(rows)["node:P"].table_branch == "dev"

    def test_a_version_without_a_location_is_where_its_table_was_registered(self) -> None:
        assert seen([registered("node:P", "nodes/p"), at_version("node:P", 1)])["node:P"].location == "nodes/p"

    def test_a_registration_without_a_version_is_no_table_yet(self) -> None:
        assert seen([registered("node:P", "nodes/p")]) == {}

    @pytest.mark.parametrize(("tombstone", "visible"), [(1, True), (2, False), (3, False)])
    def test_a_tombstone_hides_versions_up_to_its_own(self, tombstone: int, visible: bool) -> None:
        rows = [at_version("node:P", 1, "nodes/p"), at_version("node:P", 2, "nodes/p")]
        assert bool(seen([*rows, dropped("node:P", tombstone, "nodes/p")])) is visible

    def test_a_tombstone_without_a_location_hides_the_table_wherever_it_is(self) -> None:
        assert seen([at_version("node:P", 2, "nodes/p"), dropped("node:P", 2)]) == {}

    def test_a_tombstone_is_about_one_table_only(self) -> None:
        rows = [at_version("node:P", 1, "nodes/p"), at_version("node:Q", 1, "nodes/q"), dropped("node:P", 9)]
        assert set(seen(rows)) == {"node:Q"}

    def test_a_type_that_was_dropped_and_added_again_is_not_hidden_by_its_past(self) -> None:
        rows = [
            registered("node:P", "nodes/p"),
            at_version("node:P", 8, "nodes/p"),
            dropped("node:P", 8, "nodes/p"),
            registered("node:P", "nodes/p-1"),
            at_version("node:P", 1, "nodes/p-1"),
        ]
        assert seen(rows)["node:P"] == TablePin("node:P", "nodes/p-1", 1)

    def test_the_registered_location_wins_over_a_higher_version_elsewhere(self) -> None:
        rows = [
            registered("node:P", "nodes/new"),
            at_version("node:P", 9, "nodes/old"),
            at_version("node:P", 1, "nodes/new"),
        ]
        assert seen(rows)["node:P"].location == "nodes/new"


KEYS = st.sampled_from(["node:P", "node:Q", "edge:E"])
LOCATIONS = st.sampled_from(["a", "b"])
VERSIONS = st.integers(1, 5)
ROWS = st.lists(
    st.one_of(
        st.builds(registered, KEYS, LOCATIONS),
        st.builds(at_version, KEYS, VERSIONS, LOCATIONS),
        st.builds(dropped, KEYS, VERSIONS, st.none() | LOCATIONS),
    ),
    max_size=20,
)


def naive(rows: list[dict[str, Any]]) -> dict[str, set[tuple[str, int]]]:
    """The rule, as slowly as it is said: of versions no tombstone hides, the registered place, then the newest.

    Two places nobody registered may hold the same version; then either will do.
    """
    tables = {}
    for key in {row["table_key"] for row in rows}:
        mine = [row for row in rows if row["table_key"] == key]
        places = [row["location"] for row in mine if row["object_type"] == "table"]
        visible = [
            (row["location"], row["table_version"])
            for row in mine
            if row["object_type"] == "table_version"
            and not any(
                gone["object_type"] == "table_tombstone"
                and gone["location"] in (None, row["location"])
                and gone["table_version"] >= row["table_version"]
                for gone in mine
            )
        ]
        at_home = [found for found in visible if places and found[0] == places[-1]]
        if visible:
            newest = max(version for _, version in at_home or visible)
            tables[key] = {found for found in at_home or visible if found[1] == newest}
    return tables


@given(ROWS)
@settings(deadline=None)
def test_the_snapshot_of_any_rows_is_what_the_rule_says(rows: list[dict[str, Any]]) -> None:
    expected = naive(rows)
    found = {key: (pin.location, pin.table_version) for key, pin in seen(rows).items()}
    assert found.keys() == expected.keys()
    assert all(found[key] in allowed for key, allowed in expected.items())


STATES = st.builds(
    lambda keys, versions, gone, commits: ManifestState(
        version=commits + 1,
        tables={k: TablePin(k, f"at/{k}", v, None, v) for k, v in zip(sorted(keys), versions, strict=False)},
        tombstones=tuple(Tombstone(f"node:Gone{i}", None, v) for i, v in enumerate(gone)),
        commits=tuple(commit(number) for number in range(commits)),
    ),
    st.sets(st.from_regex(r"(node|edge):[A-Z][a-z]{0,3}", fullmatch=True), max_size=6),
    st.lists(st.integers(1, 2**63), min_size=6, max_size=6),
    st.lists(VERSIONS, max_size=3),
    st.integers(0, 5),
)


@given(STATES)
@settings(deadline=None)
def test_any_state_survives_its_rows_and_no_two_rows_share_a_key(state: ManifestState) -> None:
    rows = encode(state, "main")
    ids = rows["object_id"].to_pylist()
    assert len(set(ids)) == len(ids)
    assert decode(rows, state.version) == state
