"""A column of a table in memory, in the forms that vectorised work needs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.values.arrays import to_arrow
from omnigraph.settings import READ_DEFAULTS, ReadSettings

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int32]

_LARGEST: Final = 2**31 - 2**20
"""How many bytes of text 32-bit offsets reach, with room to spare."""

_FEW_CODES: Final = 1 << 16
"""A dictionary of up to so many values is searched for those of new rows; a larger one is made again."""
_FEW_ROWS: Final = 1_000
"""Up to so many new rows are put into the sorted order of a column; for more it is sorted again."""


_DERIVED: Final = ("valid", "order", "ascending", "codes")


class Column:
    """The values of one property by position: an Arrow array, and forms of it that are derived on first use."""

    def __init__(self, arrow: pa.Array, settings: ReadSettings = READ_DEFAULTS) -> None:
        self.arrow = arrow
        self.settings = settings
        self._searches = 0

    @classmethod
    def of(
        cls, chunks: pa.ChunkedArray, settings: ReadSettings = READ_DEFAULTS, *, largest: int = _LARGEST
    ) -> Column:
        """The column in one piece; more text than the ``largest`` number of bytes gets wide offsets."""
        if pa.types.is_string(chunks.type) and chunks.nbytes > largest:
            chunks = chunks.cast(pa.large_string())
        arrow = chunks.combine_chunks()
        if isinstance(arrow, pa.ChunkedArray):
            arrow = arrow.chunk(0) if arrow.num_chunks else pa.array([], chunks.type)
        return cls(arrow, settings)

    def __len__(self) -> int:
        return len(self.arrow)

    @property
    def nbytes(self) -> int:
        """The memory it takes, with everything derived from it so far."""
        derived = vars(self)
        size: int = self.arrow.nbytes
        size += sum(derived[name].nbytes for name in _DERIVED if derived.get(name) is not None)
        if "values" in derived and (self.arrow.null_count or pa.types.is_boolean(self.arrow.type)):
            size += self.values.nbytes
        return size

    @property
    def kind(self) -> pa.DataType:
        return self.arrow.type

    @property
    def is_text(self) -> bool:
        return bool(pa.types.is_string(self.kind) or pa.types.is_large_string(self.kind))

    @property
    def is_whole_number(self) -> bool:
        """Are the values integers, days or milliseconds?"""
        kind = self.kind
        return bool(pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind))

    @cached_property
    def valid(self) -> Bools | None:
        """Which values there are; None if all."""
        if not self.arrow.null_count:
            return None
        return np.asarray(pc.is_valid(self.arrow).to_numpy(zero_copy_only=False), dtype=np.bool_)

    @cached_property
    def values(self) -> Array:
        """Numbers, truth values, days and milliseconds as a NumPy array; 0 where there is no value."""
        return numbers(self.arrow)

    @cached_property
    def bounds(self) -> tuple[int, int] | None:
        """The least and the most of integers, days or milliseconds; None if there are none."""
        if not self.is_whole_number or self.arrow.null_count == len(self):
            return None
        there = self.values if self.valid is None else self.values[self.valid]
        return int(there.min()), int(there.max())

    @cached_property
    def codes(self) -> Codes:
        """The values as codes into a dictionary, the same for equal values."""
        if pa.types.is_list(self.arrow.type) or pa.types.is_fixed_size_list(self.arrow.type):
            return _numbered(self.arrow)
        arrow = self.arrow
        if pa.types.is_floating(arrow.type):
            arrow = pc.add(arrow, pa.scalar(0, arrow.type))  # makes 0.0 of -0.0, which is the same number
        encoded = pc.dictionary_encode(arrow)
        return Codes(filled(encoded.indices, -1).astype(np.int32, copy=False), encoded.dictionary)

    @cached_property
    def repeats(self) -> bool:
        """Is it a text column with few distinct values, so that codes pay?"""
        size = self.settings.encode_from
        if len(self) < size or not self.is_text:
            return False
        return int(pc.count_distinct(self.arrow.slice(0, size)).as_py()) * 4 < size

    @cached_property
    def order(self) -> Positions:
        """Positions by ascending value, for looking up single values."""
        return np.asarray(pc.sort_indices(self.arrow).to_numpy(), dtype=np.int32)

    @cached_property
    def ascending(self) -> Array:
        """The numbers in this order, without those that are null."""
        return self.values[self.order[: len(self) - self.arrow.null_count]]

    @property
    def is_ordered(self) -> bool:
        """Are values found by bisection?"""
        return "order" in vars(self)

    def places_of(self, value: str | int) -> Positions | None:
        """The positions of a text or an integer, by bisection; None as long as there were too few searches for
        sorting to pay: it takes as long as some dozens of passes over the column."""
        self._searches += 1
        if len(self) < self.settings.order_from:
            return None
        if not self.is_ordered and self._searches < self.settings.order_after:
            return None
        if isinstance(value, str):
            low = bisect_left(_InOrder(self), value.encode())
            return self.order[low : bisect_right(_InOrder(self), value.encode(), lo=low)]
        least, most = bounds_of(self.values.dtype)
        if not least <= value <= most:
            return self.order[:0]
        wanted = self.values.dtype.type(value)
        return self.order[self.ascending.searchsorted(wanted) : self.ascending.searchsorted(wanted, "right")]

    def take(self, positions: Array) -> pa.Array:
        """The values at positions; null where the position is negative."""
        return taken(self.arrow, positions)

    def first(self, count: int) -> Column:
        """The column of the first so many rows."""
        if count == len(self):
            return self
        part = Column(self.arrow.slice(0, count), self.settings)
        part._searches = self._searches
        known = dict(vars(self))
        for name in ("valid", "values"):
            if known.get(name) is not None:
                vars(part)[name] = known[name][:count]
        if "repeats" in known:
            part.repeats = known["repeats"]
        if "codes" in known:
            part.codes = Codes(known["codes"].codes[:count], known["codes"].dictionary)
        if "order" in known:
            part.order = known["order"][known["order"] < count]
        return part

    def followed_by(self, rows: pa.Array) -> Column:
        """The column with more rows behind its own; what was derived is carried on where that is less work."""
        longer = Column(joined(self.arrow, rows), self.settings)
        longer._searches = self._searches
        known, added = dict(vars(self)), Column(rows)
        if "repeats" in known and len(self) >= self.settings.encode_from:
            longer.repeats = known["repeats"]
        if known.get("valid") is not None:
            valid = np.ones(len(rows), dtype=np.bool_) if added.valid is None else added.valid
            longer.valid = np.concatenate([known["valid"], valid])
        if "values" in known and (longer.arrow.null_count or pa.types.is_boolean(rows.type)):
            longer.values = np.concatenate([known["values"], added.values])
        small = len(known["codes"].dictionary) <= _FEW_CODES if "codes" in known else False
        if small and not pa.types.is_nested(rows.type):
            longer.codes = known["codes"].followed_by(rows)
        if "order" in known and (self.is_text or self.is_whole_number) and len(rows) <= _FEW_ROWS:
            longer.order = self._order_with(added)
        return longer

    def _order_with(self, added: Column) -> Positions:
        """The positions by ascending value, those of more rows among them, which lie behind the column's own."""
        count = len(added) - added.arrow.null_count
        places: Sequence[int] | Ints
        if self.is_text:
            inorder = _InOrder(added)
            places = [bisect_right(_InOrder(self), inorder[number]) for number in range(count)]
        else:
            places = self.ascending.searchsorted(added.ascending.astype(self.values.dtype, copy=False), "right")
        order = np.insert(self.order, places, added.order[:count] + np.int32(len(self)))
        return np.concatenate([order, added.order[count:] + np.int32(len(self))])


