"""The data of the benchmark: documents with vectors, and what two branches change of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DIMENSION: Final = 64
SIDES: Final = ("left", "right")
SCHEMA: Final = f"""
node Doc {{
    name: String @key
    part: String
    title: String
    score: F64
    embedding: Vector({DIMENSION})
}}
"""


@dataclass(frozen=True, slots=True)
class Delta:
    """What one side changes: as many inserts as updates and deletes, spread over the whole table."""

    rows: int

    @property
    def each(self) -> int:
        """How many rows there are of each operation."""
        return max(1, self.rows // 3)

    def part(self, side: str, op: str) -> str:
        """The value that marks the rows which a side updates or deletes."""
        return f"{op} {side} {self.rows}"

    def inserted(self, side: str) -> Iterator[dict[str, Any]]:
        """The rows that a side adds, with the same ids on every run."""
        generator = np.random.default_rng([self.rows, SIDES.index(side)])
        vectors = generator.random((self.each, DIMENSION), np.float32)
        for number, vector in enumerate(vectors):
            yield {
                "name": f"new-{side}-{self.rows}-{number}",
                "part": "new",
                "title": f"a new document {number}",
                "score": float(number),
                "embedding": vector.tolist(),
            }


def write_documents(path: Path, rows: int, deltas: list[Delta]) -> None:
    """The table before any change. Rows that will be changed are marked, at random places."""
    generator = np.random.default_rng(rows)
    parts = np.full(rows, "rest", object)
    places = iter(generator.permutation(rows))
    for delta in deltas:
        for side in SIDES:
            for op in ("update", "delete"):
                for _ in range(delta.each):
                    parts[next(places)] = delta.part(side, op)
    with pq.ParquetWriter(path, _columns()) as writer:
        for start in range(0, rows, 50_000):
            count = min(50_000, rows - start)
            vectors = generator.random(count * DIMENSION, np.float32)
            writer.write_table(
                pa.table(
                    [
                        pa.array([f"doc-{start + row:08}" for row in range(count)]),
                        pa.array(parts[start : start + count], pa.string()),
                        pa.array([f"the title of document {start + row}" for row in range(count)]),
                        pa.array(generator.random(count)),
                        pa.FixedSizeListArray.from_arrays(pa.array(vectors), DIMENSION),
                    ],
                    schema=_columns(),
                )
            )


def _columns() -> pa.Schema:
    return pa.schema(
        [
            ("name", pa.string()),
            ("part", pa.string()),
            ("title", pa.string()),
            ("score", pa.float64()),
            ("embedding", pa.list_(pa.float32(), DIMENSION)),
        ]
    )
