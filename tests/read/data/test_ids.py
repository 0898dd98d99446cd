"""Ids are found whatever their length and letters, and nothing else is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.read.data.ids import Hashes, IdIndex, hashed


@settings(deadline=None)
@given(
    st.lists(st.text(max_size=20), unique=True, max_size=30),
    st.lists(st.text(max_size=20), max_size=30),
    st.sampled_from([pa.string(), pa.large_string()]),
)
def test_places_are_those_of_a_dictionary(there: list[str], others: list[str], kind: pa.DataType) -> None:
    wanted = [*others, *there[::-1], *others]
    positions = {text: position for position, text in enumerate(there)}
    ids = pa.array(there, kind)
    found = IdIndex(ids).places(ids, pa.array(wanted, kind))
    assert found.tolist() == [positions.get(text, -1) for text in wanted]


def test_slices_are_read_from_where_they_begin() -> None:
    texts = pa.array(["", "a", "abcdefgh", "abcdefghi", "ä" * 9, "z"])
    for start in range(len(texts)):
        for size in range(len(texts) - start):
            part = texts.slice(start, size)
            assert hashed(part).tolist() == hashed(pa.array(part.to_pylist(), pa.string())).tolist()


def test_bytes_behind_a_text_do_not_matter() -> None:
    assert hashed(pa.array(["ab", "xyz"]))[0] == hashed(pa.array(["ab", "q"]))[0]


def test_equal_hashes_are_told_apart() -> None:
    """Of ids that are there, and of one that is not."""
    for there, wanted, places in (("ab", "bca", [1, -1, 0]), ("a", "ba", [-1, 0])):
        ids = pa.array(list(there))
        assert IdIndex(ids, all_alike).places(ids, pa.array(list(wanted))).tolist() == places


def all_alike(texts: pa.Array) -> Hashes:
    """The worst hash there can be."""
    return np.zeros(len(texts), dtype=np.uint64)
