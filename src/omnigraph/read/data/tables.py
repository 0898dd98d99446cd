"""The tables of one snapshot in memory: rows by position, and the adjacency of edges between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.formats.columns import table_schema
from omnigraph.lang.query.ir import Direction
from omnigraph.lang.schema.catalog import EdgeType, EntityType
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import TablePin
from omnigraph.read.data.adjacency import Adjacency, from_keys, packed, reversed_, shared, stored
from omnigraph.read.data.cache import QueryCache
from omnigraph.read.data.ids import IdIndex
from omnigraph.read.text.postings import TextIndex
from omnigraph.read.values.columns import Column, Ints, Positions
from omnigraph.read.values.vectors import VectorColumn
from omnigraph.settings import READ_DEFAULTS, ReadSettings
from omnigraph.storage.tables import TableRef, Tables

_REVERSE: Final = {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT, Direction.BOTH: Direction.BOTH}


class Rows(ABC):
    """Some entities of one type, by position. The whole table, or those of it that were looked up."""

    def __init__(self, entity: EntityType, count: int) -> None:
        self.entity = entity
        self.count = count

    @cached_property
    def everything(self) -> Positions:
        """All positions."""
        return np.arange(self.count, dtype=np.int32)

    @abstractmethod
    def column(self, name: str) -> Column:
        """A property by position; `id` is one of them."""

    def text_index(self, name: str) -> TextIndex:
        """A text property, indexed."""
        return TextIndex(self.column(name).arrow)

    def vectors(self, name: str) -> VectorColumn:
        """A vector property as a matrix."""
        return VectorColumn(self.column(name).arrow)


class WholeTable(Rows):
    """All rows of one version of a table, in the order in which the table stores them."""

    def __init__(
        self, entity: EntityType, pin: TablePin, storage: Tables, cache: QueryCache, settings: ReadSettings
    ) -> None:
        super().__init__(entity, pin.row_count)
        self.ref = pin.ref
        self._storage = storage
        self._cache = cache
        self._settings = settings

    @cached_property
    def everything(self) -> Positions:
        return self._cache.get(self.key(("positions",)), lambda: np.arange(self.count, dtype=np.int32))

    def key(self, what: Hashable) -> Hashable:
        """The key of something about this table in the cache."""
        return (self.ref, what)

    def has(self, name: str) -> bool:
        """Is the column in memory?"""
        return self._cache.has(self.key(name))

    def column(self, name: str) -> Column:
        return self._cache.get(self.key(name), lambda: self._read([name])[name])

    def _read(self, names: list[str]) -> dict[str, Column]:
        if not self.count:
            schema = table_schema(self.entity)
            return {name: Column(pa.array([], schema.field(name).type)) for name in names}
        scan = self._storage.scan(self.ref, names)
        batches = []
        for batch in scan:
            self._cache.check()
            batches.append(batch)
        table = pa.Table.from_batches(batches, scan.schema)
        return {name: Column.of(table[name], self._settings) for name in names}

    def id_index(self) -> IdIndex:
        """The positions of ids."""
        return self._cache.get(self.key("ids"), lambda: IdIndex(self.column("id").arrow))

    def text_index(self, name: str) -> TextIndex:
        return self._cache.get(self.key(("text", name)), lambda: self._text_index(name))

    def _text_index(self, name: str) -> TextIndex:
        return TextIndex(self.column(name).arrow, self._cache.check, self._settings)

    def vectors(self, name: str) -> VectorColumn:
        return self._cache.get(
            self.key(("vectors", name)), lambda: VectorColumn(self.column(name).arrow, self._settings)
        )

    def batches(self, names: list[str]) -> Iterator[pa.Table]:
        """Columns some rows at a time, for what is read once and not kept."""
        pending: list[pa.RecordBatch] = []
        rows = 0
        for batch in self._storage.pass_through(self.ref, names):
            self._cache.check()
            pending.append(batch)
            rows += batch.num_rows
            if rows >= self._settings.scan_rows:
                yield pa.Table.from_batches(pending)
                pending, rows = [], 0
        if pending:
            yield pa.Table.from_batches(pending)
            pending.clear()
        pa.default_memory_pool().release_unused()


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

    def nodes(self, type_name: str) -> WholeTable:
        """All nodes of a type."""
        return self._whole(self.catalog.nodes[type_name])

    def edges(self, type_name: str) -> WholeTable:
        """All edges of a type."""
        return self._whole(self.catalog.edges[type_name])

    def _whole(self, entity: EntityType) -> WholeTable:
        table = self._whole_tables.get(entity.table_key)
        if table is None:
            pin = self.snapshot.tables[entity.table_key]
            table = WholeTable(entity, pin, self.storage, self.cache, self.settings)
            self._whole_tables[entity.table_key] = table
        return table

    def adjacency(self, edge_type: str, direction: Direction, *, edges: bool) -> Adjacency:
        """The neighbours over an edge type: every edge, or each pair of nodes once."""
        table, between = self.edges(edge_type), self._between(edge_type)
        key = table.key((*between, direction, edges))
        return self.cache.get(key, lambda: self._build(edge_type, direction, edges=edges))

    def shared(self, first: tuple[str, Direction], second: tuple[str, Direction]) -> Adjacency:
        """The pairs that two edge types, or two directions of one, both connect."""
        refs = [(self.edges(name).ref, *self._between(name), direction) for name, direction in (first, second)]
        return self.cache.get(
            ("shared", *refs),
            lambda: shared(self.adjacency(*first, edges=False), self.adjacency(*second, edges=False)),
        )

    def has_adjacency(self, edge_type: str) -> bool:
        """Is the topology of an edge type in memory, in any direction?"""
        table, between = self.edges(edge_type), self._between(edge_type)
        return any(
            self.cache.has(table.key((*between, direction, edges)))
            for direction in Direction
            for edges in (False, True)
        )

    def _between(self, edge_type: str) -> tuple[TableRef, TableRef]:
        edge = self.catalog.edges[edge_type]
        return self.nodes(edge.source).ref, self.nodes(edge.target).ref

    def _build(self, edge_type: str, direction: Direction, *, edges: bool) -> Adjacency:
        table, between = self.edges(edge_type), self._between(edge_type)
        if direction is not Direction.BOTH:
            other = self.cache.find(table.key((*between, _REVERSE[direction], edges)))
            if isinstance(other, Adjacency):
                return reversed_(other)
        self.cache.check()
        edge = self.catalog.edges[edge_type]
        rows, width = self.nodes(edge.source).count, self.nodes(edge.target).count
        if direction is Direction.IN:
            rows, width = width, rows
        if not edges:
            return from_keys(self._pair_keys(edge, direction), rows, width, self.settings)
        if direction is Direction.BOTH:
            return self._both_ways(edge, rows, width)
        held, far = self._edge_keys(edge, direction)
        return stored(held, far, None, rows, width, self.settings)

    def _pair_keys(self, edge: EdgeType, direction: Direction) -> Ints:
        """The ends of every edge, packed; in both directions where both count."""
        ways = 2 if direction is Direction.BOTH else 1
        keys, used = np.empty(self.edges(edge.name).count * ways, dtype=np.int64), 0
        for sources, targets in self._endpoints(edge):
            pairs = [(sources, targets), (targets, sources)]
            if direction is not Direction.BOTH:
                pairs = [pairs[0] if direction is Direction.OUT else pairs[1]]
            for near, far in pairs:
                some = packed(near, far)
                keys[used : used + len(some)] = some
                used += len(some)
        return keys[:used]

    def _edge_keys(self, edge: EdgeType, direction: Direction) -> tuple[list[Ints], list[Positions]]:
        """The near end of every edge, packed with the edge's number, and the far end of each by number."""
        count = self.edges(edge.name).count
        keys, far, used, row = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int32), 0, 0
        for sources, targets in self._endpoints(edge):
            near, there = (sources, targets) if direction is Direction.OUT else (targets, sources)
            numbers = np.arange(row, row + len(near), dtype=np.int32)
            some = packed(np.where(there < 0, -1, near), numbers)
            keys[used : used + len(some)] = some
            far[row : row + len(near)] = there
            used, row = used + len(some), row + len(near)
        return [keys[:used]], [far]

    def _both_ways(self, edge: EdgeType, rows: int, width: int) -> Adjacency:
        """Every edge from both of its ends; a loop once."""
        parts = list(self._endpoints(edge))
        none = np.zeros(0, dtype=np.int32)
        sources = np.concatenate([none, *(near for near, _ in parts)])
        targets = np.concatenate([none, *(far for _, far in parts)])
        turned = np.flatnonzero(sources != targets).astype(np.int32)
        near = np.concatenate([sources, targets[turned]])
        far = np.concatenate([targets, sources[turned]])
        numbers = np.concatenate([np.arange(len(sources), dtype=np.int32), turned])
        keys = packed(np.where(far < 0, -1, near), np.arange(len(near), dtype=np.int32))
        return stored([keys], [far], numbers, rows, width, self.settings)

    def _endpoints(self, edge: EdgeType) -> Iterator[tuple[Positions, Positions]]:
        """The positions of both ends of all edges, some at a time; -1 where there is no such node."""
        table = self.edges(edge.name)
        near, far = self.nodes(edge.source).id_index(), self.nodes(edge.target).id_index()
        for batch in table.batches(["src", "dst"]) if table.count else ():
            yield near.places(Column.of(batch["src"]).arrow), far.places(Column.of(batch["dst"]).arrow)
