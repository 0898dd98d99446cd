"""The types of the two languages, and the values that fit them."""

from __future__ import annotations

import datetime as dt
import math
import re
from bisect import bisect_left
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from omnigraph.records import dataclass


class Scalar(StrEnum):
    """The scalar types, by the names users write."""

    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE = "Date"
    DATETIME = "DateTime"


INTEGERS: Final = frozenset({Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})
FLOATS: Final = frozenset({Scalar.F32, Scalar.F64})
NUMERIC: Final = INTEGERS | FLOATS
SCALAR_NAMES: Final = {scalar.value: scalar for scalar in Scalar}

INTEGER_BOUNDS: Final = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}

MAX_VECTOR: Final = 2**31 - 1

F32_MAX: Final = 3.4028235677973366e38
"""From here on a number rounds to infinity in 32 bits."""
EPOCH_DATE: Final = dt.date(1970, 1, 1)
EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
DATE_BOUNDS: Final = ((dt.date.min - EPOCH_DATE).days, (dt.date.max - EPOCH_DATE).days)
"""The first and the last date, in days after 1970-01-01: those of the years 1 and 9999."""
DATETIME_BOUNDS: Final = (DATE_BOUNDS[0] * 86_400_000, (DATE_BOUNDS[1] + 1) * 86_400_000 - 1)
"""The first and the last instant, in milliseconds after 1970."""
_SHOWN_MEMBERS: Final = 20


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a property, a parameter or an expression.

    A vector is its own thing (``dimension`` is set, ``scalar`` is F32), not a list; an enum is a String with a
    set of ``members``, sorted.
    """

    scalar: Scalar
    is_list: bool = False
    nullable: bool = False
    members: tuple[str, ...] | None = None
    dimension: int | None = None

    def __str__(self) -> str:
        """The type as messages show it: of a large enum, the first values."""
        members = self.members
        if members is not None and len(members) > _SHOWN_MEMBERS:
            members = (*members[:_SHOWN_MEMBERS], "…")
        return self._spell(members)

    def spell(self) -> str:
        """The type as a schema writes it."""
        return self._spell(self.members)

    def _spell(self, members: tuple[str, ...] | None) -> str:
        if self.dimension is not None:
            shown = f"Vector({self.dimension})"
        elif members is not None:
            shown = f"enum({', '.join(members)})"
        else:
            shown = self.scalar.value
        if self.is_list:
            shown = f"[{shown}]"
        return shown + ("?" if self.nullable else "")

    @property
    def is_vector(self) -> bool:
        return self.dimension is not None

    @property
    def is_plain(self) -> bool:
        """One value per row: neither a list nor a vector."""
        return not self.is_list and self.dimension is None

    @property
    def is_numeric(self) -> bool:
        return self.is_plain and self.scalar in NUMERIC

    @property
    def is_integer(self) -> bool:
        return self.is_plain and self.scalar in INTEGERS

    @property
    def is_string(self) -> bool:
        return self.is_plain and self.scalar is Scalar.STRING

    @property
    def is_blob(self) -> bool:
        return self.scalar is Scalar.BLOB

    def has_member(self, value: str) -> bool:
        """Is the text one of the enum's values?"""
        members = self.members or ()
        index = bisect_left(members, value)
        return index < len(members) and members[index] == value

    @property
    def item(self) -> ValueType:
        """The type of one item of a list."""
        return ValueType(self.scalar)

    def or_null(self) -> ValueType:
        """This type, nullable."""
        return self if self.nullable else replace(self, nullable=True)

    def required(self) -> ValueType:
        """This type, not nullable."""
        return replace(self, nullable=False) if self.nullable else self

    def as_json(self) -> dict[str, Any]:
        """The form in which the schema IR stores a type."""
        out: dict[str, Any] = {"scalar": self.scalar.value, "nullable": self.nullable}
        if self.is_list:
            out["list"] = True
        if self.members is not None:
            out["enum"] = list(self.members)
        if self.dimension is not None:
            out["dimension"] = self.dimension
        return out

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> ValueType:
        """The type a schema IR stored."""
        members = stored.get("enum")
        return cls(
            Scalar(stored["scalar"]),
            bool(stored.get("list", False)),
            stored["nullable"],
            tuple(members) if members is not None else None,
            stored.get("dimension"),
        )


@dataclass(frozen=True, slots=True)
class StructType:
    """The type of a whole node or edge: its fields, in order."""

    fields: tuple[tuple[str, ValueType], ...]
    nullable: bool = False