@cache
def bounds_of(kind: np.dtype[Any]) -> tuple[int, int]:
    """The least and the most that a type of integers holds."""
    bounds = np.iinfo(kind)
    return int(bounds.min), int(bounds.max)


class _InOrder(Sequence[bytes]):
    """The texts of a column by ascending value, as bytes, which is how they are ordered."""

    def __init__(self, column: Column) -> None:
        self._column = column
        self._count = len(column) - int(column.arrow.null_count)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        return self._column.arrow[int(self._column.order[index])].as_py().encode()


class Codes:
    """Values as numbers into a dictionary; -1 is null."""

    def __init__(self, codes: Positions, dictionary: pa.Array) -> None:
        self.codes = codes
        self.dictionary = dictionary

    @property
    def nbytes(self) -> int:
        ranks = self.ranks.nbytes if "ranks" in vars(self) else 0
        return int(self.codes.nbytes + self.dictionary.nbytes + ranks)

    def followed_by(self, rows: pa.Array) -> Codes:
        """The codes with those of more rows; new values come behind in the dictionary."""
        added = Column(rows).codes
        found = filled(pc.index_in(added.dictionary, value_set=self.dictionary), -1).astype(np.int32)
        fresh = np.flatnonzero(found < 0)
        found[fresh] = np.arange(len(self.dictionary), len(self.dictionary) + len(fresh))
        translated = np.append(found, np.int32(-1))[added.codes].astype(np.int32)
        dictionary = self.dictionary
        if len(fresh):
            dictionary = pa.concat_arrays([dictionary, added.dictionary.take(to_arrow(fresh))])
        longer = Codes(np.concatenate([self.codes, translated]), dictionary)
        if not len(fresh) and "ranks" in vars(self):
            longer.ranks = self.ranks
        return longer

    @cached_property
    def ranks(self) -> Positions:
        """For each code its place among the sorted values."""
        ranks = np.empty(len(self.dictionary), dtype=np.int32)
        ranks[np.asarray(pc.sort_indices(self.dictionary).to_numpy())] = np.arange(len(ranks), dtype=np.int32)
        return ranks


