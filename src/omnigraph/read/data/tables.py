"""The tables of one snapshot in memory: rows by position, and the adjacency of edges between them."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import ref

from omnigraph.lang.query.ir import Direction
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.data.adjacency import Adjacency, shared
from omnigraph.read.data.cache import QueryCache
from omnigraph.read.data.rows import WholeTable
from omnigraph.read.data.topology import EdgeTables
from omnigraph.settings import READ_DEFAULTS, ReadSettings
from omnigraph.storage.tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class _Shared:
    """The pairs that two adjacencies have in common."""

    first: ref[Adjacency]
    second: ref[Adjacency]
    common: Adjacency

    @property
    def nbytes(self) -> int:
        return self.common.nbytes


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

    def _edge_tables(self, edge_type: str) -> EdgeTables:
        edge = self.catalog.edges[edge_type]
        ends = self.nodes(edge.source), self.nodes(edge.target)
        return EdgeTables(self.edges(edge_type), *ends, self.cache, self.settings)

    def adjacency(self, edge_type: str, direction: Direction, *, edges: bool) -> Adjacency:
        """The neighbours over an edge type: every edge, or each pair of nodes once."""
        key = (edge_type, direction, edges)
        if key not in self._adjacencies:
            self._adjacencies[key] = self._edge_tables(edge_type).adjacency(direction, edges=edges)
        return self._adjacencies[key]

    def has_adjacency(self, edge_type: str) -> bool:
        """Is the topology of an edge type in memory, in any direction, of this or another version?"""
        return self._edge_tables(edge_type).has_any()

    def has_saved_adjacency(self, edge_type: str) -> bool:
        """Is the topology of an edge type saved beside its table?"""
        return self._edge_tables(edge_type).is_saved()

    def shared(self, first: tuple[str, Direction], second: tuple[str, Direction]) -> Adjacency:
        """The pairs that two edge types, or two directions of one, both connect."""
        one, two = self.adjacency(*first, edges=False), self.adjacency(*second, edges=False)
        families = [self._edge_tables(name).family(direction, edges=False) for name, direction in (first, second)]
        return self.cache.follow(
            ("shared", *families),
            lambda _: _Shared(ref(one), ref(two), shared(one, two)),
            lambda known: known.first() is one and known.second() is two,
        ).common
