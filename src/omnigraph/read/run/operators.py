"""The operators on frames, each for all rows at once: scan, follow, close, filter, optional, not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph.lang.query import ir
from omnigraph.read.data.adjacency import Adjacency
from omnigraph.read.data.rows import Rows
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.limits import Limits
from omnigraph.read.pattern.pattern import Link, Node, link_of, mentioned
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import NO_ROW, Frame, joined
from omnigraph.read.run.hops import reach_bounds, reached
from omnigraph.read.run.relations import adjacency_of, are_connected, reached_by
from omnigraph.read.values.columns import Array, Bools, Column, Ints, Positions
from omnigraph.read.values.comparing import Series, compare
from omnigraph.read.values.counting import product

if TYPE_CHECKING:
    from omnigraph.read.run.intersection import Intersection
    from omnigraph.read.run.joining import Hops

_ROW: Final = "row#"
_FEW: Final = 64


class Operators:
    """The operators of one execution."""

    def __init__(self, tables: GraphTables, expressions: Expressions, limits: Limits) -> None:
        self.tables = tables
        self.expressions = expressions
        self.limits = limits
        self._reaches: dict[tuple[str, ir.Direction, int], Ints] = {}

    def run(self, operations: Sequence[ir.Operation], frame: Frame) -> Frame:
        """Operations one after the other, as written."""
        for index, operation in enumerate(operations):
            self.limits.check()
            match operation:
                case ir.NodeScan():
                    frame = self._scan_of_block(frame, operation, operations[index + 1 :])
                case ir.Expand():
                    frame = self._expand(frame, operation)
                case ir.Filter():
                    frame = self.filtered(frame, (operation,))
                case ir.Optionally(inner, introduces):
                    frame = self.optional(frame, inner, introduces)
                case ir.AntiJoin(_, inner):
                    frame = frame.keep(~self.matched(frame, inner))
        return frame

    def filtered(self, frame: Frame, conditions: Sequence[ir.Filter]) -> Frame:
        """The rows for which all conditions hold."""
        for condition in conditions:
            frame = frame.keep(self.expressions.holds(condition, frame))
        return frame

    def _scan_of_block(self, frame: Frame, scan: ir.NodeScan, later: Sequence[ir.Operation]) -> Frame:
        """Each row with each entity, as far as the conditions can hold that come later."""
        from omnigraph.read.run.joining import joining_hops

        hops = joining_hops(scan, later, frame.rows, self.tables)
        if hops is None:
            return self.scanned(frame, scan.variable, scan.type_name, scan.filters)
        for hop in hops:
            frame = self.follow(frame, hop, scan.type_name)
        return self.filtered(frame.only(frame.positions.keys() - {hops[0].target}), scan.filters)

    def scanned(self, frame: Frame, variable: str, type_name: str, filters: Sequence[ir.Filter]) -> Frame:
        """Each row with each entity of a type that passes the filters."""
        rows = self.tables.nodes(type_name)
        if not filters or not _is_one_row(frame):
            return self.filtered(self.scan(frame, variable, rows), filters)
        first, *others = filters
        held = self.expressions.holds(first, Frame.of(variable, rows, rows.whole))
        if rows.live is not None:
            held = held & rows.live
        return self.filtered(Frame.of(variable, rows, rows.whole).keep(held), others)

    def look_ahead(self, node: Node, link: Link) -> None:
        """Prepare for a link that will be followed from a node; tables in memory need no preparation."""

    def scan(self, frame: Frame, variable: str, rows: Rows) -> Frame:
        """Each row with each entity."""
        if _is_one_row(frame):
            return Frame.of(variable, rows, rows.everything)
        return self.crossed(frame, Frame.of(variable, rows, rows.everything))

    def crossed(self, frame: Frame, other: Frame) -> Frame:
        """Each row of one with each row of the other."""
        total = frame.count * other.count
        width = len(frame.positions) + len(other.positions) + 4
        self.limits.allocate(total, total * width * 4)
        left = np.repeat(np.arange(frame.count), other.count)
        right = np.tile(np.arange(other.count), frame.count)
        one, two = frame.take(left), other.take(right)
        weights = one.weights if two.weights is None else two.weights
        if one.weights is not None and two.weights is not None:
            weights = product(one.weights, two.weights)
        return Frame(total, {**one.rows, **two.rows}, {**one.positions, **two.positions}, weights)

    def _expand(self, frame: Frame, expand: ir.Expand) -> Frame:
        link = link_of(expand)
        if expand.closes is not None:
            return self.close(frame, link)
        return self.filtered(self.follow(frame, link, expand.target_type), expand.target_filters)

    def sizes(self, frame: Frame, link: Link) -> Ints:
        """How many rows each row becomes when a link is followed; for a chain of hops an upper bound."""
        adjacency = self._adjacency(link)
        positions = frame.positions[link.source]
        if not len(adjacency) or link.is_impossible:
            return np.zeros(frame.count, dtype=np.int64)
        if link.is_hop:
            counts: Array = adjacency.degrees[positions]
        elif frame.count <= _FEW:
            counts = np.full(frame.count, adjacency.width)
        else:
            counts = self._bounds(link, adjacency)[positions]
        return np.where(positions < 0, 0, counts).astype(np.int64)

    def _bounds(self, link: Link, adjacency: Adjacency) -> Ints:
        key = (link.edge_type, link.direction, link.max_hops)
        if key not in self._reaches:
            self._reaches[key] = reach_bounds(adjacency, link.max_hops, self.limits)
        return self._reaches[key]

    def growth(self, operations: Sequence[ir.Operation], bound: Mapping[str, Rows]) -> float:
        """About how many rows one row becomes in the largest step of some operations."""
        largest = rows = 1.0
        bound = dict(bound)
        for index, operation in enumerate(operations):
            match operation:
                case ir.NodeScan(variable, type_name, _):
                    from omnigraph.read.run.joining import joining_hops

                    hops = joining_hops(operation, operations[index + 1 :], bound, self.tables)
                    rows *= self.tables.nodes(type_name).count if hops is None else self._partners(hops)
                    bound[variable] = self.tables.nodes(type_name)
                case ir.Expand():
                    rows *= max(1.0, self._neighbours(operation))
                    bound[operation.end] = self.tables.nodes(operation.target_type)
                case ir.Optionally(inner, _):
                    rows *= self.growth(inner, bound)
                case ir.AntiJoin(_, inner):
                    largest = max(largest, rows * self.growth(inner, bound))
            largest = max(largest, rows)
        return largest

    def _partners(self, hops: Hops) -> float:
        """How many entities have the value of an entity on average."""
        values, entities = (self._adjacency(hop) for hop in hops)
        return int(entities.degrees[values.targets].sum(dtype=np.int64)) / max(1, len(values))

    def _neighbours(self, expand: ir.Expand) -> float:
        """How many neighbours an entity has on average; for a chain of hops an upper bound."""
        link = link_of(expand)
        adjacency = self._adjacency(link)
        if link.is_hop or link.is_impossible or not len(adjacency):
            return adjacency.pairs / max(1, len(adjacency))
        return float(self._bounds(link, adjacency).mean())

    def follow(self, frame: Frame, link: Link, target_type: str) -> Frame:
        """Each row with each neighbour; with an edge variable, with each edge."""
        frame = self._present(frame, link.source)
        rows = reached_by(self.tables, link, target_type)
        if link.is_impossible or not frame.count:
            return self._nowhere(frame, link, rows)
        if not link.is_hop:
            sources, settings = frame.positions[link.source], self.tables.settings
            index, found = reached(self._adjacency(link), sources, link, self.limits, settings)
            return self._grown(frame, index).bind(link.target, rows, found)
        adjacency = self._adjacency(link)
        positions = frame.positions[link.source]
        if adjacency.is_function and adjacency.edges is None:
            return _function(frame, adjacency.only.take(positions), link.target, rows)
        row = (len(frame.positions) + 7) * 4
        index, places, _ = adjacency.expand(positions, lambda total: self.limits.allocate(total, total * row))
        grown = frame.take(index).bind(link.target, rows, adjacency.targets.take(places))
        if link.edge_variable is None or adjacency.edges is None:
            return grown
        return grown.bind(link.edge_variable, self.tables.edges(link.edge_type), adjacency.edges[places])

    def _nowhere(self, frame: Frame, link: Link, rows: Rows) -> Frame:
        none = np.zeros(0, dtype=np.int32)
        empty = frame.take(np.zeros(0, dtype=np.int64)).bind(link.target, rows, none)
        if link.edge_variable is None:
            return empty
        return empty.bind(link.edge_variable, self.tables.edges(link.edge_type), none)

    def close(self, frame: Frame, link: Link) -> Frame:
        """The rows whose two variables are connected; with an edge variable, one row per edge."""
        frame = self._present(self._present(frame, link.source), link.target)
        if link.is_hop and link.edge_variable is None:
            return frame.keep(self.connected(frame, link))
        edge = self.tables.catalog.followed(link.edge_type)
        out = link.direction is not ir.Direction.IN
        hidden = replace(link, target=f"{link.target}#")
        grown = self.follow(frame, hidden, edge.target if out else edge.source)
        arrived = self.same(grown, hidden.target, link.target)
        return grown.keep(arrived).only(grown.positions.keys() - {hidden.target})

    def connected(self, frame: Frame, link: Link) -> Bools:
        """For each row: is there such a hop between its two variables?"""
        return are_connected(self.tables, link, frame.positions[link.source], frame.positions[link.target])

    def intersection(self, frame: Frame, links: Sequence[Link]) -> Intersection:
        """The common neighbours of the rows over some links."""
        from omnigraph.read.run.intersection import Intersection

        return Intersection(self.tables, self.limits, frame, links)

    def _adjacency(self, link: Link) -> Adjacency:
        return adjacency_of(self.tables, link)

    def _present(self, frame: Frame, variable: str) -> Frame:
        """The rows in which a variable has a value."""
        positions = frame.positions[variable]
        if len(positions) and int(positions.min()) < 0:
            return frame.keep(positions >= 0)
        return frame

    def _grown(self, frame: Frame, index: Array) -> Frame:
        self.limits.allocate(len(index), len(index) * (len(frame.positions) + 3) * 4)
        return frame.take(index)

    def matched(self, frame: Frame, inner: Sequence[ir.Operation]) -> Bools:
        """For which rows a block has a match."""
        found = np.zeros(frame.count, dtype=np.bool_)
        tagged = self._tagged(frame, inner)
        found[self.run(inner, tagged).positions[_ROW]] = True
        return found

    def optional(self, frame: Frame, inner: Sequence[ir.Operation], introduces: Sequence[str]) -> Frame:
        """Rows with the matches of a block; a row without any stays once, with nothing in the new variables."""
        tag = f"{_ROW}{len(frame.positions)}"
        matches = self.run(inner, frame.bind(tag, _NOWHERE, _numbered(frame)))
        rows = {name: matches.rows[name] for name in introduces if name in matches.rows}
        alone = np.ones(frame.count, dtype=np.bool_)
        alone[matches.positions[tag]] = False
        left = frame.take(np.flatnonzero(alone))
        for name in introduces:
            left = left.bind(name, rows[name], np.full(left.count, NO_ROW, dtype=np.int32))
        kept = matches.only({*frame.positions, *introduces})
        return joined([kept, left.only(kept.positions)])

    def _tagged(self, frame: Frame, inner: Sequence[ir.Operation]) -> Frame:
        """The rows by number, with the variables that a block needs."""
        names = {name for operation in inner for name in mentioned(operation)}
        tagged = frame.only(names)
        tagged = Frame(tagged.count, tagged.rows, tagged.positions, None)
        return tagged.bind(_ROW, _NOWHERE, _numbered(frame))

    def same(self, frame: Frame, left: str, right: str) -> Bools:
        """In which rows two variables of one type are the same entity."""
        if frame.rows[left] is frame.rows[right]:
            return np.asarray(frame.positions[left] == frame.positions[right])
        ids = [Series(frame.rows[name].column("id"), frame.at(name)) for name in (left, right)]
        return compare(ir.Op.EQ, ids[0], ids[1], frame.count)


def _is_one_row(frame: Frame) -> bool:
    """Is it the frame that every query begins with?"""
    return not frame.positions and frame.count == 1 and frame.weights is None


def _numbered(frame: Frame) -> Positions:
    return np.arange(frame.count, dtype=np.int32)


def _function(frame: Frame, only: Positions, target: str, rows: Rows) -> Frame:
    """Follow a link with at most one neighbour per node: a row stays one row, or is dropped."""
    if len(only) and int(only.min()) < 0:
        present = np.flatnonzero(only >= 0)
        return frame.take(present).bind(target, rows, only[present])
    return frame.bind(target, rows, only)


class _Nowhere(Rows):
    """The rows behind a variable that numbers the rows of a frame: there are none."""

    def __init__(self) -> None:
        self.count = 0

    def column(self, name: str) -> Column:
        raise TypeError(f"the number of a row has no property `{name}`")


_NOWHERE: Final = _Nowhere()
