"""Which type of a property may become which other one, because every value keeps its meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from omnigraph.lang.values import Scalar, ValueType

WIDER: Final = {
    Scalar.I32: frozenset({Scalar.I64, Scalar.F64}),
    Scalar.U32: frozenset({Scalar.I64, Scalar.U64, Scalar.F64}),
    Scalar.F32: frozenset({Scalar.F64}),
    Scalar.DATE: frozenset({Scalar.DATETIME}),
}
NUMBERS: Final = frozenset({Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64, Scalar.F32, Scalar.F64})
SAME_TEXT: Final = {
    Scalar.I32: frozenset({Scalar.I64}),
    Scalar.U32: frozenset({Scalar.I64, Scalar.U64}),
}
"""Those whose values are also spelled the same in ids, which a key property needs."""


def is_wider(old: ValueType, new: ValueType, *, in_key: bool) -> bool:
    """May a property of the old type get the new one? Whether either may be null does not matter."""
    old, new = old.required(), new.required()
    if old.members is not None and new.members is None and replace(old, members=None) == new:
        return True
    if replace(new, scalar=old.scalar) != old or old.is_vector or old.members is not None:
        return False
    allowed = SAME_TEXT if in_key else WIDER
    return new.scalar in allowed.get(old.scalar, ())


def is_of_one_kind(one: ValueType, other: ValueType) -> bool:
    """Can both be read as one type without a loss, or with the loss of digits only?"""
    return _plain(one) == _plain(other) or wider_of(one, other) != one or wider_of(other, one) != other


def wider_of(one: ValueType, other: ValueType) -> ValueType:
    """The type of two in which the values of both can be read; the first if there is none.

    Two branches can widen a number to different types, of which neither is wider. Those are read as F64.
    """
    plain, wide = _plain(one), _plain(other)
    if is_wider(plain, wide, in_key=False):
        return replace(other, nullable=True)
    if plain == wide or is_wider(wide, plain, in_key=False):
        return one
    float_type = replace(plain, scalar=Scalar.F64)
    if {plain.scalar, wide.scalar} <= NUMBERS and replace(wide, scalar=Scalar.F64) == float_type:
        return float_type
    return one


def _plain(value_type: ValueType) -> ValueType:
    """A type without the rule about nulls and without the values of an enum."""
    return replace(value_type.required(), members=None)


def possible(old: ValueType) -> list[str]:
    """The types that a property of this type can be changed to, as a schema writes them."""
    if old.is_vector:
        return []
    if old.members is not None:
        return [replace(old, members=None).spell(), "an enum with more values"]
    return [replace(old, scalar=wider).spell() for wider in sorted(WIDER.get(old.scalar, ()))]
