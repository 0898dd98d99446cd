"""Ids that are numbers behind a common beginning are found as all texts are, and whatever is no such id is not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from omnigraph.bulk.load.checking.numbered import NumberedIds
from omnigraph.read.values.exact import ExactIndex

STEMS = st.sampled_from(["", "p", "p0x", "person-", "eight---", "Zürich/", "x" * 60])
FORMS = st.sampled_from(["{}", "{:02}", "{:04}", "{:08}", "{:09}", "{:016}", "{:017}", "{:020}"])
FIRSTS = st.sampled_from([0, 1, 7, 95, 99_999_990, 1_234_567_890_123])
ODD = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", "0", "00", "007", "-1", "+1", "1 ", " 1", "１", "1.0", "9" * 17, "12345678x", "1/", "1:"]
    ),
)


@settings(deadline=None, max_examples=examples(200, of=1_000))
@given(
    STEMS,
    FORMS,
    FIRSTS,
    st.lists(st.integers(0, 40), min_size=1, max_size=30),
    st.lists(st.none() | st.tuples(STEMS, ODD), max_size=20),
    st.sampled_from([pa.string(), pa.large_string()]),
)
def test_ids_are_found_as_all_texts_are(
    stem: str,
    form: str,
    first: int,
    numbers: list[int],
    others: list[tuple[str, str] | None],
    kind: pa.DataType,
) -> None:
    there = [stem + form.format(first + number) for number in numbers]
    more = [stem + form.format(first + number) for number in range(-2, 45) if first + number >= 0]
    wanted = [*there, *more, *(None if other is None else "".join(other) for other in others), stem]
    half = len(there) // 2
    index = NumberedIds.of([pa.array(there[:half], kind), pa.array(there[half:], kind)])
    exact = ExactIndex(pa.array(there, kind))
    if index is None:
        assert any(text.removeprefix(stem).startswith("0") for text in there), "no id is filled up with zeros"
        return
    assert len(index) == len(there)
    assert index.has_repeats == exact.has_repeats
    found = index.places(pa.array(wanted, kind)).tolist()
    assert [place >= 0 for place in found] == [text in there for text in wanted]
    assert all(there[place] == text for place, text in zip(found, wanted, strict=True) if place >= 0)


@settings(deadline=None, max_examples=examples(200, of=1_000))
@given(st.lists(ODD, min_size=1, max_size=12))
def test_whatever_is_indexed_is_found_again(texts: list[str]) -> None:
    index = NumberedIds.of([pa.array(texts, pa.string())])
    if index is not None:
        found = index.places(pa.array(texts, pa.string())).tolist()
        assert [texts[place] for place in found] == texts
        assert index.has_repeats == (len(set(texts)) < len(texts))


@pytest.mark.parametrize("digits", [16, 17, 20, 24])
def test_no_digit_is_overlooked(digits: int) -> None:
    """Ids that differ only in their last digits are different, however many digits there are."""
    texts = pa.array([f"{10_000 * number:0{digits}}" for number in range(1_000)])
    others = pa.array([f"{10_000 * number + 5:0{digits}}" for number in range(1_000)])
    index = NumberedIds.of([texts])
    assert index is None or index.places(others).max() == -1
    exact = ExactIndex(texts)
    assert exact.places(others).max() == -1


def test_usual_ids_are_indexed_as_numbers() -> None:
    for form in ("person-{}", "{}", "p{:07}", "urn:example:people:{}"):
        texts = pa.array([form.format(number) for number in range(990, 1_500)])
        index = NumberedIds.of([texts.slice(0, 200), texts.slice(200)])
        assert index is not None
        assert index.places(texts).tolist() == list(range(len(texts)))


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["a"],
        ["p1", "q2"],
        ["p1", None],
        ["1", "01"],
        ["10", "007"],
        ["0", "900000000"],
        ["x" * 65 + "1"],
        ["1", ""],
    ],
)
def test_other_ids_are_not(texts: list[str | None]) -> None:
    assert NumberedIds.of([pa.array(texts, pa.string())]) is None


def test_many_ids_in_several_blocks() -> None:
    random = np.random.default_rng(5)
    numbers = random.permutation(100_000)[:70_000]
    there = pc.binary_join_element_wise("n", pa.array(numbers).cast(pa.string()), "")
    wanted = pc.binary_join_element_wise("n", pa.array(random.integers(0, 100_000, 90_000)).cast(pa.string()), "")
    index = NumberedIds.of([there.slice(start, 9_000) for start in range(0, len(there), 9_000)])
    assert index is not None
    assert index.places(wanted).tolist() == pc.fill_null(pc.index_in(wanted, value_set=there), -1).to_pylist()
