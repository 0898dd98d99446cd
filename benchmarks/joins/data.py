"""People and shops that have towns, ages and codes in common, and no edge between them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TOWNS: Final = 2_000


def generate(persons: int, seed: int) -> dict[str, pa.Table]:
    """Both tables. Towns are skewed; some persons have none. Every code is in either table at most once."""
    rng = np.random.default_rng(seed)
    shops = persons // 2
    towns = np.minimum((rng.random(persons) ** 2 * TOWNS).astype(np.int64), TOWNS - 1)
    places = (rng.random(shops) ** 2 * TOWNS).astype(np.int64) + TOWNS // 10
    return {
        "Person": pa.table(
            {
                "id": np.arange(1, persons + 1),
                "town": _named("town", towns, rng.random(persons) < 0.01),
                "age": rng.integers(0, 90, persons).astype(np.int32),
                "code": _named("code", rng.permutation(persons)),
            }
        ),
        "Shop": pa.table(
            {
                "id": np.arange(1, shops + 1),
                "place": _named("town", places),
                "years": rng.integers(0, 120, shops),
                "code": _named("code", rng.permutation(persons * 2)[:shops]),
            }
        ),
    }


def _named(prefix: str, numbers: np.ndarray, missing: np.ndarray | None = None) -> pa.Array:
    """Texts such as `town 17`; null where one is missing."""
    return pc.binary_join_element_wise(prefix, pa.array(numbers, mask=missing).cast(pa.string()), " ")
