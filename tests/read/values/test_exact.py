"""Texts are found whatever their length and letters, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from omnigraph.read.values.exact import WIDEST, ExactIndex, Words, hashed, mixed


def all_alike(words: Words) -> Words:
    """The worst hash there can be."""
    return np.zeros(len(words), dtype=np.uint64)


def few(words: Words) -> Words:
    """A hash with four values, all of which begin in the last slots of a table."""
    return np.uint64(2**64 - 1) - mixed(words) % np.uint64(4)


TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["", "\0", "a", "a\0", "a\0\0", "abcdefgh", "abcdefgh\0", "ÿ" * 4]),
    # Just as long as what is packed, a little longer, and of the same beginning.
    st.builds(lambda size, end: "x" * size + end, st.integers(WIDEST - 2, WIDEST + 20), st.sampled_from("xyä")),
)
HASHES = st.sampled_from([mixed, all_alike, few])
KINDS = st.sampled_from([pa.string(), pa.large_string()])


@settings(deadline=None, max_examples=examples(200, of=1_000))
@given(st.lists(st.none() | TEXTS, max_size=40), st.lists(st.none() | TEXTS, max_size=40), KINDS, HASHES)
def test_places_are_those_of_a_dictionary(
    there: list[str | None], others: list[str | None], kind: pa.DataType, mix: Callable[[Words], Words]
) -> None:
    wanted = [*others, *there[::-1], *others]
    index = ExactIndex(pa.array(there, kind), mix)
    found = index.places(pa.array(wanted, kind)).tolist()
    texts = {text for text in there if text is not None}
    assert [place >= 0 for place in found] == [text in texts for text in wanted]
    assert all(there[place] == text for place, text in zip(found, wanted, strict=True) if place >= 0)
    assert index.has_repeats == (len(texts) < len(there) - there.count(None))


@settings(deadline=None, max_examples=examples(100, of=1_000))
@given(st.lists(st.tuples(TEXTS, st.booleans()), max_size=40), HASHES)
def test_of_equal_texts_the_live_one_is_found(rows: list[tuple[str, bool]], mix: Callable[[Words], Words]) -> None:
    last = {text: position for position, (text, _) in enumerate(rows)}
    live = np.array([keeps and last[text] == position for position, (text, keeps) in enumerate(rows)], np.bool_)
    texts = pa.array([text for text, _ in rows], pa.string())
    found = ExactIndex(texts, mix).places(texts, live).tolist()
    assert found == [last[text] if live[last[text]] else -1 for text, _ in rows]


@pytest.mark.parametrize("length", [6, 30, 80])
def test_many_texts_are_found_as_arrow_finds_them(length: int) -> None:
    """So many that several blocks are needed, on both sides."""
    random = np.random.default_rng(length)
    numbers = random.permutation(100_000)
    texts = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), length, "0")
    there, wanted = texts.slice(0, 70_000), texts.take(pa.array(random.integers(0, 100_000, 100_000)))
    index = ExactIndex(there)
    assert not index.has_repeats
    expected = pc.fill_null(pc.index_in(wanted, value_set=there), -1).to_pylist()
    assert index.places(wanted).tolist() == expected


def test_one_text_many_times_takes_no_longer_than_many_texts() -> None:
    """It would if each of them followed the slots of all others."""
    index = ExactIndex(pa.array(["same"] * 200_000 + ["other"]))
    assert index.has_repeats
    assert index.places(pa.array(["other", "same", "none"])).tolist()[::2] == [200_000, -1]


def test_one_very_long_text_does_not_widen_the_others() -> None:
    short = [f"id-{number}" for number in range(1_000)]
    index = ExactIndex(pa.array([*short, "x" * 1_000_000]))
    assert index.places(pa.array(["x" * 1_000_000, "x" * 999_999, "id-7"])).tolist() == [1_000, -1, 7]
    assert index.nbytes < 2_000_000


def test_slices_are_read_from_where_they_begin() -> None:
    texts = pa.array(["", "a", "abcdefgh", "abcdefghi", "ä" * 9, "z"])
    for start in range(len(texts)):
        for size in range(len(texts) - start):
            part = texts.slice(start, size)
            assert hashed(part).tolist() == hashed(pa.array(part.to_pylist(), pa.string())).tolist()
            assert ExactIndex(part).places(texts).tolist() == [
                place - start if start <= place < start + size else -1 for place in range(len(texts))
            ]


def test_bytes_behind_a_text_do_not_matter() -> None:
    assert hashed(pa.array(["ab", "xyz"]))[0] == hashed(pa.array(["ab", "q"]))[0]