STRING: Final = ValueType(Scalar.STRING)
BOOL: Final = ValueType(Scalar.BOOL)
I64: Final = ValueType(Scalar.I64)
U64: Final = ValueType(Scalar.U64)
F64: Final = ValueType(Scalar.F64)
DATE: Final = ValueType(Scalar.DATE)
DATETIME: Final = ValueType(Scalar.DATETIME)


def vector(dimension: int) -> ValueType:
    """The type of vectors of one length."""
    return ValueType(Scalar.F32, dimension=dimension)


def compatible(left: ValueType, right: ValueType) -> bool:
    """May values of these types be compared? Same shape, and the same scalar or both numeric."""
    if left.is_vector or right.is_vector:
        return left.dimension == right.dimension and left.is_list == right.is_list
    if left.is_list != right.is_list:
        return False
    return left.scalar is right.scalar or (left.scalar in NUMERIC and right.scalar in NUMERIC)


_KINDS: Final = {
    Scalar.STRING: "string",
    Scalar.BLOB: "blob",
    Scalar.BOOL: "bool",
    Scalar.I32: "int",
    Scalar.U32: "int",
    Scalar.I64: "bigint",
    Scalar.U64: "bigint",
    Scalar.F32: "float",
    Scalar.F64: "float",
    Scalar.DATE: "date",
    Scalar.DATETIME: "datetime",
}


def describe_kind(value_type: ValueType | StructType) -> dict[str, Any]:
    """A type as tool catalogs and lint output describe it."""
    if isinstance(value_type, StructType):
        fields = [{"name": name, **describe_kind(kind)} for name, kind in value_type.fields]
        return {"kind": "struct", "fields": fields, "nullable": value_type.nullable}
    if value_type.dimension is not None:
        return {"kind": "vector", "vector_dim": value_type.dimension, "nullable": value_type.nullable}
    kind = _KINDS[value_type.scalar]
    if value_type.is_list:
        return {"kind": "list", "item_kind": kind, "nullable": value_type.nullable}
    return {"kind": kind, "nullable": value_type.nullable}


def in_range(number: float, scalar: Scalar) -> bool:
    """Does a number lie in the range of an integer type?"""
    low, high = INTEGER_BOUNDS[scalar]
    return low <= number <= high


def fitting_float(number: float, scalar: Scalar) -> float | None:
    """A number as a float of a type; None if it is not finite there."""
    try:
        found = float(number)
    except OverflowError:
        return None
    return found if abs(found) < (F32_MAX if scalar is Scalar.F32 else math.inf) else None


_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DATETIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}([Tt ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?([Zz]|[+-]\d{2}(:?\d{2})?)?)?", re.ASCII
)


def parse_date(text: str) -> dt.date:
    """A date written `YYYY-MM-DD`; ValueError says why a text is none."""
    if not _DATE.fullmatch(text):
        raise ValueError("a date is written YYYY-MM-DD")
    return dt.date.fromisoformat(text)


def parse_datetime(text: str) -> dt.datetime:
    """An ISO 8601 instant in UTC, to the millisecond; no offset means UTC, no time means midnight."""
    if not _DATETIME.fullmatch(text):
        raise ValueError("a datetime is written YYYY-MM-DDTHH:MM:SS, with an optional fraction and offset")
    iso = text.upper().replace(",", ".")
    head, dot, fraction = iso.partition(".")
    if dot:
        digits = re.match(r"\d+", fraction)
        kept = digits.group() if digits else ""
        iso = f"{head}.{kept[:3].ljust(3, '0')}{fraction[len(kept) :]}"
    return instant_of(dt.datetime.fromisoformat(iso))


def instant_of(moment: dt.datetime) -> dt.datetime:
    """A moment in UTC, to the millisecond; one without a zone is in UTC. ValueError outside the years 1 to
    9999."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    try:
        instant = aware.astimezone(dt.UTC)
    except OverflowError:
        raise ValueError("the instant lies outside the years 1 to 9999") from None
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def date_after_epoch(days: int) -> dt.date:
    """The date so many days after 1970-01-01."""
    try:
        return EPOCH_DATE + dt.timedelta(days=days)
    except OverflowError:
        raise ValueError(f"{days} days lie outside the years 1 to 9999") from None


def instant_after_epoch(milliseconds: int) -> dt.datetime:
    """The instant so many milliseconds after 1970."""
    try:
        return EPOCH + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:
        raise ValueError(f"{milliseconds} milliseconds lie outside the years 1 to 9999") from None
