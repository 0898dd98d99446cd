"""Sizes at which the engine changes its ways: what it keeps in memory, cuts into pieces, or sends to Spark.

The defaults suit a machine of today. A program may open a graph with other ones; tests choose tiny ones, so that
small data takes the ways of large data.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Sizes for queries in this process."""


@dataclass(frozen=True, slots=True)
class BulkSettings:
    """Sizes for loads, exports and the filling of vectors."""


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """Sizes for mutations."""

    mutation_bytes: int = 256 << 20
    """How many bytes of rows one mutation may hold in memory; larger changes belong in a load."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All sizes of one open graph."""

    read: ReadSettings = field(default_factory=ReadSettings)
    write: WriteSettings = field(default_factory=WriteSettings)
    bulk: BulkSettings = field(default_factory=BulkSettings)
