"""The tables of one snapshot in memory: rows by position, and the adjacency of edges between them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import accumulate
from weakref import ref

import numpy as np
import pyarrow as pa

from omnigraph.lang.query.ir import Direction
from omnigraph.lang.schema.catalog import EdgeType, EntityType
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.data.adjacency import Adjacency, shared, united
from omnigraph.read.data.cache import QueryCache
from omnigraph.read.data.rows import Rows, WholeTable
from omnigraph.read.data.topology import EdgeTables
from omnigraph.read.values.columns import Bools, Column, Positions
from omnigraph.records import dataclass
from omnigraph.settings import READ_DEFAULTS, ReadSettings
from omnigraph.storage.tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class _Combined:
    """An adjacency that was made from others: the pairs that they have in common, or that any of them has."""

    parts: tuple[ref[Adjacency], ...]
    adjacency: Adjacency

    @property
    def nbytes(self) -> int:
        return self.adjacency.nbytes


class UnitedRows(Rows):
    """The rows of several edge tables, one table behind the other."""

    def __init__(self, entity: EdgeType, tables: Sequence[WholeTable]) -> None:
        super().__init__(entity, sum(table.count for table in tables))
        self._tables = tables

    @property
    def size(self) -> int:
        return sum(table.size for table in self._tables)

    @property
    def live(self) -> Bools | None:
        if all(table.live is None for table in self._tables):
            return None
        whole = [
            np.ones(table.size, dtype=np.bool_) if table.live is None else table.live for table in self._tables
        ]
        return np.concatenate(whole)

    @property
    def everything(self) -> Positions:
        return self.whole if self.live is None else self.whole[self.live]

    def column(self, name: str) -> Column:
        parts = [table.column(name).arrow for table in self._tables]
        wide = max((part.type for part in parts), key=lambda kind: pa.types.is_large_string(kind))
        return Column.of(pa.chunked_array([part.cast(wide) for part in parts], wide))


class GraphTables:
    """The tables of one snapshot as one query reads them: columns and topology in memory, through the cache."""

    def __init__(
        self, snapshot: Snapshot, storage: Tables, cache: QueryCache, settings: ReadSettings = READ_DEFAULTS
    ) -> None:
        self.snapshot = snapshot
        self.catalog = snapshot.catalog
        self.storage = storage
        self.cache = cache
        self.settings = settings
        self._whole_tables: dict[str, WholeTable] = {}
        self._adjacencies: dict[tuple[str, Direction, bool], Adjacency] = {}

    def nodes(self, type_name: str) -> WholeTable:
        """All nodes of a type."""
        return self._whole(self.catalog.nodes[type_name])

    def edges(self, type_name: str) -> Rows:
        """All edges of a type, or of several that are followed as one."""
        edge = self.catalog.followed(type_name)
        tables = self.each_edges(type_name)
        return UnitedRows(edge, tables) if edge.members else tables[0]

    def each_edges(self, type_name: str) -> list[WholeTable]:
        """The tables of an edge type, or of several that are followed as one."""
        return [self._whole(edge) for edge in self.catalog.followed(type_name).each]

    def _whole(self, entity: EntityType) -> WholeTable:
        table = self._whole_tables.get(entity.table_key)
        if table is None:
            pin = self.snapshot.tables[entity.table_key]
            table = WholeTable(entity, pin, self.storage, self.cache, self.settings)
            self._whole_tables[entity.table_key] = table
        return table

    def _edge_tables(self, edge_type: str) -> EdgeTables:
        edge = self.catalog.edges[edge_type]
        ends = self.nodes(edge.source), self.nodes(edge.target)
        return EdgeTables(self._whole(edge), *ends, self.cache, self.settings)

    def adjacency(self, edge_type: str, direction: Direction, *, edges: bool) -> Adjacency:
        """The neighbours over an edge type: every edge, or each pair of nodes once."""
        key = (edge_type, direction, edges)
        if key not in self._adjacencies:
            edge = self.catalog.followed(edge_type)
            if edge.members:
                made = self._united(edge, direction, edges=edges)
            else:
                made = self._edge_tables(edge_type).adjacency(direction, edges=edges)
            self._adjacencies[key] = made
        return self._adjacencies[key]

    def _united(self, edge: EdgeType, direction: Direction, *, edges: bool) -> Adjacency:
        """The neighbours over several edge types as one."""
        parts = [self.adjacency(one.name, direction, edges=edges) for one in edge.members]
        firsts = [0, *accumulate(table.size for table in self.each_edges(edge.name))][:-1] if edges else []
        return self.cache.follow(
            ("united", *self._families(edge.name, direction, edges=edges), *firsts),
            lambda _: _Combined(tuple(map(ref, parts)), united(parts, firsts)),
            lambda known: all(one() is part for one, part in zip(known.parts, parts, strict=True)),
        ).adjacency

    def _families(self, edge_type: str, direction: Direction, *, edges: bool) -> list[Hashable]:
        """What the topologies of all versions of an edge type's tables have in common."""
        each = self.catalog.followed(edge_type).each
        return [self._edge_tables(one.name).family(direction, edges=edges) for one in each]

    def has_adjacency(self, edge_type: str) -> bool:
        """Is the topology of an edge type in memory, in any direction, of this or another version?"""
        return self._edge_tables(edge_type).has_any()

    def has_saved_adjacency(self, edge_type: str) -> bool:
        """Is the topology of an edge type saved beside its table?"""
        return self._edge_tables(edge_type).is_saved()

    def shared(self, first: tuple[str, Direction], second: tuple[str, Direction]) -> Adjacency:
        """The pairs that two edge types, or two directions of one, both connect."""
        one, two = self.adjacency(*first, edges=False), self.adjacency(*second, edges=False)
        families = [tuple(self._families(*each, edges=False)) for each in (first, second)]
        return self.cache.follow(
            ("shared", *families),
            lambda _: _Combined((ref(one), ref(two)), shared(one, two)),
            lambda known: known.parts[0]() is one and known.parts[1]() is two,
        ).adjacency
