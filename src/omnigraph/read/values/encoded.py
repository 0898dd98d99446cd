"""Functions of values that repeat: computed once for each value, and spread over the rows by its code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.read.values.arrays import to_arrow
from omnigraph.read.values.columns import Bools, Codes, Column, Positions, taken
from omnigraph.read.values.comparing import Series
from omnigraph.settings import ReadSettings

_PER_DAY: Final = 4
"""A function of dates is computed once for each day if there are so many rows for each day on average."""


class EncodedColumn(Column):
    """A text column made of codes; its texts are written down only if they are asked for."""

    def __init__(self, codes: Codes, settings: ReadSettings) -> None:
        self.codes = codes
        self.settings = settings
        self._searches = 0

    def __len__(self) -> int:
        return len(self.codes.codes)

    @property
    def kind(self) -> pa.DataType:
        return self.codes.dictionary.type

    @property
    def nbytes(self) -> int:
        written = vars(self)["arrow"].nbytes if "arrow" in vars(self) else 0
        return int(self.codes.nbytes + written)

    @cached_property
    def arrow(self) -> pa.Array:
        return taken(self.codes.dictionary, self.codes.codes)

    @cached_property
    def valid(self) -> Bools | None:
        """Which values there are; None if all."""
        present = np.asarray(self.codes.codes >= 0)
        return None if present.all() else present

    @cached_property
    def repeats(self) -> bool:
        """Its codes are there already."""
        return True


def once_each(series: Series, function: Callable[[Column], Column]) -> Column | None:
    """A function of a series by row, computed once for each value; None if its values do not repeat much."""
    encoded = _codes(series)
    if encoded is None:
        return None
    each = function(Column(encoded.dictionary))
    if not each.is_text:
        return Column(each.take(encoded.codes))
    # Different values may give the same text, which then has one code.
    distinct = each.codes
    codes = encoded.codes
    if not np.array_equal(distinct.codes, np.arange(len(each))):
        codes = np.append(distinct.codes, np.int32(-1))[codes]
    return EncodedColumn(Codes(codes, distinct.dictionary), series.column.settings)


def _codes(series: Series) -> Codes | None:
    column, positions = series.column, series.positions
    if pa.types.is_date32(column.kind):
        return _days(series)
    if not column.repeats:
        return None
    encoded = column.codes
    if positions is None:
        return encoded
    return Codes(np.where(positions < 0, np.int32(-1), encoded.codes[positions]), encoded.dictionary)


def _days(series: Series) -> Codes | None:
    """Dates as numbers of days behind the first day of their column, if these days are much fewer than rows."""
    bounds = series.bounds
    if bounds is None or (bounds[1] - bounds[0] + 1) * _PER_DAY > len(series):
        return None
    low, high = bounds
    codes: Positions = series.values - np.int32(low)
    valid = series.valid
    if valid is not None:
        codes = np.where(valid, codes, np.int32(-1))
    return Codes(codes, to_arrow(np.arange(low, high + 1, dtype=np.int32)).view(pa.date32()))
