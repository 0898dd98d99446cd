"""Relations that are the same in both directions, with each pair kept once: from the node with fewer neighbours to
the one with more. Triangles are found from their corner with the fewest, among few pairs of neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from weakref import ref

import numpy as np

from omnigraph.lang.query.ir import Direction
from omnigraph.read.data.adjacency import Adjacency, from_keys, hashed_rows, packed
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.values.columns import Ints, Positions
from omnigraph.read.values.parallel import in_parallel, parts_of

_SAMPLE: Final = 64
Take = Callable[[Positions, Positions, Positions], None]
"""Takes the three corners of triangles. Called by several threads."""


class Oriented:
    """A symmetric relation without loops. Nodes are numbered by their number of neighbours, the fewest first."""

    def __init__(self, adjacency: Adjacency) -> None:
        self.made_from = ref(adjacency)
        self.settings = adjacency.settings
        self.positions = np.argsort(adjacency.degrees, kind="stable").astype(np.int32)
        ranks = np.empty(len(self.positions), dtype=np.int32)
        ranks[self.positions] = np.arange(len(ranks), dtype=np.int32)
        near, far = ranks[adjacency.owners()], ranks[adjacency.targets]
        up = near < far
        self.pairs = from_keys(packed(near[up], far[up]), len(ranks), len(ranks), adjacency.settings)
        self._behind = self.pairs.starts[1:][self.pairs.owners()] - np.arange(1, self.pairs.pairs + 1)

    @property
    def nbytes(self) -> int:
        return self.positions.nbytes + self.pairs.nbytes + self._behind.nbytes

    def looked_at(self, nodes: Positions) -> Ints:
        """For each node, by number, how many pairs of its neighbours are looked at."""
        degrees = self.pairs.degrees[nodes].astype(np.int64)
        return np.asarray(degrees * (degrees - 1) // 2)

    def triangles(self, first: int, last: int, check: Callable[[], None], take: Take) -> None:
        """All triangles whose corner with the fewest neighbours has a number in a range, each once."""
        self.pairs.prepare()
        low, high = int(self.pairs.starts[first]), int(self.pairs.starts[last])
        ends = np.cumsum(self._behind[low:high])
        size = int(ends[-1]) if len(ends) else 0
        step = self.settings.pair_block

        def work(begin: int, end: int) -> None:
            while begin < end:
                check()
                before = int(ends[begin - 1]) if begin else 0
                stop = min(end, max(begin + 1, int(np.searchsorted(ends, before + step))))
                self._block(low + begin, low + stop, take)
                begin = stop

        parts = parts_of(size, self.settings.parallel_from)
        cuts = np.searchsorted(ends, np.linspace(0, size, parts + 1)[1:-1]).tolist()
        in_parallel(work, zip([0, *cuts], [*cuts, high - low], strict=True))

    def _block(self, begin: int, end: int, take: Take) -> None:
        """Pairs of neighbours of a node, one of which is the far end of a pair in the range and the other comes
        behind it: are they connected?"""
        counts = self._behind[begin:end]
        total = int(counts.sum())
        if not total:
            return
        entries = np.arange(begin, end)
        one = np.repeat(entries, counts)
        two = np.repeat(entries + 1 - np.cumsum(counts) + counts, counts)
        two += np.arange(total)
        targets = self.pairs.targets
        near, far = targets.take(one), targets.take(two)
        maybe = self.pairs.maybe_contains(hashed_rows(near), far)
        near, far = near.take(maybe), far.take(maybe)
        held = np.flatnonzero(self.pairs.surely_contains(near, far))
        if len(held):
            owners = np.searchsorted(self.pairs.starts, one.take(maybe.take(held)), side="right") - 1
            place = self.positions.take
            take(place(owners), place(near.take(held)), place(far.take(held)))


class _Asymmetric:
    """What is kept for a relation that is not the same in both directions, or has loops."""

    nbytes = 64

    def __init__(self, adjacency: Adjacency) -> None:
        self.made_from = ref(adjacency)


def oriented(tables: GraphTables, edge_type: str, direction: Direction) -> Oriented | None:
    """The relation of an edge type with each pair once; None if it is not symmetric, or if it has loops."""
    if direction is not Direction.BOTH:
        direction = Direction.OUT
    if tables.catalog.followed(edge_type).members:
        return None
    adjacency = tables.adjacency(edge_type, direction, edges=False)

    def make(_: Oriented | _Asymmetric | None) -> Oriented | _Asymmetric:
        if not _may_be_symmetric(adjacency):
            return _Asymmetric(adjacency)
        if direction is not Direction.BOTH:
            back = tables.adjacency(edge_type, Direction.IN, edges=False)
            if not (
                np.array_equal(adjacency.starts, back.starts) and np.array_equal(adjacency.targets, back.targets)
            ):
                return _Asymmetric(adjacency)
        if bool((adjacency.owners() == adjacency.targets).any()):
            return _Asymmetric(adjacency)
        return Oriented(adjacency)

    [edges] = tables.each_edges(edge_type)
    found = tables.cache.follow(
        ((edges.placement.layout, "oriented", edge_type), direction),
        make,
        lambda known: known.made_from() is adjacency,
    )
    return found if isinstance(found, Oriented) else None


def _may_be_symmetric(adjacency: Adjacency) -> bool:
    """Is every pair of a sample there the other way round too, and none a loop?"""
    if len(adjacency) != adjacency.width or not adjacency.pairs:
        return False
    starts, targets = adjacency.starts, adjacency.targets
    for entry in np.linspace(0, adjacency.pairs - 1, _SAMPLE).astype(np.int64).tolist():
        owner, target = int(np.searchsorted(starts, entry, side="right")) - 1, int(targets[entry])
        row = targets[starts[target] : starts[target + 1]]
        place = int(np.searchsorted(row, owner))
        if owner == target or place == len(row) or int(row[place]) != owner:
            return False
    return True
