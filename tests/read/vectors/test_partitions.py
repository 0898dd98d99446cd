"""Vectors by partition: what all partitions contain is what a comparison of all vectors finds, and few partitions
contain nearly all of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from omnigraph.read.values.segments import Segment
from omnigraph.read.values.vectors import Metric
from omnigraph.read.vectors.heads import Heads
from omnigraph.read.vectors.partitions import Partitions
from omnigraph.read.vectors.search import PartitionedVectors

Matrix = npt.NDArray[np.float32]
EVERYWHERE = 1 << 20
METRICS: list[Metric] = ["l2", "cosine"]


def distances(matrix: Matrix, query: npt.NDArray[np.float64], metric: Metric) -> npt.NDArray[np.float64]:
    wide = matrix.astype(np.float64)
    if metric == "l2":
        return np.asarray(np.linalg.norm(wide - query, axis=1))
    lengths = np.linalg.norm(wide, axis=1) * np.linalg.norm(query)
    return np.asarray(1 - np.where(lengths == 0, 0, wide @ query / np.where(lengths == 0, 1, lengths)))


def vectors(random: np.random.Generator, rows: int, dimension: int, *, narrow: bool) -> Matrix:
    """Clusters, which differ in all directions alike or mostly in a few."""
    widths = np.exp(-8 * np.arange(dimension) / dimension) + 0.02 if narrow else np.ones(dimension)
    turned, _ = np.linalg.qr(random.normal(size=(dimension, dimension)))
    centres = random.normal(size=(12, dimension))[random.integers(0, 12, rows)]
    drawn = (centres + random.normal(size=(rows, dimension))) * widths @ turned
    return np.asarray(drawn + random.normal() * 3, dtype=np.float32)


@settings(max_examples=examples(40, of=400), deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    rows=st.integers(1, 400),
    dimension=st.sampled_from([1, 3, 8, 32, 40]),
    metric=st.sampled_from(METRICS),
    narrow=st.booleans(),
    least=st.sampled_from([2, 50, 1000]),
    wanted=st.integers(1, 30),
    cuts=st.lists(st.floats(0, 1), max_size=3),
)
def test_all_partitions_contain_the_nearest(
    seed: int,
    rows: int,
    dimension: int,
    metric: Metric,
    narrow: bool,
    least: int,
    wanted: int,
    cuts: list[float],
) -> None:
    """Whatever stretches a column has, whichever vectors are missing, zero or of deleted rows, and whichever
    positions are asked for; with every tie."""
    random = np.random.default_rng(seed)
    matrix = vectors(random, rows, dimension, narrow=narrow)
    matrix[random.random(rows) < 0.1] = 0
    matrix[random.random(rows) < 0.2] = matrix[0]
    valid = random.random(rows) < 0.9 if random.random() < 0.5 else None
    live = random.random(rows) < 0.9 if random.random() < 0.5 else None
    among = np.flatnonzero(random.random(rows) < 0.5) if random.random() < 0.5 else None
    if among is not None and live is not None:
        among = among[live[among]]
    bounds = sorted({0, rows, *(int(cut * rows) for cut in cuts)})
    parts = [
        Segment(low, high, Partitions(matrix[low:high], None if valid is None else valid[low:high], metric, least))
        for low, high in pairwise(bounds)
    ]
    query = matrix[random.integers(rows)].astype(np.float64) + random.normal(size=dimension) / 4
    found = PartitionedVectors(parts, rows, live).near(query, wanted, EVERYWHERE, among)

    allowed = np.zeros(rows, dtype=np.bool_)
    allowed[np.arange(rows) if among is None else among] = True
    for mask in (valid, live):
        allowed &= True if mask is None else mask
    there = np.flatnonzero(allowed)
    far = distances(matrix[there], query, metric)
    border = np.partition(far, wanted - 1)[wanted - 1] if wanted < len(far) else np.inf
    assert set(there[far < border - 1e-9]) <= set(found) <= set(there)
    assert list(found) == sorted(set(found))
    assert len(found) >= min(wanted, len(there))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("narrow", [False, True])
def test_few_partitions_contain_nearly_all(metric: Metric, *, narrow: bool) -> None:
    """Few of the vectors are compared exactly, and heads are used where they tell most."""
    random = np.random.default_rng(5)
    matrix = vectors(random, 20_000, 64, narrow=narrow)
    partitions = Partitions(matrix, None, metric, 10_000)
    assert len(partitions) == 141
    assert (partitions.nbytes < matrix.nbytes // 2) == narrow
    column = PartitionedVectors([Segment(0, len(matrix), partitions)], len(matrix), None)
    hits, looked = 0, 0
    for number in range(50):
        query = matrix[number].astype(np.float64) + random.normal(size=64) / 20
        found = column.near(query, 10, 40)
        best = np.argsort(distances(matrix, query, metric))[:10]
        hits, looked = hits + len(set(best) & set(found)), looked + len(found)
    assert hits >= 0.98 * 500
    assert looked < 50 * 200


def test_partitions_are_searched_until_there_are_enough() -> None:
    random = np.random.default_rng(6)
    matrix = vectors(random, 1_000, 8, narrow=False)
    column = PartitionedVectors([Segment(0, 1_000, Partitions(matrix, None, "l2", 100))], 1_000, None)
    query = matrix[0].astype(np.float64)
    for wanted in (1, 50, 300, 1_000, 2_000):
        assert min(wanted, 1_000) <= len(column.near(query, wanted, 1)) <= 1_000
    few = np.array([3, 500, 999])
    assert list(column.near(query, 10, 1, few)) == [3, 500, 999]


def test_equal_vectors() -> None:
    """They are one cluster however many centres there are, and all of them tie."""
    matrix = np.ones((300, 16), dtype=np.float32)
    for metric in METRICS:
        column = PartitionedVectors([Segment(0, 300, Partitions(matrix, None, metric, 100))], 300, None)
        assert len(column.near(np.ones(16), 5, EVERYWHERE)) == 300


def test_the_error_of_heads_is_known() -> None:
    """Products of heads differ from those of vectors as the tail says."""
    random = np.random.default_rng(7)
    matrix = vectors(random, 5_000, 64, narrow=True)
    middle = matrix.mean(axis=0)
    heads = Heads.of((matrix - middle).astype(np.float64), middle)
    assert 0 < heads.width < 48
    own = np.concatenate([part for _, _, part in heads.blocks(matrix)])
    query = matrix[0]
    head, error = heads.query(query)
    off = own @ head - (matrix - middle) @ (query - middle)
    assert 0.5 * error < float(np.sqrt(np.mean(off * off))) < 2 * error
