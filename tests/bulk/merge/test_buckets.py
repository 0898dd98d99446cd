"""Buckets: every id is in one of them, which all processes agree on, and they are of about the same size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ulid import ULID

from omnigraph.bulk.merge.buckets import bucket_numbers, row_bytes
from omnigraph.lang.schema.catalog import load_catalog


@given(st.lists(st.text()), st.integers(1, 50), st.data())
@settings(deadline=None)
def test_the_bucket_of_an_id_depends_on_nothing_else(ids: list[str], buckets: int, data: st.DataObject) -> None:
    numbers = bucket_numbers(pa.array(ids, pa.string()), buckets)
    assert all(0 <= number < buckets for number in numbers)
    start = data.draw(st.integers(0, len(ids)))
    assert bucket_numbers(pa.array(ids, pa.string()).slice(start), buckets).tolist() == numbers[start:].tolist()
    alone = [int(bucket_numbers(pa.array([each]), buckets)[0]) for each in ids]
    assert alone == numbers.tolist()


def test_all_machines_agree_on_buckets() -> None:
    ids = pa.array(["", "a", "ab", "ba", "Zürich"])
    assert bucket_numbers(ids, 1_000).tolist() == [0, 514, 728, 298, 136]


@pytest.mark.parametrize("make", [lambda number: f"p{number:08}", lambda _: str(ULID()), str])
def test_buckets_are_even(make: object) -> None:
    assert callable(make)
    ids = pa.array([make(number) for number in range(100_000)])
    counts = np.bincount(bucket_numbers(ids, 64), minlength=64)
    assert counts.min() > 1_300
    assert counts.max() < 1_850


def test_rows_with_vectors_are_large() -> None:
    catalog = load_catalog("node A { name: String @key }\nnode B { name: String @key  v: Vector(1536) }")
    assert row_bytes(catalog.nodes["B"]) - row_bytes(catalog.nodes["A"]) == 4 * 1536