def _numbered(lists: pa.Array) -> Codes:
    """The codes of lists, by Python's hash: Arrow has none for them."""
    known: dict[tuple[object, ...], int] = {}
    codes = np.full(len(lists), -1, dtype=np.int32)
    for index, items in enumerate(lists.to_pylist()):
        if items is not None:
            codes[index] = known.setdefault(tuple(items), len(known))
    return Codes(codes, pa.array(list(map(list, known)), lists.type))


def joined(arrow: pa.Array, rows: pa.Array) -> pa.Array:
    """One array behind another; offsets become wide if the texts need it."""
    kinds = {arrow.type, rows.type}
    if pa.large_string() in kinds or (pa.string() in kinds and arrow.nbytes + rows.nbytes > _LARGEST):
        arrow, rows = arrow.cast(pa.large_string()), rows.cast(pa.large_string())
    return pa.concat_arrays([arrow, rows])


def taken(arrow: pa.Array, positions: Array) -> pa.Array:
    """The values at positions; null where the position is negative."""
    if len(positions) and int(positions.min()) < 0:
        return arrow.take(to_arrow(positions, positions < 0))
    return arrow.take(to_arrow(positions))


def distinct_numbers(numbers: Ints) -> Ints:
    """The distinct ones in order; the array itself is sorted. NumPy's own function takes ten times as long."""
    numbers.sort()
    if not len(numbers):
        return numbers
    keep = np.empty(len(numbers), dtype=np.bool_)
    keep[0] = True
    np.not_equal(numbers[1:], numbers[:-1], out=keep[1:])
    return numbers if keep.all() else numbers[keep]


def filled(arrow: pa.Array, value: int) -> Array:
    """Integers as NumPy, with something in place of nulls."""
    if arrow.null_count:
        arrow = pc.fill_null(arrow, value)
    return np.asarray(arrow.to_numpy(zero_copy_only=False))


def numbers(arrow: pa.Array) -> Array:
    """The numbers behind an array of numbers, truth values, dates or instants; 0 where there is none."""
    kind = arrow.type
    if pa.types.is_boolean(kind):
        whole = pc.fill_null(arrow, False) if arrow.null_count else arrow
        return np.asarray(whole.to_numpy(zero_copy_only=False), dtype=np.bool_)
    if pa.types.is_date32(kind):
        arrow = arrow.view(pa.int32())
    elif pa.types.is_timestamp(kind):
        arrow = arrow.view(pa.int64())
    if arrow.null_count:
        arrow = pc.fill_null(arrow, pa.scalar(0, arrow.type))
    return np.asarray(arrow.to_numpy(zero_copy_only=False))
