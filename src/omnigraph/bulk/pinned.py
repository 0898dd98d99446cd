"""A snapshot that travels: plain data from which any worker opens exactly the same tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa
from lance import LanceDataset

from omnigraph.errors import NotOnSpark
from omnigraph.formats.columns import table_schema
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import TablePin
from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.objects import open_objects
from omnigraph.storage.tables import Tables
from omnigraph.storage.unavailable import translated

ROWS_PER_TASK: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Origin:
    """Which state of a graph something was read from."""

    branch: str
    manifest_version: int
    graph_commit_id: str | None


@dataclass(frozen=True, slots=True)
class PinnedGraph:
    """One immutable state of a graph: where it is, what its schema says, and the version of each table."""

    address: Address
    catalog: Catalog
    tables: Mapping[str, TablePin]

    @classmethod
    def of(cls, repository: Repository, tables: Mapping[str, TablePin]) -> PinnedGraph:
        """The state with these pins; a graph in this process's memory is refused, no worker could reach it."""
        require_shared(repository.address)
        return cls(repository.address, repository.catalog, dict(tables))

    def entity(self, table_key: str) -> NodeType | EdgeType:
        """The type behind a table key."""
        kind, _, name = table_key.partition(":")
        return self.catalog.nodes[name] if kind == "node" else self.catalog.edges[name]

    def schema(self, table_key: str) -> pa.Schema:
        """The columns of a table."""
        return table_schema(self.entity(table_key))

    def rows(self, table_key: str) -> int:
        return self.tables[table_key].row_count

    def open(self, table_key: str) -> LanceDataset:
        """The table at its version, through the handles this process keeps open."""
        return open_tables(self.address).open(self.tables[table_key].ref)

    def pieces(self, table_key: str, rows: int = ROWS_PER_TASK) -> list[Piece]:
        """The table in pieces of about that many rows, each whole fragments."""
        pieces: list[Piece] = []
        group: list[int] = []
        count = 0
        if not self.rows(table_key):
            return []
        for fragment in self.open(table_key).get_fragments():
            own = fragment.metadata.num_rows
            if group and count + own > rows:
                pieces.append(Piece(self, table_key, tuple(group), count))
                group, count = [], 0
            group.append(fragment.fragment_id)
            count += own
        if group:
            pieces.append(Piece(self, table_key, tuple(group), count))
        return pieces


@dataclass(frozen=True, slots=True)
class Piece:
    """Some fragments of one table: the share of it that one task reads."""

    graph: PinnedGraph
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
        handle = self.graph.open(self.table_key)
        open_tables(self.graph.address).verify_fragments(self.graph.tables[self.table_key].ref, self.fragments)
        fragments = [handle.get_fragment(number) for number in self.fragments]
        shown = f"{self.graph.address}/{self.graph.tables[self.table_key].location}"
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


@lru_cache(maxsize=8)
def _tables_at(scheme: Scheme, root: str, options: tuple[tuple[str, str], ...]) -> Tables:
    address = Address(scheme, root, dict(options))
    return Tables(address, open_objects(address))


def open_tables(address: Address) -> Tables:
    """The tables of a graph as this process sees them; one client per graph, however many tasks it runs."""
    return _tables_at(address.scheme, address.root, tuple(sorted(address.options.items())))


def require_shared(address: Address) -> None:
    """Refuse a graph that lives in the memory of this process."""
    if address.scheme is Scheme.MEMORY:
        raise NotOnSpark(f"a graph in memory ({address})", "use the embedded engine, or a graph on disk or S3")
