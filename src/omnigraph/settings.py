"""Sizes at which the engine changes its ways: what it keeps in memory, cuts into pieces, or sends to Spark.

The defaults suit a machine of today. A program may open a graph with other ones; tests choose tiny ones, so that
small data takes the ways of large data.
"""

from __future__ import annotations

import os
from dataclasses import field
from typing import Final

from omnigraph.errors import RequestError
from omnigraph.records import dataclass

PAGE_CHANGES: Final = 1_000
"""How many changes a page of a branch's changes holds, unless its reader asks for fewer or more, …"""
PAGE_BYTES: Final = 4 << 20
"""… how many bytes of them, …"""
WALKED_COMMITS: Final = 128
"""… and through how many commits one poll goes."""


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Sizes for queries in this process."""

    small_table: int = 20_000
    """A table of up to this many rows is read whole: that takes about as long as one look-up without an index."""
    rows_per_lookup: int = 20_000
    """Reading this many rows takes about as long as one look-up, so a table of n times as many is read whole after
    n look-ups."""
    lookups_for_saved: int = 4
    """After so many look-ups of edges their topology is read, if it is saved beside the table."""
    edges_per_node: int = 8
    """The first look-up in a process compares the files of a table with their checksums. For this many edges that
    takes as long as reading a node, so a table with more of them is read, if its topology is saved: …"""
    edges_checked: int = 4_000_000
    """… up to this many edges; of larger tables no more files are compared."""
    lookup_rows: int = 5_000
    """A query that looks up more rows than this starts again, with whole tables in memory."""
    scan_rows: int = 1 << 17
    """Edges are turned into topology this many at a time."""
    piece_rows: int = 1 << 21
    """A step that would make more rows than this goes on in pieces, one after the other."""
    pair_block: int = 1 << 16
    """Pairs of nodes are worked on this many at a time: few enough to stay in the processor's cache."""
    vector_block: int = 1 << 15
    """Vectors are compared with a query this many at a time."""
    parallel_from: int = 1 << 17
    """An array of at least this many elements is worked on by several threads."""
    estimate_from: int = 20_000
    """Of a type with more entities than this, the planner guesses how many match; of a smaller one it counts."""
    visited_cells: int = 1 << 24
    """A chain of hops notes for each pair of a source and a node whether it was visited: for this many pairs at a
    time."""
    hop_entries: int = 1 << 18
    """A chain of hops looks at this many neighbours before it checks whether the query was stopped."""
    dense_groups: int = 1 << 14
    """Up to this many possible groups are counted in an array with a place for each, instead of being sorted."""
    pending_groups: int = 1 << 22
    """Groups of this many rows are merged before more are read."""
    select_from: int = 4_096
    """From this many rows on, candidates for the nearest vectors are selected before exact distances are."""
    search_from: int = 50_000
    """From this many rows on, the nearest vectors are looked for in the index of their property, if it lacks fewer
    rows than that, …"""
    recall: float = 0.98
    """… which finds this share of them, measured on the nearest ten. With 1 every search is exact."""
    partition_from: int = 10_000
    """Vectors in memory that are searched by an index are put into partitions, so many of them or more; fewer are
    one partition, …"""
    partition_waiting: int = 20_000
    """… while the query waits, if they are up to so many. More are put into partitions beside queries, which
    search the index meanwhile."""
    encode_from: int = 2_048
    """A text column of at least this many rows is compared once per distinct value, if its values repeat."""
    order_from: int = 50_000
    """A text column of at least this many rows is sorted, to find single values by bisection, …"""
    order_after: int = 32
    """… once it has been searched for a value this often."""
    spare_positions: int = 1 << 16
    """Deleted and replaced rows stay in memory until there are as many of them as rows, and so many more."""
    few_rows: int = 10_000
    """Of up to so many new rows of a table all columns that are in memory are read together."""
    take_over_from: int = 10_000
    """From so many rows on, rows that a compaction has written again are recognised by their row ids, instead of
    being read again."""
    save_from: int = 100_000
    """The topology of an edge type with at least this many edges is saved by `optimize` and `ensure_indices`, and
    looked for before it is derived."""
    save_texts_from: int = 20_000
    """The words of a String property with `@index` are saved in the same way, from this many rows on."""
    text_bytes: int = 1 << 24
    """A text column is cut into words this many bytes at a time."""
    text_words: int = 1 << 16
    """Distinct words are analysed this many at a time."""


