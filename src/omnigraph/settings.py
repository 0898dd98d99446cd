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

    small_load: int = 32 << 20
    """Bytes of JSON Lines up to which a load runs in this process."""
    small_export: int = 4 << 30
    """Bytes of data files up to which an export to a directory runs in this process."""
    small_embedding: int = 20_000
    """Rows without vectors up to which they are filled in this process, as one change in memory."""
    key_budget: int = 512 << 20
    """Bytes of keys that one task may hold. Checks that need more are joins of Spark."""
    slice_bytes: int = 64 << 20
    """Bytes of an input file that one task reads; also how much of a compressed file is read at a time."""
    smallest_slice: int = 1 << 20
    """Bytes below which a file is not cut further, however many cores are idle."""
    rows_per_task: int = 1_000_000
    """Rows of a table that one task reads."""
    embedded_rows_per_task: int = 20_000
    """Rows of a table that one task reads to fill their vectors."""
    rows_per_file: int = 100_000
    """Rows of a data file that a task stages. Loads of more than a hundred million records make larger files."""
    part_bytes: int = 128 << 20
    """Bytes of values in one part of an export."""
    batch_bytes: int = 16 << 20
    """Bytes of values that an export reads at a time."""


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
