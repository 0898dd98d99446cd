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


def possible(old: ValueType) -> list[str]:
    """The types that a property of this type can be changed to, as a schema writes them."""
    if old.is_vector:
        return []
    if old.members is not None:
        return [replace(old, members=None).spell(), "an enum with more values"]
    return [replace(old, scalar=wider).spell() for wider in sorted(WIDER.get(old.scalar, ()))]
