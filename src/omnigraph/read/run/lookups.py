"""Answering a query by look-ups: only the rows it touches are read, through the indexes of the tables.

These are the operators of `operators.py`, on fetched rows instead of whole tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from concurrent.futures import Future
from functools import partial
from itertools import product
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.formats.columns import table_schema
from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.read.data.rows import Rows, WholeTable
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.limits import Limits
from omnigraph.read.pattern.pattern import Link, Node
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame
from omnigraph.read.run.operators import Operators
from omnigraph.read.values.columns import Array, Bools, Column, Ints, filled
from omnigraph.read.values.comparing import Series
from omnigraph.read.values.parallel import begun
from omnigraph.storage.tables import TableRef

_TOGETHER: Final = 1_000
_SIDES: Final = {ir.Direction.OUT: ["src"], ir.Direction.IN: ["dst"], ir.Direction.BOTH: ["src", "dst"]}


class TooManyLookups(Exception):
    """The query needs more rows than are worth looking up one by one."""


class FetchedRows(Rows):
    """Rows that were fetched by look-ups; further columns of them are fetched on first use."""

    def __init__(self, whole: WholeTable, table: pa.Table, tables: GraphTables) -> None:
        super().__init__(whole.entity, table.num_rows)
        self._whole = whole
        self._tables = tables
        self._columns = {name: Column.of(table[name]) for name in table.column_names}

    def column(self, name: str) -> Column:
        if name not in self._columns:
            ids = self._columns["id"].arrow
            found = fetch(self._tables, self._whole, "id", ids, ["id", name])
            order = pc.index_in(ids, value_set=found["id"].combine_chunks())
            self._columns[name] = Column(Column.of(found[name]).arrow.take(order))
        return self._columns[name]


def fetch(
    tables: GraphTables, whole: WholeTable, column: str, values: pa.Array, columns: Sequence[str]
) -> pa.Table:
    """The rows of a table that have one of the values in a column."""
    from omnigraph.storage.rows.filters import sql_literal

    parts = []
    for start in range(0, len(values), _TOGETHER):
        some = ", ".join(sql_literal(value) for value in values.slice(start, _TOGETHER))
        parts.append(_scan(tables, whole, columns, f"`{column}` in ({some})"))
    if not parts:
        return _scan(tables, whole, columns, "false")
    return pa.concat_tables(parts)


def _scan(tables: GraphTables, whole: WholeTable, columns: Sequence[str], where: str | None) -> pa.Table:
    tables.cache.check()
    tables.cache.count_lookup(whole.ref.location)
    if not whole.count or where == "false":
        schema = table_schema(whole.entity)
        return pa.schema([schema.field(name) for name in columns]).empty_table()
    return tables.storage.scan(whole.ref, columns, where).read_all()


class Lookups(Operators):
    """The operators of one execution, on fetched rows."""

    def __init__(
        self,
        tables: GraphTables,
        expressions: Expressions,
        limits: Limits,
        needed: Mapping[str, Set[str]],
        *,
        bounded: bool,
    ) -> None:
        super().__init__(tables, expressions, limits)
        self._needed = needed
        self._bounded = bounded
        self._begun: dict[tuple[Link, TableRef, str, str], Future[pa.Table]] = {}

    def look_ahead(self, node: Node, link: Link) -> None:
        """Begin to look up the edges at a node whose key is known, while the node itself is looked up."""
        fixed = {
            condition.left.property: self.expressions.constant(condition.right)
            for condition in node.filters
            if condition.op is ir.Op.EQ
            and isinstance(condition.left, ir.Prop)
            and isinstance(condition.right, ir.Param | ir.Constant)
        }
        kind = self.tables.catalog.nodes[node.type_name]
        try:
            expected = str(fixed["id"]) if "id" in fixed else kind.id_of(fixed)
        except ValueError:  # a part of the key is missing, or a number is no value of its type
            return
        columns = self._edge_columns(link)
        for edges in self.tables.each_edges(link.edge_type):
            for side in _SIDES[link.direction]:
                self._begun[link, edges.ref, side, expected] = begun(
                    partial(fetch, self.tables, edges, side, pa.array([expected]), columns)
                )

    def _scan_of_block(self, frame: Frame, scan: ir.NodeScan, later: Sequence[ir.Operation]) -> Frame:  # noqa: ARG002
        """Equal values are compared row by row: what would find them is made from whole tables."""
        return self.scanned(frame, scan.variable, scan.type_name, scan.filters)

    def scanned(self, frame: Frame, variable: str, type_name: str, filters: Sequence[ir.Filter]) -> Frame:
        """Each row with each entity that passes the filters; Lance checks those it can, through its indexes."""
        whole = self.tables.nodes(type_name)
        where = " and ".join(self._pushed(filters, variable, whole.entity)) or None
        table = _scan(self.tables, whole, self.columns(variable, whole.entity, filters), where)
        self._check_width(table.num_rows)
        rows = FetchedRows(whole, table, self.tables)
        return self.filtered(self.scan(frame, variable, rows), filters)

    def _pushed(self, filters: Iterable[ir.Filter], variable: str, entity: EntityType) -> Iterable[str]:
        """Filters that Lance can check, as text. They are checked again on the rows that it returns."""
        from omnigraph.storage.rows.filters import compared

        schema = table_schema(entity)
        for condition in filters:
            match condition:
                case ir.Filter(ir.Prop(name, prop), op, ir.Param() | ir.Constant() as right) if name == variable:
                    kind = schema.field(prop).type
                    value = self.expressions.constant(right)
                    if op not in _COMPARED or pa.types.is_nested(kind) or isinstance(value, tuple):
                        continue
                    rest = None if value is None else compared(kind, op, value)
                    yield "false" if rest is None else f"`{prop}` {rest}"

    def columns(self, variable: str, entity: EntityType, filters: Sequence[ir.Filter] = ()) -> list[str]:
        """The columns of a variable that the query needs, to check these filters and for its results."""
        names = {"id", *self._needed.get(variable, ())}
        for condition in filters:
            names |= {
                side.property
                for side in (condition.left, condition.right)
                if isinstance(side, ir.Prop) and side.variable == variable
            }
        return [name for name in entity.columns if name in names]

    def _check_width(self, rows: int) -> None:
        if self._bounded and rows > self.tables.settings.lookup_rows:
            raise TooManyLookups

    def sizes(self, frame: Frame, link: Link) -> Ints:  # noqa: ARG002
        """Zero: fetched rows are few, and never worked on in pieces."""
        return np.zeros(frame.count, dtype=np.int64)

    def growth(self, operations: Sequence[ir.Operation], bound: Mapping[str, Rows]) -> float:  # noqa: ARG002
        """See `sizes`."""
        return 0.0

    def follow(self, frame: Frame, link: Link, target_type: str) -> Frame:
        """Each row with each neighbour, found through the index on the ends of edges; equal values in memory."""
        if link.value is not None:
            return super().follow(frame, link, target_type)
        frame = self._present(frame, link.source)
        whole = self.tables.nodes(target_type)
        edges = self.tables.each_edges(link.edge_type)
        if link.is_impossible:
            frame = frame.take(np.zeros(0, dtype=np.int64))
        unique, inverse = np.unique(frame.positions[link.source], return_inverse=True)
        ids = frame.rows[link.source].column("id").take(unique)
        source, target, found = self._edges(link, edges, ids)
        reached = target.unique()
        self._check_width(len(reached))
        nodes = FetchedRows(
            whole,
            fetch(self.tables, whole, "id", reached, self.columns(link.target, whole.entity)),
            self.tables,
        )
        places = filled(pc.index_in(target, value_set=nodes.column("id").arrow), -1)
        owners = filled(pc.index_in(source, value_set=ids), -1)
        return self._joined(
            frame, link, inverse, (owners, places), nodes, FetchedRows(edges[0], found, self.tables)
        )

    def _edges(
        self, link: Link, edges: Sequence[WholeTable], ids: pa.Array
    ) -> tuple[pa.Array, pa.Array, pa.Table]:
        """The edges at some nodes: the near end, the far end and the edge of each."""
        near: list[pa.Array] = []
        far: list[pa.Array] = []
        parts: list[pa.Table] = []
        for whole, side in product(edges, _SIDES[link.direction]):
            table = self._edges_at(link, whole, side, ids)
            if side == "dst" and link.direction is ir.Direction.BOTH:
                table = table.filter(pc.not_equal(table["src"], table["dst"]))
            other = "dst" if side == "src" else "src"
            near.append(Column.of(table[side]).arrow)
            far.append(Column.of(table[other]).arrow)
            parts.append(table)
        return pa.concat_arrays(near), pa.concat_arrays(far), pa.concat_tables(parts, promote_options="default")

    def _edges_at(self, link: Link, edges: WholeTable, side: str, ids: pa.Array) -> pa.Table:
        """The edges that have one of the ids at a side; those that `look_ahead` asked for are on their way."""
        ahead = self._begun.pop((link, edges.ref, side, ids[0].as_py()), None) if len(ids) == 1 else None
        if ahead is not None:
            return ahead.result()
        return fetch(self.tables, edges, side, ids, self._edge_columns(link))

    def _edge_columns(self, link: Link) -> list[str]:
        if link.edge_variable is None:
            return ["dst", "src"]
        entity = self.tables.catalog.followed(link.edge_type)
        return sorted({"src", "dst", *self.columns(link.edge_variable, entity)})

    def _joined(
        self,
        frame: Frame,
        link: Link,
        inverse: Array,
        pairs: tuple[Array, Array],
        nodes: FetchedRows,
        edges: FetchedRows,
    ) -> Frame:
        """The rows joined with the neighbours of their sources: each neighbour once, or each edge."""
        owners, places = pairs
        kept = np.flatnonzero(places >= 0)
        if link.edge_variable is None and len(kept):
            packed = owners[kept].astype(np.int64) * max(nodes.count, 1) + places[kept]
            kept = kept[np.unique(packed, return_index=True)[1]]
        order = kept[np.argsort(owners[kept], kind="stable")]
        counts = np.bincount(owners[order], minlength=int(inverse.max(initial=-1)) + 1)
        starts = np.cumsum(counts) - counts
        each = counts[inverse]
        self.limits.allocate(int(each.sum()), int(each.sum()) * 8 * (len(frame.positions) + 2))
        index = np.repeat(np.arange(frame.count), each)
        within = np.arange(int(each.sum())) - np.repeat(np.cumsum(each) - each, each)
        chosen = order[np.repeat(starts[inverse], each) + within]
        grown = frame.take(index).bind(link.target, nodes, places[chosen].astype(np.int32))
        if link.edge_variable is None:
            return grown
        return grown.bind(link.edge_variable, edges, chosen.astype(np.int32))

    def connected(self, frame: Frame, link: Link) -> Bools:
        """For each row: is there such a hop between its two variables?"""
        tagged = Frame(frame.count, frame.rows, frame.positions).bind(
            "row#connected", frame.rows[link.source], np.arange(frame.count, dtype=np.int32)
        )
        hidden = Link(link.source, f"{link.target}#connected", link.edge_type, link.direction)
        edge = self.tables.catalog.followed(link.edge_type)
        grown = self.follow(tagged, hidden, edge.source if link.direction is ir.Direction.IN else edge.target)
        held = np.zeros(frame.count, dtype=np.bool_)
        arrived = self.same(grown, hidden.target, link.target)
        held[grown.positions["row#connected"][arrived]] = True
        return held

    def same(self, frame: Frame, left: str, right: str) -> Bools:
        """In which rows two variables of one type are the same entity: by id, because they were fetched
        separately."""
        ids = [Series(frame.rows[name].column("id"), frame.at(name)).arrow for name in (left, right)]
        held = pc.fill_null(pc.equal(ids[0], ids[1]), False)
        return np.asarray(held.to_numpy(zero_copy_only=False), dtype=np.bool_)


_COMPARED: Final = frozenset((ir.Op.EQ, ir.Op.NE, ir.Op.LT, ir.Op.LE, ir.Op.GT, ir.Op.GE))
