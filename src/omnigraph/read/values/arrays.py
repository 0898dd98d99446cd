"""Arrays of NumPy as Arrow. `pa.array` would first import NumPy's masked arrays, which takes 10 ms."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def to_arrow(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers, in the same memory, or truth values, as bits; null where they are missing."""
    present = None if missing is None else _bits(~missing)
    if values.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(values), [present, _bits(values)])
    kept = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(kept.dtype), len(kept), [present, pa.py_buffer(kept)])


def _bits(truth: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(truth, bitorder="little"))
