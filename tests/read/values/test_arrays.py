"""Arrays of NumPy become those that Arrow itself makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.read.values.arrays import to_arrow

VALUES = {
    "whole": np.arange(11, dtype=np.int64),
    "every other": np.arange(20, dtype=np.int32)[::2],
    "unsigned": np.array([1, 2**64 - 1], dtype=np.uint64),
    "floating": np.array([0.5, np.nan, -0.0]),
    "truth": np.array([True, False, True] * 5),
    "none": np.zeros(0, dtype=np.int32),
    "no truth": np.zeros(0, dtype=np.bool_),
}


@pytest.mark.parametrize("name", VALUES)
def test_arrays_become_those_that_arrow_makes(name: str) -> None:
    values: Any = VALUES[name]
    missing = np.arange(len(values)) % 3 == 1
    for made, expected in (
        (to_arrow(values), pa.array(values)),
        (to_arrow(values, missing), pa.array(values, mask=missing)),
    ):
        made.validate(full=True)
        assert (made.type, str(made.to_pylist())) == (expected.type, str(expected.to_pylist()))
