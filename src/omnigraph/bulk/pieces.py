"""Tables of a snapshot in pieces: the fragments that one task reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa
from lance import LanceDataset

from omnigraph.errors import NotOnSpark
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.settings import BulkSettings
from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.objects import open_objects
from omnigraph.storage.tables import Tables
from omnigraph.storage.unavailable import translated

ROWS_PER_TASK: Final = BulkSettings().rows_per_task


@dataclass(frozen=True, slots=True)
class Piece:
    """Some fragments of one table of a snapshot, which one task reads."""

    snapshot: Snapshot
    table_key: str
    fragments: tuple[int, ...]
    rows: int

    def batches(
        self,
        columns: Sequence[str],
        where: str | None = None,
        *,
        row_ids: bool = False,
        row_addresses: bool = False,
        whole_blobs: bool = False,
        batch_rows: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows, in the order of the table, at most ``batch_rows`` at a time."""
        handle, pin = open_table(self.snapshot, self.table_key), self.snapshot.tables[self.table_key]
        open_tables(self.snapshot.address).verify_fragments(pin.ref, self.fragments)
        fragments = [handle.get_fragment(number) for number in self.fragments]
        shown = f"{self.snapshot.address}/{pin.location}"
        with translated(shown):
            reader = handle.scanner(
                columns=list(columns),
                filter=where,
                fragments=[fragment for fragment in fragments if fragment is not None],
                with_row_id=row_ids,
                with_row_address=row_addresses,
                scan_in_order=True,
                batch_size=batch_rows,
                batch_readahead=None if batch_rows is None else 2,
                blob_handling="all_binary" if whole_blobs else None,
            ).to_reader()
            yield from reader


def pieces_of(snapshot: Snapshot, table_key: str, rows: int = ROWS_PER_TASK) -> list[Piece]:
    """A table in pieces of whole fragments, with about that many rows each."""
    pieces: list[Piece] = []
    group: list[int] = []
    count = 0
    if not snapshot.rows(table_key):
        return []
    for fragment in open_table(snapshot, table_key).get_fragments():
        own = fragment.metadata.num_rows
        if group and count + own > rows:
            pieces.append(Piece(snapshot, table_key, tuple(group), count))
            group, count = [], 0
        group.append(fragment.fragment_id)
        count += own
    if group:
        pieces.append(Piece(snapshot, table_key, tuple(group), count))
    return pieces


def open_table(snapshot: Snapshot, table_key: str) -> LanceDataset:
    """A table at its version, through the handles this process keeps open."""
    return open_tables(snapshot.address).open(snapshot.tables[table_key].ref)


@lru_cache(maxsize=8)
def _tables_at(scheme: Scheme, root: str, options: tuple[tuple[str, str], ...]) -> Tables:
    address = Address(scheme, root, dict(options))
    return Tables(address, open_objects(address))


def open_tables(address: Address) -> Tables:
    """The tables of a graph, with one client per graph for all tasks of this process."""
    return _tables_at(address.scheme, address.root, tuple(sorted(address.options.items())))


def require_shared(address: Address) -> None:
    """Refuse a graph in the memory of this process, which workers cannot reach."""
    if address.scheme is Scheme.MEMORY:
        raise NotOnSpark(f"a graph in memory ({address})", "use the embedded engine, or a graph on disk or S3")
