"""Coarser versions of rows: small, and never a reason to miss a change."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance.fragment import FragmentMetadata

from omnigraph.storage.files.wire import encode_fields
from omnigraph.storage.stage.row_versions import _decoded, _encoded, with_coarser_versions

CREATED, CHANGED = "created_at_version_meta", "last_updated_at_version_meta"


def fragment(created: list[int], changed: list[int]) -> FragmentMetadata:
    """A fragment whose rows have these versions."""
    described: dict[str, Any] = {"id": 1, "files": [], "physical_rows": len(created)}
    for name, versions in ((CREATED, created), (CHANGED, changed)):
        described[name] = {"inline": list(_encoded(np.array(versions, np.uint64)))}
    return FragmentMetadata.from_json(json.dumps(described))


def versions(found: FragmentMetadata) -> list[tuple[int, int]]:
    """The versions that created and changed each row."""
    described = found.to_json()
    created, changed = (_decoded(described[name], found.physical_rows).tolist() for name in (CREATED, CHANGED))
    return list(zip(created, changed, strict=True))


def size(found: FragmentMetadata) -> int:
    described = found.to_json()
    return sum(len(described[name]["inline"]) for name in (CREATED, CHANGED))


def test_few_rows_keep_their_versions() -> None:
    few = fragment(list(range(1, 64)), list(range(1, 64)))
    assert versions(with_coarser_versions(few, 63)) == versions(few)


@pytest.mark.long
def test_many_rows_take_little_room() -> None:
    one_by_one = list(range(1, 65_537))
    exact = fragment(one_by_one, one_by_one)
    assert size(exact) > 1_000_000
    assert size(with_coarser_versions(exact, 63)) < 600


@pytest.mark.parametrize("since", [0, 1, 100, 3_000, 3_999, 4_000])
def test_the_rows_that_may_have_changed_are_at_most_twice_those_that_have(since: int) -> None:
    one_by_one = list(range(1, 4_001))
    found = versions(with_coarser_versions(fragment(one_by_one, one_by_one), 63))
    assert 4_000 - since <= sum(changed > since for _, changed in found) <= 2 * (4_000 - since)


@given(
    rows=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 60)), min_size=1, max_size=60),
    exact_rows=st.integers(1, 20),
)
def test_what_stays_certain(rows: list[tuple[int, int]], exact_rows: int) -> None:
    exact = [(created, created + more) for created, more in rows]
    created, changed = map(list, zip(*exact, strict=True))
    coarse = versions(with_coarser_versions(fragment(created, changed), exact_rows))
    for (made, written), (coarse_made, coarse_written) in zip(exact, coarse, strict=True):
        assert coarse_written >= written
        assert coarse_made <= coarse_written
        for version in range(made, written):
            assert coarse_made <= version < coarse_written


def test_versions_that_are_stored_in_an_unknown_way_stay_as_they_are() -> None:
    described = fragment(list(range(1, 101)), list(range(1, 101))).to_json()
    described[CREATED] = {"inline": list(encode_fields(((7, b"new"),)))}
    strange = FragmentMetadata.from_json(json.dumps(described))
    assert with_coarser_versions(strange, 63).to_json() == strange.to_json()
