"""Common neighbours: the nodes that several bound variables all link to.

For every row, the neighbours over the link with the fewest are looked up among the others, which bounds the work
as worst-case optimal joins do. It happens in blocks that fit the processor's cache, in several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from omnigraph.read.data.adjacency import hashed_rows
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.limits import Limits
from omnigraph.read.pattern.pattern import Link
from omnigraph.read.run.frame import Frame
from omnigraph.read.run.relations import adjacency_of, are_connected
from omnigraph.read.values.columns import Array, Bools, Ints, Positions
from omnigraph.read.values.counting import counts_by
from omnigraph.read.values.parallel import in_parallel, parts_of

Take = Callable[[Ints, Positions], None]
"""Takes row numbers and a common neighbour of each. Called by several threads, for each row by one of them."""


class Intersection:
    """The common neighbours of the rows of a frame over some links."""

    def __init__(self, tables: GraphTables, limits: Limits, frame: Frame, links: Sequence[Link]) -> None:
        self.tables = tables
        self.limits = limits
        self.frame = frame
        self.links = links

    def sizes(self) -> Ints:
        """How many neighbours are looked at for each row."""
        return np.asarray(np.min(self._degrees(), axis=0))

    def _degrees(self) -> Ints:
        return np.stack(
            [
                adjacency_of(self.tables, link).degrees[self.frame.positions[link.source]].astype(np.int64)
                for link in self.links
            ]
        )

    def found(self) -> tuple[Ints, Positions]:
        """All common neighbours, with the number of the row that has each."""
        parts: list[tuple[Ints, Positions]] = []
        self._go_through(lambda index, targets: parts.append((index, targets)))
        if not parts:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
        return np.concatenate([index for index, _ in parts]), np.concatenate([targets for _, targets in parts])

    def counts(self, weigh: Callable[[Array], Array] | None) -> Array:
        """The sum of the weights of the common neighbours of each row; truth values if there is at most one."""
        apart = len({link.source for link in self.links}) > 1 or any(link.value for link in self.links)
        if len(self.links) == 2 and not apart:
            return self._counts_of_one(weigh)
        function = next((link for link in self.links if adjacency_of(self.tables, link).is_function), None)
        if weigh is None and function is not None:
            return self._has_one(function)
        index, targets = self.found()
        weights = None if weigh is None else weigh(targets).astype(np.int64)
        return counts_by(index, weights, self.frame.count)

    def _counts_of_one(self, weigh: Callable[[Array], Array] | None) -> Ints:
        """The same for two links from one variable: the pairs that both have are an adjacency that can be
        cached."""
        one, two = ((link.edge_type, link.direction) for link in self.links)
        adjacency, positions = self.tables.shared(one, two), self.frame.positions[self.links[0].source]
        if weigh is None:
            return adjacency.degrees[positions].astype(np.int64)
        index, places, _ = adjacency.expand(positions)
        return counts_by(index, weigh(adjacency.targets[places]).astype(np.int64), self.frame.count)

    def _has_one(self, function: Link) -> Bools:
        """Whether the only neighbour over one of the links is one over the others too."""
        held = np.zeros(self.frame.count, dtype=np.bool_)

        def take(rows: Ints, _: Positions) -> None:
            held[rows] = True

        self._over_function(function, take)
        return held

    def _go_through(self, take: Take) -> None:
        for link in self.links:
            if adjacency_of(self.tables, link).is_function:
                self._over_function(link, take)
                return
        degrees = self._degrees()
        fewest = np.argmin(degrees, axis=0)
        for link in self.links:
            adjacency_of(self.tables, link).prepare()
        for number, link in enumerate(self.links):
            rows = np.flatnonzero((fewest == number) & (degrees[number] > 0))
            ends = np.cumsum(degrees[number][rows])
            size = int(ends[-1]) if len(ends) else 0
            step = -(-size // parts_of(size, self.tables.settings.parallel_from)) if size else 1
            cuts = np.unique(np.searchsorted(ends, np.arange(0, size, step))).tolist()
            in_parallel(partial(self._blocks, rows, ends, link, take), pairwise([*cuts, len(rows)]))

    def _others(self, link: Link) -> list[Link]:
        return [other for other in self.links if other is not link]

    def _over_function(self, link: Link, take: Take) -> None:
        """Common neighbours where one of the links leads to one neighbour at most: only that one is checked."""
        step, count = self.tables.settings.pair_block, self.frame.count
        work = partial(self._function_blocks, link, take)
        work(0, min(step, count))  # builds what the check needs, before several threads need it
        parts = parts_of(count, self.tables.settings.parallel_from)
        in_parallel(work, pairwise(np.linspace(min(step, count), count, parts + 1).astype(np.int64).tolist()))

    def _function_blocks(self, link: Link, take: Take, first: int, last: int) -> None:
        only, positions = adjacency_of(self.tables, link).only, self.frame.positions
        step, others = self.tables.settings.pair_block, self._others(link)
        for low in range(first, last, step):
            block = slice(low, min(low + step, last))
            targets = only.take(positions[link.source][block])
            rows = np.flatnonzero(targets >= 0)
            targets = targets.take(rows)
            for other in others:
                near = positions[other.source][block].take(rows)
                held = np.flatnonzero(are_connected(self.tables, other, near, targets))
                rows, targets = rows.take(held), targets.take(held)
            if len(rows):
                take(rows + low, targets)

    def _blocks(self, rows: Ints, ends: Ints, link: Link, take: Take, first: int, last: int) -> None:
        """Find the common neighbours of a range of rows, block by block."""
        low, step = first, self.tables.settings.pair_block
        while low < last:
            before = int(ends[low - 1]) if low else 0
            high = min(last, max(low + 1, int(np.searchsorted(ends, before + step))))
            self._block(rows[low:high], link, take)
            low = high

    def _block(self, rows: Ints, link: Link, take: Take) -> None:
        self.limits.check()
        adjacency = adjacency_of(self.tables, link)
        index, places, counts = adjacency.expand(self.frame.positions[link.source][rows])
        targets = adjacency.targets.take(places)
        for number, other in enumerate(self._others(link)):
            checked, near = adjacency_of(self.tables, other), self.frame.positions[other.source][rows]
            hashed = hashed_rows(near)
            maybe = checked.maybe_contains(hashed.take(index) if number else hashed.repeat(counts), targets)
            index, targets = index[maybe], targets[maybe]
            held = checked.surely_contains(near[index], targets)
            index, targets = index[held], targets[held]
        if len(index):
            take(rows[index], targets)
