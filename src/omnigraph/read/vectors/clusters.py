"""Clusters of vectors: centres that are learned from a sample, and which of them is nearest to each vector."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.read.values.columns import Ints, Positions

Matrix = npt.NDArray[np.float32]

_SAMPLED: Final = 32
"""Vectors of the sample for each centre, …"""
_ROUNDS: Final = 4
"""… and how often centres move to the middle of theirs. More of either finds no better ones."""
_PRODUCTS: Final = 1 << 23
"""So many products are computed at a time."""


def centres_of(vectors: Matrix, count: int) -> Matrix:
    """So many centres; the same vectors have the same ones every time."""
    random = np.random.default_rng(0)
    chosen = random.choice(len(vectors), min(len(vectors), _SAMPLED * count), replace=False)
    sample = vectors[np.sort(chosen)]
    centres = sample[random.choice(len(sample), count, replace=False)]
    for _ in range(_ROUNDS):
        order, bounds = grouped(nearest_centres(sample, centres), count)
        filled = np.flatnonzero(np.diff(bounds))
        sums = np.add.reduceat(sample[order], bounds[filled], axis=0)
        centres[filled] = sums / np.diff(bounds)[filled, None]
    return centres


def nearest_centres(vectors: Matrix, centres: Matrix) -> Positions:
    """The number of the nearest centre of each vector."""
    found = np.empty(len(vectors), dtype=np.int32)
    across, half = np.ascontiguousarray(centres.T), half_squares(centres)
    block = max(1, _PRODUCTS // len(centres))
    room = np.empty((min(block, len(vectors)), len(centres)), dtype=np.float32)
    for low in range(0, len(vectors), block):
        some = vectors[low : low + block]
        products = np.matmul(some, across, out=room[: len(some)])
        products -= half
        found[low : low + block] = products.argmax(axis=1)
    return found


def half_squares(vectors: Matrix) -> Matrix:
    """Half of the square of each vector's length."""
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors) / 2, dtype=np.float32)


def products(vectors: Matrix, query: Matrix, out: Matrix | None = None) -> Matrix:
    """The product of each vector with a query, in the calling thread: a matrix product would wait for others,
    which takes longer than the work where processors are busy."""
    return np.vecdot(vectors, query, out=out)


def grouped(owners: Positions, count: int) -> tuple[Ints, Ints]:
    """The numbers of the vectors by owner, and between which of them those of each owner lie."""
    bounds = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(owners, minlength=count), out=bounds[1:])
    return np.argsort(owners, kind="stable"), bounds
