"""Pairs that are sorted in buckets are the same adjacency as those that are sorted at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from omnigraph.read.data.adjacency import Adjacency, from_keys, packed
from omnigraph.read.data.bucketed import adjacency_of, turned
from omnigraph.settings import ReadSettings


def compare(
    rows: int, width: int, seed: int, pairs: int, pieces: int, held: int, bucket: int, parallel_from: int = 1
) -> None:
    random = np.random.default_rng(seed)
    near = random.integers(0, rows, pairs).astype(np.int32)
    far = random.integers(0, width, pairs).astype(np.int32)
    parts = [(near[part], far[part]) for part in np.array_split(np.arange(pairs), pieces)]
    sizes = ReadSettings(parallel_from=parallel_from)
    found = adjacency_of(lambda: parts, rows, width, pairs, sizes, held=held, bucket=bucket)
    assert_same(found, from_keys(packed(near, far), rows, width))
    assert found is not None
    assert_same(turned(found, held=held, bucket=bucket), from_keys(packed(far, near), width, rows))
    for other in (pairs - 1, pairs + 1):
        if other >= 0:
            assert adjacency_of(lambda: parts, rows, width, other, sizes, held=held, bucket=bucket) is None


def assert_same(found: Adjacency | None, expected: Adjacency) -> None:
    assert found is not None
    assert found.width == expected.width
    assert found.repeats is not None
    assert expected.repeats is not None
    for mine, other in (
        (found.starts, expected.starts),
        (found.targets, expected.targets),
        (found.repeats, expected.repeats),
    ):
        assert mine.dtype == other.dtype
        assert mine.tolist() == other.tolist()


@settings(deadline=None, max_examples=examples(100, of=1_000))
@given(
    st.integers(1, 300),
    st.sampled_from([1, 5, 200, 1 << 16, (1 << 16) + 1, 1 << 20]),
    st.integers(0, 99),
    st.integers(0, 400),
    st.integers(1, 5),
    st.sampled_from([13, 100, 1 << 20]),
    st.sampled_from([1, 7, 50, 1 << 17]),
    st.sampled_from([1, 1 << 17]),
)
def test_buckets_of_any_size(
    rows: int, width: int, seed: int, pairs: int, pieces: int, held: int, bucket: int, parallel_from: int
) -> None:
    compare(rows, width, seed, pairs, pieces, held, bucket, parallel_from)


@pytest.mark.parametrize("rows", [1 << 16, (1 << 16) + 1, 1 << 20])
def test_more_rows_than_half_a_number_has(rows: int) -> None:
    compare(rows, rows, 1, 30_000, 3, 1 << 20, 1_000)
    compare(rows, 3, 2, 30_000, 3, 9_000, 1 << 17)
    compare(rows, rows, 3, 500, 1, 1 << 20, 1)


def test_no_rows_at_all() -> None:
    nothing = from_keys(np.zeros(0, np.int64), 0, 0)
    assert_same(adjacency_of(list, 0, 0, 0), nothing)
    assert_same(turned(nothing), nothing)
