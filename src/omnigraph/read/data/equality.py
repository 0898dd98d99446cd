"""Equal properties of two types as a relation over values: each entity has at most one value, and a value leads to
all entities that have it. So a condition such as `$a.city = $b.city` is followed as two hops are."""

from __future__ import annotations

import numpy as np

from omnigraph.lang.query.ir import Direction
from omnigraph.read.data.adjacency import Adjacency, from_keys, packed
from omnigraph.read.data.layout import Placement
from omnigraph.read.data.rows import Rows
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.values.columns import Column, Positions
from omnigraph.read.values.matching import matching_codes
from omnigraph.records import dataclass
from omnigraph.settings import READ_DEFAULTS, ReadSettings


@dataclass(frozen=True, slots=True)
class Side:
    """Properties of a node type, in the order in which they are compared with those of the other side."""

    type_name: str
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Equality:
    """Properties of two node types that have to be equal."""

    left: Side
    right: Side


@dataclass(frozen=True, slots=True)
class ValueHop:
    """The way between the entities of one side of an equality and the values."""

    equality: Equality
    side: Side


class Values(Rows):
    """The distinct values, by number."""

    def __init__(self, count: int) -> None:
        self.count = count

    def column(self, name: str) -> Column:
        raise TypeError(f"a value has no property `{name}`")


class EqualValues:
    """Which entities of either side have which value."""

    def __init__(
        self,
        equality: Equality,
        codes: tuple[Positions, Positions],
        count: int,
        placements: tuple[Placement, Placement],
        settings: ReadSettings = READ_DEFAULTS,
    ) -> None:
        self.values = Values(count)
        self._placements = placements
        self._settings = settings
        self._codes = {equality.left: codes[0], equality.right: codes[1]}
        self._made: dict[tuple[Side, Direction], Adjacency] = {}

    @property
    def nbytes(self) -> int:
        """The memory it takes, with everything derived from it so far."""
        made = list(self._made.values())  # another thread may derive something meanwhile
        return sum(codes.nbytes for codes in self._codes.values()) + sum(one.nbytes for one in made)

    def suits(self, left: Placement, right: Placement) -> bool:
        """Was it made from these rows?"""
        return self._placements[0].is_like(left) and self._placements[1].is_like(right)

    def adjacency(self, side: Side, direction: Direction) -> Adjacency:
        """From the entities of a side to their values, or from values to the entities."""
        made = self._made.get((side, direction))
        if made is None:
            made = self._values_of(side) if direction is Direction.OUT else self._entities_of(side)
            self._made[side, direction] = made
        return made

    def _values_of(self, side: Side) -> Adjacency:
        codes = self._codes[side]
        has = codes >= 0
        starts = np.zeros(len(codes) + 1, dtype=np.int64)
        np.cumsum(has, out=starts[1:])
        made = Adjacency(starts, codes[has], self.values.count, settings=self._settings)
        made.only = codes
        return made

    def _entities_of(self, side: Side) -> Adjacency:
        codes = self._codes[side]
        keys = packed(codes, np.arange(len(codes), dtype=np.int32))
        return from_keys(keys, self.values.count, len(codes), self._settings)


def equal_values(tables: GraphTables, equality: Equality) -> EqualValues:
    """The values that two types have in some properties, from the cache or made."""
    left, right = tables.nodes(equality.left.type_name), tables.nodes(equality.right.type_name)
    tables_of = ((equality.left, left), (equality.right, right))
    stored = [tuple(table.placement.columns.get(name) for name in side.properties) for side, table in tables_of]

    def make(_: EqualValues | None) -> EqualValues:
        names = zip(equality.left.properties, equality.right.properties, strict=True)
        *codes, count = matching_codes([(left.column(one), right.column(other)) for one, other in names])
        for numbers, table in zip(codes, (left, right), strict=True):
            if table.live is not None:
                numbers[~table.live] = -1
        placements = left.placement, right.placement
        return EqualValues(equality, (codes[0], codes[1]), count, placements, tables.settings)

    return tables.cache.follow(
        ((left.placement.layout, right.placement.layout, "equal", equality), *stored),
        make,
        lambda known: known.suits(left.placement, right.placement),
    )