READ_DEFAULTS: Final = ReadSettings()


LOCAL_LOAD: Final = "OMNIGRAPH_LOCAL_LOAD"
"""How many bytes of files are loaded in this process, as a number of bytes."""


def _local_load() -> int:
    wanted = os.environ.get(LOCAL_LOAD, "").strip()
    if not wanted:
        return 256 << 20
    if not wanted.isdecimal():
        raise RequestError(f"{LOCAL_LOAD} is '{wanted}'; it is a number of bytes")
    return int(wanted)


@dataclass(frozen=True, slots=True)
class BulkSettings:
    """Sizes for loads, exports, large merges, changes of the schema and the filling of vectors."""

    small_load: int = 32 << 20
    """Bytes of records up to which a load is one change in memory; larger ones are staged as files."""
    local_load: int = field(default_factory=_local_load)
    """Bytes of files up to which a load runs in this process, and larger ones on Spark, unless the caller names an
    engine. `OMNIGRAPH_LOCAL_LOAD` sets it for all graphs of a process."""
    small_export: int = 4 << 30
    """Bytes of data files up to which an export to a directory runs in this process."""
    small_embedding: int = 20_000
    """Rows without vectors up to which they are filled in this process, as one change in memory."""
    small_merge: int = 128 << 20
    """About how many bytes of changed rows, of both sides, a merge holds in the memory of this process."""
    merge_bucket: int = 32 << 20
    """About how many bytes of changed rows one task of a larger merge holds."""
    small_rewrite: int = 128 << 20
    """About how many bytes of one table a change of the schema reads and computes in the calling thread."""
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
    topology_from: int = READ_DEFAULTS.save_from
    """The topology of an edge type is saved by a load that brings at least this many edges into an empty table."""
    part_bytes: int = 128 << 20
    """Bytes of values in one part of an export."""
    batch_bytes: int = 16 << 20
    """Bytes of values that an export reads at a time."""


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """Sizes for writes."""

    mutation_bytes: int = 256 << 20
    """How many bytes of rows one mutation may hold in memory; larger changes belong in a load."""
    fold: bool = True
    """Does a writer put small files of the tables it changes together? `OMNIGRAPH_FOLD=off` turns that off for
    all graphs of a process."""
    fold_files: int = 8
    """So many files of about the same number of rows are written as one. Each row is written again at most once
    for every power of this number up to ``fold_rows``."""
    fold_rows: int = 65_536
    """Files with half as many rows are left alone, and none with more is made."""
    fold_bytes: int = 32 << 20
    """How many bytes of files one write puts together; larger ones are left to `optimize`."""
    exact_rows: int = 63
    """Folded files of up to so many rows list the version that wrote each row; larger ones list versions for
    stretches of rows, which are longer the older they are."""


WRITE_DEFAULTS: Final = WriteSettings()


BLOB_SOURCES: Final = "OMNIGRAPH_BLOB_SOURCES"
"""The addresses below which blobs may be copied from, with blanks between them."""


@dataclass(frozen=True, slots=True)
class BlobSettings:
    """Where the bytes of blobs may be copied from, if a record names an address instead of them, and how many."""

    allow: tuple[str, ...] = field(default_factory=lambda: tuple(os.environ.get(BLOB_SOURCES, "").split()))
    """Directories, buckets and web servers as `file:///data/`, `s3://bucket/prefix/` and `https://host/path/`:
    what lies below them may be copied. None by default. `OMNIGRAPH_BLOB_SOURCES` sets it for all graphs of a
    process."""
    largest: int = 32 << 20
    """Bytes of one blob that is copied."""
    total: int = 1 << 30
    """Bytes of all blobs that one write copies; a task of a load holds up to as many in memory."""
    seconds: float = 30.0
    """How long a web server may take to send one blob."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All sizes of one open graph."""

    read: ReadSettings = field(default_factory=ReadSettings)
    write: WriteSettings = field(default_factory=WriteSettings)
    bulk: BulkSettings = field(default_factory=BulkSettings)
    blobs: BlobSettings = field(default_factory=BlobSettings)
