"""What a row of the function table says: operands, result, nulls, and how the values are computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from omnigraph.lang.values import BOOL, DATE, DATETIME, F64, I64, STRING, Scalar, ValueType
from omnigraph.records import dataclass

UNITS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""The units of time, from the longest to the shortest."""
CLOCK_UNITS: Final = frozenset({"hour", "minute", "second"})
"""The units that a Date does not have."""
DURATIONS: Final[Mapping[str, str]] = {word: unit for unit in UNITS for word in (unit, f"{unit}s")}
"""The words behind the number of a duration, with their units."""


class Kind(StrEnum):
    """What an operand may be; the value is how messages and the reference page name it."""

    TEXT = "String"
    PATTERN = "String literal or parameter"
    INTEGER = "integer"
    NUMBER = "number"
    BOOL = "Bool"
    DATE = "Date"
    MOMENT = "Date or DateTime"
    LIST = "list"
    PLAIN = "value"
    NUMERAL = "String, number or Bool"
    CALENDAR = "String, Date or DateTime"
    UNIT = "unit"
    """One of `UNITS`, written as a literal."""


CONSTANTS: Final = frozenset({Kind.PATTERN, Kind.UNIT})
"""The kinds whose operands have to be the same for all rows."""

_NUMERALS: Final = (Scalar.STRING, Scalar.BOOL)
_CALENDAR: Final = (Scalar.STRING, Scalar.DATE, Scalar.DATETIME)
_ACCEPTED: Final[Mapping[Kind, Callable[[ValueType], bool]]] = {
    Kind.TEXT: lambda found: found.is_string,
    Kind.PATTERN: lambda found: found.is_string,
    Kind.UNIT: lambda found: found.is_string,
    Kind.INTEGER: lambda found: found.is_integer,
    Kind.NUMBER: lambda found: found.is_numeric,
    Kind.BOOL: lambda found: found.is_plain and found.scalar is Scalar.BOOL,
    Kind.DATE: lambda found: found.is_plain and found.scalar is Scalar.DATE,
    Kind.MOMENT: lambda found: found.is_plain and found.scalar in (Scalar.DATE, Scalar.DATETIME),
    Kind.LIST: lambda found: found.is_list,
    Kind.NUMERAL: lambda found: found.is_numeric or (found.is_plain and found.scalar in _NUMERALS),
    Kind.CALENDAR: lambda found: found.is_plain and found.scalar in _CALENDAR,
    Kind.PLAIN: lambda found: found.is_plain and not found.is_blob,
}


def accepts(kind: Kind, found: ValueType) -> bool:
    """May an operand of that kind have this type?"""
    return _ACCEPTED[kind](found)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One operand of a function."""

    name: str
    kind: Kind
    optional: bool = False
    many: bool = False
    """May it be repeated? Only the last one."""


Result = Callable[[Sequence[ValueType]], ValueType]
Compute = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Function:
    """A row of the table.

    ``compute`` gets the module of kernels and then the operands: Arrow arrays, Arrow scalars for what is the same
    in all rows, and plain values for operands of a constant kind. Where an operand is null the result is null.
    A function without ``compute`` has a rule of its own for nulls, and the engine evaluates it itself.
    """

    name: str
    group: str
    parameters: tuple[Parameter, ...]
    result: Result
    meaning: str
    example: tuple[str, str]
    """A call, and what it gives, both as a query writes them."""
    compute: Compute | None
    fails: bool = False
    """Are there values for which it has no result?"""
    operator: bool = False
    """Is it written between its operands, and not called by its name?"""

    @property
    def least(self) -> int:
        """The smallest number of operands."""
        return sum(not one.optional for one in self.parameters)

    @property
    def most(self) -> int | None:
        """The largest number of operands; None if there is none."""
        return None if self.parameters and self.parameters[-1].many else len(self.parameters)

    def parameter(self, index: int) -> Parameter:
        """The parameter of an operand."""
        return self.parameters[min(index, len(self.parameters) - 1)]

    @property
    def signature(self) -> str:
        """The function as the reference page writes it."""
        shown = [
            f"[{one.name}: {one.kind}]" if one.optional else f"{one.name}: {one.kind}{', …' if one.many else ''}"
            for one in self.parameters
        ]
        return f"{self.name}({', '.join(shown)})"


def always(result: ValueType) -> Result:
    """The result has one type; it is null where an operand is."""
    return lambda types: result.or_null() if any(one.nullable for one in types) else result


def numeric(types: Sequence[ValueType]) -> ValueType:
    """Integers give an I64, anything with a float an F64."""
    result = I64 if all(one.is_integer for one in types) else F64
    return result.or_null() if any(one.nullable for one in types) else result


def like_the_last(types: Sequence[ValueType]) -> ValueType:
    """The type of the last operand."""
    return types[-1].or_null() if any(one.nullable for one in types) else types[-1]


def like_the_first(types: Sequence[ValueType]) -> ValueType:
    """The type of the first operand."""
    return types[0].or_null() if any(one.nullable for one in types) else types[0]


def an_item(types: Sequence[ValueType]) -> ValueType:
    """An item of the list, or null: the list may be empty."""
    return types[0].item.or_null()


def first_present(types: Sequence[ValueType]) -> ValueType:
    """The type that the operands share; null only if all of them may be."""
    shared = unified(types)
    assert shared is not None  # noqa: S101  the checker refuses operands without a shared type
    return shared.or_null() if all(one.nullable for one in types) else shared.required()


def first_or_null(types: Sequence[ValueType]) -> ValueType:
    """The first operand's type; it may always be null."""
    return without_members(types[0]).or_null()


def unified(types: Sequence[ValueType]) -> ValueType | None:
    """The type that holds the values of all of these; None if there is none."""
    shapes = {(one.scalar, one.is_list, one.dimension) for one in types}
    nullable = any(one.nullable for one in types)
    if len(shapes) == 1:
        shared = without_members(types[0])
    elif all(one.is_numeric for one in types):
        shared = I64 if all(one.is_integer for one in types) else F64
    else:
        return None
    return shared.or_null() if nullable else shared.required()


def without_members(found: ValueType) -> ValueType:
    """The type; of an enum a String."""
    return found if found.members is None else ValueType(found.scalar, nullable=found.nullable)


TEXT: Final = always(STRING)
INTEGER: Final = always(I64)
FLOAT: Final = always(F64)
TRUTH: Final = always(BOOL)
A_DATE: Final = always(DATE)
A_DATETIME: Final = always(DATETIME)
TEXTS: Final = always(ValueType(Scalar.STRING, is_list=True))
