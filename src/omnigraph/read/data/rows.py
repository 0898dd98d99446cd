"""Rows by position: some entities of one type, or the whole table of one version in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OmniError
from omnigraph.formats.columns import table_schema
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.manifest.state import TablePin
from omnigraph.read.data.cache import QueryCache, Sized
from omnigraph.read.data.grown import GrownColumn, first_read, rows_between
from omnigraph.read.data.ids import Ids
from omnigraph.read.data.layout import Files, Layout, Placement, Stretch, placed
from omnigraph.read.data.saved.shelf import saved_postings
from omnigraph.read.values.columns import Array, Bools, Column, Floats, Ints, Positions, filled
from omnigraph.read.values.exact import ExactIndex
from omnigraph.read.values.segments import Segment, covering
from omnigraph.records import dataclass
from omnigraph.settings import ReadSettings
from omnigraph.storage.rows.pieces import (
    Piece,
    addresses_of,
    column_numbers,
    deleted_rows,
    numbered_rows,
    physical_rows,
    pieces_of,
    rows_at,
)
from omnigraph.storage.tables import Tables

if TYPE_CHECKING:
    from omnigraph.read.text.index import TextIndex
    from omnigraph.read.text.postings import Postings
    from omnigraph.read.values.vectors import Metric, VectorBlock, VectorColumn
    from omnigraph.read.vectors.partitions import Partitions
    from omnigraph.read.vectors.search import PartitionedVectors
    from omnigraph.storage.rows.nearest import Near, VectorIndex

_FEW_IDS: Final = 64
"""Up to so many ids are looked up by an index rather than in memory, if memory has none of them."""

_CACHE_SHARE: Final = 2
"""Vectors that take more than one part in so many of the cache are not read into memory for searches."""

Made = TypeVar("Made")
Used = TypeVar("Used", bound=Sized)


def _partitions(metric: Metric) -> str:
    """What vectors by partition are called in the cache."""
    return f"{metric} partitions"


def _nothing() -> None:
    """What is saved where nothing is."""


class Rows(ABC):
    """Some entities of one type, by position. The whole table, or those of it that were looked up."""

    def __init__(self, entity: EntityType, count: int) -> None:
        self.entity = entity
        self.count = count

    @property
    def size(self) -> int:
        """All positions are below this; there may be more of them than rows."""
        return self.count

    @property
    def live(self) -> Bools | None:
        """Which positions have rows; None if all have."""
        return None

    @cached_property
    def whole(self) -> Positions:
        """All positions, also those that have no row."""
        return np.arange(self.size, dtype=np.int32)

    @property
    def everything(self) -> Positions:
        """The positions of all rows."""
        return self.whole

    @abstractmethod
    def column(self, name: str) -> Column:
        """A property by position; `id` is one of them."""

    def text_index(self, name: str) -> TextIndex:
        """A text property, indexed."""
        from omnigraph.read.text.index import TextIndex

        return TextIndex(self.column(name).arrow)

    def vectors(self, name: str) -> VectorColumn:
        """A vector property as a matrix."""
        from omnigraph.read.values.vectors import VectorColumn

        return VectorColumn(self.column(name).arrow)

    def distances(self, name: str, query: Floats, metric: Metric, positions: Array | None = None) -> Floats:
        """The distance of each vector of a property, or of those at positions, to a query; NaN where there is
        none."""
        return self.vectors(name).distances(query, metric, positions)


@dataclass(frozen=True, slots=True, eq=False)
class _Derived(Generic[Used, Made]):
    """What was made from a column, segment by segment, as one version of the table uses it."""

    used: Used
    segments: tuple[Segment[Made], ...]
    placement: Placement

    @property
    def nbytes(self) -> int:
        return self.used.nbytes

    def valid_for(self, placement: Placement) -> tuple[Segment[Made], ...]:
        """The first segments, as far as they have all rows of a version."""
        valid = takewhile(lambda one: not placement.unknown(one.known, one.start, one.stop), self.segments)
        return tuple(valid)


@dataclass(frozen=True, slots=True, eq=False)
class _Deleted:
    offsets: Positions

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes


@dataclass(frozen=True, slots=True)
class _Known:
    """The index of a column, or that there is none."""

    index: VectorIndex | None
    nbytes: int = 512


class WholeTable(Rows):
    """All rows of one version of a table. Positions are those of the table's layout, the same in every version."""

    def __init__(
        self, entity: EntityType, pin: TablePin, storage: Tables, cache: QueryCache, settings: ReadSettings
    ) -> None:
        super().__init__(entity, pin.row_count)
        self.ref = pin.ref
        self.storage = storage
        self._cache = cache
        self._settings = settings
        self._columns: dict[str, Column] = {}
        self._few: dict[tuple[Files, ...], pa.Table] = {}
        self._gone: dict[tuple[Hashable, ...], pa.Table] = {}

    @cached_property
    def placement(self) -> Placement:
        """Where the rows of the version lie."""
        layouts = self._cache.layouts
        return self._cache.follow(
            ("placement", self.ref),
            lambda _: self._placed(),
            lambda known: layouts.current(self.ref.location) is known.layout,
        )

    def _placed(self) -> Placement:
        pieces = pieces_of(self.storage, self.ref) if self.count else ()
        self._take_over(pieces)
        layout, before = self._cache.layouts.of(self.ref.location, pieces, self._settings.spare_positions)
        if before is not None:
            self._cache.drop(before)

        def gone(piece: Piece) -> Positions:
            if piece.deletions is None:
                return np.zeros(0, dtype=np.int32)
            key = (layout, "deleted", piece.files, piece.deletions.name)
            return self._cache.get(key, lambda: _Deleted(deleted_rows(self.storage, self.ref, piece))).offsets

        columns = column_numbers(self.storage, self.ref) if pieces else {}
        return placed(layout, self.ref, pieces, gone, columns)

    def _take_over(self, pieces: Sequence[Piece]) -> None:
        """Let pieces that were written from others take over the positions of their rows, if it is many rows, and
        an earlier version of the branch is in memory. Fewer are read again."""
        layout = self._cache.layouts.current(self.ref.location)
        new = [] if layout is None else [piece for piece in pieces if not layout.has(piece.files)]
        if layout is None or sum(piece.rows for piece in new) < self._settings.take_over_from:
            return
        before = max(self._earlier(layout), key=lambda known: known.ref.version, default=None)
        if before is not None:
            from omnigraph.read.data.rewriting import take_over

            with suppress(OmniError):
                take_over(self.storage, self.ref, pieces, before)

    def _earlier(self, layout: Layout) -> list[Placement]:
        """Earlier versions on the same branch that are in memory."""
        place, version = (self.ref.location, self.ref.branch), self.ref.version
        found: list[Placement] = self._cache.relatives("placement")
        ours = [one for one in found if one.layout is layout and (one.ref.location, one.ref.branch) == place]
        return [one for one in ours if one.ref.version < version]

    @property
    def size(self) -> int:
        return self.placement.size

    @property
    def live(self) -> Bools | None:
        return self.placement.live

    @property
    def whole(self) -> Positions:
        return self.placement.whole

    @property
    def everything(self) -> Positions:
        return self.placement.everything

    def _key(self, what: str, name: str) -> Hashable:
        """The key of something about a column of this table in the cache."""
        return ((self.placement.layout, what, name), self.placement.columns.get(name))

    def has(self, name: str) -> bool:
        """Is the column in memory, of this version or of another one that it can be made from?"""
        layout = self._cache.layouts.current(self.ref.location)
        return layout is not None and bool(self._cache.relatives((layout, "column", name)))

    def column(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = self._column(name).column.first(self.size)
        return self._columns[name]

    def _column(self, name: str) -> GrownColumn:
        placement = self.placement

        def read(stretches: Sequence[Stretch]) -> pa.ChunkedArray:
            return self._read(stretches, name)

        def make(known: GrownColumn | None) -> GrownColumn:
            if known is not None:
                return known.followed(placement, read)
            kind = table_schema(self.entity).field(name).type
            return first_read(kind, placement, read, self._settings)

        return self._cache.follow(self._key("column", name), make, lambda known: known.suits(placement))

    def _read(self, stretches: Sequence[Stretch], name: str) -> pa.ChunkedArray:
        return self.physical(stretches, [name])[name]

    def physical(self, stretches: Sequence[Stretch], names: Sequence[str]) -> pa.Table:
        """Columns of some pieces, deleted rows included. Of a few new rows all columns that are in memory are read
        at once, because the query will need several of them."""
        files = tuple(stretch.piece.files for stretch in stretches)
        known = self._few.get(files)
        if known is not None and set(names).issubset(known.column_names):
            return known.select(list(names))
        if sum(stretch.piece.rows for stretch in stretches) > self._settings.few_rows:
            return self._scanned(stretches, names)
        used = self._cache.names((self.placement.layout, "column")) & self.placement.columns.keys()
        table = self._few[files] = self._scanned(stretches, sorted(used.union(names)))
        return table.select(list(names))

    def _scanned(self, stretches: Sequence[Stretch], names: Sequence[str]) -> pa.Table:
        scan = physical_rows(self.storage, self.ref, [stretch.piece for stretch in stretches], names)
        batches = []
        for batch in scan:
            self._cache.check()
            batches.append(batch)
        return pa.Table.from_batches(batches, scan.schema).select(list(names))

    def gone(self, rows: Sequence[tuple[Stretch, Positions]], names: Sequence[str]) -> pa.Table:
        """Columns of single rows, by stretch, which the version need not have any more."""
        parts = []
        for stretch, positions in rows:
            key = (stretch.piece.files, positions.tobytes(), *names)
            if key not in self._gone:
                self._gone[key] = rows_at(self.storage, stretch.piece, stretch.offsets(positions), names)
            parts.append(self._gone[key])
        return pa.concat_tables(parts)

    def _derived(
        self,
        what: str,
        name: str,
        make: Callable[[int, int], Made],
        use: Callable[[tuple[Segment[Made], ...]], Used],
        saved: Callable[[], Segment[Made] | None] = _nothing,
    ) -> Used:
        """What is made from a column; of one that has grown only the new rows are worked on. Where nothing is in
        memory, it may begin with what was ``saved``."""
        placement = self.placement

        def segment(low: int, high: int) -> Segment[Made]:
            known = frozenset(stretch.piece.files for stretch in placement.between(low, high))
            return Segment(low, high, make(low, high), known)

        def follow(known: _Derived[Used, Made] | None) -> _Derived[Used, Made]:
            if known is not None:
                before = known.valid_for(placement)
            else:
                first = saved()
                before = () if first is None else (first,)
            segments = covering(before, placement.size, segment)
            return _Derived(use(segments), segments, placement)

        return self._cache.follow(
            self._key(what, name), follow, lambda known: known.placement.is_like(placement)
        ).used

    def ids_of(self, rows: Sequence[tuple[Stretch, Positions]], placement: Placement) -> pa.Array:
        """The ids of rows of another version of the table, by stretch: from memory, or else from its files."""
        if not self.has("id") and sum(len(positions) for _, positions in rows) <= self._settings.few_rows:
            return Column.of(self.gone(rows, ["id"])["id"]).arrow.cast(pa.string())
        ids = self._column("id")
        if ids.suits(placement):
            return ids.column.take(np.concatenate([positions for _, positions in rows]))
        return Column.of(self.gone(rows, ["id"])["id"]).arrow.cast(ids.column.arrow.type)

    def places(self, ids: pa.Array) -> Positions:
        """The positions of ids; -1 where there is no such id."""
        if not self.size:
            return np.full(len(ids), -1, dtype=np.int32)
        if len(ids) <= _FEW_IDS and self._is_worth_looking_up():
            return self._looked_up(ids)
        own = self._column("id").column.arrow
        found = self._derived("ids", "id", lambda low, high: ExactIndex(own.slice(low, high - low)), Ids)
        return found.places(ids, self.size, self.live)

    def _is_worth_looking_up(self) -> bool:
        """Is the table large, are its ids not in memory, and were they not looked up so often that reading them
        would have paid?"""
        return not self.has("id") and self.is_rarely_read()

    def _looked_up(self, ids: pa.Array) -> Positions:
        """The positions of a few ids, by the index of the table."""
        self._cache.count_lookup(self.ref.location)
        there, addresses = addresses_of(self.storage, self.ref, ids)
        positions = np.append(self.placement.positions_of(addresses), -1).astype(np.int32)
        return positions[filled(pc.index_in(ids.cast(there.type), value_set=there), -1)]

    def text_index(self, name: str) -> TextIndex:
        from omnigraph.read.text.index import TextIndex
        from omnigraph.read.text.postings import Postings

        if not self.size:
            return TextIndex(self.column(name).arrow)

        kind = table_schema(self.entity).field(name).type

        def read(stretches: Sequence[Stretch]) -> pa.ChunkedArray:
            return self._read(stretches, name)

        def make(low: int, high: int) -> Postings:
            if low and not self.has(name):  # the other texts are not needed, because their words are known
                texts = rows_between(kind, self.placement, read, low, high)
            else:
                texts = self._column(name).column.arrow.slice(low, high - low)
            return Postings.of(texts, self._cache.check, self._settings)

        return self._derived(
            "text",
            name,
            make,
            lambda parts: TextIndex.over(parts, self.size, self.live),
            lambda: self._saved_postings(name),
        )

    def _saved_postings(self, name: str) -> Segment[Postings] | None:
        from omnigraph.read.data.saved.postings import segment_in

        column = self.placement.columns.get(name)
        if column is None or self.count < self._settings.save_texts_from:
            return None
        saved = saved_postings(self.storage, self.ref, column)
        return None if saved is None else segment_in(saved, self.placement)

    def vectors(self, name: str) -> VectorColumn:
        from omnigraph.read.values.vectors import VectorBlock, VectorColumn

        if not self.size:
            return VectorColumn(self.column(name).arrow)
        kind = table_schema(self.entity).field(name).type

        def read(stretches: Sequence[Stretch]) -> pa.ChunkedArray:
            return self._read(stretches, name)

        def make(low: int, high: int) -> VectorBlock:
            return VectorBlock(rows_between(kind, self.placement, read, low, high))

        return self._derived(
            "vectors", name, make, lambda parts: VectorColumn.over(parts, self.size, self.live, self._settings)
        )

    def has_vectors(self, name: str) -> bool:
        """Are the vectors of a property in memory, of this version or of another one?"""
        layout = self._cache.layouts.current(self.ref.location)
        return layout is not None and bool(self._cache.relatives((layout, "vectors", name)))

    def keeps_vectors(self, name: str, dimension: int) -> bool:
        """Are the vectors of a property in memory, or searched so often that reading them pays? Vectors of a small
        table always are, those that would fill the cache never."""
        if self.has_vectors(name) or self.count < self._settings.search_from:
            return True
        often = self._cache.lookups(self.ref.location) * self._settings.rows_per_lookup >= self.count
        return often and _CACHE_SHARE * 4 * dimension * self.count <= self._cache.limit

    def partitioned(self, name: str, metric: Metric, dimension: int) -> PartitionedVectors | None:
        """The vectors of a property by partition; None if both would fill the cache, or while many of them are put
        into partitions."""
        if 2 * _CACHE_SHARE * 4 * dimension * self.count > self._cache.limit:
            return None
        if self.size - self._partitioned_to(name, metric) <= self._settings.partition_waiting:
            return self._by_partition(name, metric)
        if self.has_vectors(name):
            family = (self.placement.layout, _partitions(metric), name)
            self._cache.beside(family, lambda cache: self._apart(cache)._by_partition(name, metric))
        return None

    def _apart(self, cache: QueryCache) -> WholeTable:
        """The same table, for work that outlives the query."""
        table = copy(self)
        table._cache, table._columns, table._few, table._gone = cache, {}, {}, {}
        return table

    def _by_partition(self, name: str, metric: Metric) -> PartitionedVectors:
        from omnigraph.read.vectors.partitions import Partitions
        from omnigraph.read.vectors.search import PartitionedVectors

        def make(low: int, high: int) -> Partitions:
            return Partitions(*self.vectors(name).between(low, high), metric, self._settings.partition_from)

        return self._derived(
            _partitions(metric), name, make, lambda parts: PartitionedVectors(parts, self.size, self.live)
        )

    def has_partitions(self, name: str, metric: Metric) -> bool:
        """Are vectors of a property in partitions?"""
        return self._partitioned_to(name, metric) > 0

    def _partitioned_to(self, name: str, metric: Metric) -> int:
        """Up to which position the vectors of a property are in partitions."""
        known = self._cache.find(self._key(_partitions(metric), name))
        valid = [] if known is None else known.valid_for(self.placement)
        return int(valid[-1].stop) if valid else 0

    def distances(self, name: str, query: Floats, metric: Metric, positions: Array | None = None) -> Floats:
        """Few vectors that are not in memory are fetched."""
        from omnigraph.read.values.vectors import VectorColumn

        if positions is not None and len(positions) <= self._settings.lookup_rows:
            found = None if self.keeps_vectors(name, len(query)) else self._fetched([name], positions)
            if found is not None:
                return VectorColumn(found[name], self._settings).distances(query, metric)
        return super().distances(name, query, metric, positions)

    def _fetched(self, names: Sequence[str], positions: Array) -> dict[str, pa.Array] | None:
        """The values of columns at positions, read for these rows alone; None if their numbers are not known."""
        numbers = self.placement.numbers_of(positions)
        if numbers is None:
            return None
        self._cache.check()
        self._cache.count_lookup(self.ref.location)
        distinct, places = np.unique(numbers, return_inverse=True)
        found = numbered_rows(self.storage, self.ref, distinct, names)
        return {name: Column.of(found[name]).take(places) for name in names}

    def is_rarely_read(self) -> bool:
        """Is the table large, and were its rows looked up so seldom that reading columns would not pay yet?"""
        if self.count <= self._settings.small_table:
            return False
        return self._cache.lookups(self.ref.location) * self._settings.rows_per_lookup < self.count

    def some(self, names: Iterable[str], positions: Array) -> dict[str, pa.Array]:
        """The values of columns at a few positions. Those of columns that are not in memory are fetched together,
        if the table is rarely read."""
        kept = {name: self.has(name) for name in names}
        missing = [name for name, is_kept in kept.items() if not is_kept]
        fetched = self._fetched(missing, positions) if missing and self.is_rarely_read() else None
        return {name: self.column(name).take(positions) for name in kept if name not in (fetched or ())} | (
            fetched or {}
        )

    def vector_index(self, name: str) -> VectorIndex | None:
        """The index of a vector property, if there is one."""
        from omnigraph.storage.rows.nearest import vector_index

        key = (self.ref, ("vector index", name))
        return self._cache.get(key, lambda: _Known(vector_index(self.storage, self.ref, name))).index

    def near(self, near: Near) -> Ints:
        """The positions of the rows that an index finds."""
        from omnigraph.storage.rows.nearest import addresses_near

        return self.placement.positions_of(addresses_near(self.storage, self.ref, near))

    def batches(self, names: list[str]) -> Iterator[pa.Table]:
        """Columns some rows at a time, for what is read once and not kept."""
        pending: list[pa.RecordBatch] = []
        rows = 0
        for batch in self.storage.pass_through(self.ref, names):
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
