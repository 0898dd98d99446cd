"""The types of columns, told by their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

NOTHING: Final = ""
"""The type of a column that cannot be loaded."""
_SHORTEST_VECTOR: Final = 8
"""Lists of so many numbers, all of one length, are taken for vectors."""
_FEW: Final = 8
"""So many different texts in many rows may be the values of an enum."""
_MANY: Final = 50
_PATTERNS: Final = (
    ("Bool", r"^(?i:true|false)$"),
    ("I64", r"^-?(0|[1-9][0-9]{0,17})$"),
    ("F64", r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"),
)
_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_DATETIME: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?$"
)
_ZONE: Final = r"(Z|[+-][0-9]{2}:?[0-9]{2})$"


@dataclass(frozen=True, slots=True)
class Guess:
    """The type that a column seems to have, and what a person might want to know about it."""

    type: str
    is_nullable: bool
    note: str | None = None

    @property
    def spelled(self) -> str:
        return f"{self.type}?" if self.is_nullable else self.type

    @property
    def can_be_key(self) -> bool:
        return not self.is_nullable and self.type in ("String", "I64", "Date", "DateTime")


def guess_type(column: pa.ChunkedArray, *, is_text: bool) -> Guess:
    """The type of a column. Texts of a file that types its values stay texts, unless all of them are dates."""
    is_nullable = bool(column.null_count)
    if column.null_count == len(column):
        return Guess("String", True, "no row has a value")
    kind = column.type
    if pa.types.is_dictionary(kind):
        return guess_type(column.cast(kind.value_type), is_text=is_text)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _of_texts(column.cast(pa.string()), is_nullable, is_text)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _of_lists(column, is_nullable)
    plain = _plain(kind)
    return _without_type(kind, is_nullable) if plain is None else Guess(plain, is_nullable)


def _without_type(kind: pa.DataType, is_nullable: bool) -> Guess:
    return Guess(NOTHING, is_nullable, f"{str(kind).replace(chr(10), ' ')} has no type here, and is left out")


def _plain(kind: pa.DataType) -> str | None:
    if pa.types.is_boolean(kind):
        return "Bool"
    if pa.types.is_uint64(kind):
        return "U64"
    if pa.types.is_integer(kind):
        return "I64" if kind.bit_width == 64 or pa.types.is_uint32(kind) else "I32"
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        return "F32"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "F64"
    if pa.types.is_date(kind):
        return "Date"
    if pa.types.is_timestamp(kind):
        return "DateTime"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "Blob"
    return None


def _of_texts(column: pa.ChunkedArray, is_nullable: bool, is_text: bool) -> Guess:
    values = column.drop_null()
    for name, pattern in (*(_PATTERNS if is_text else ()), ("Date", _DATE), ("DateTime", _DATETIME)):
        if pc.all(pc.match_substring_regex(values, pattern)).as_py() and (name != "Date" or _are_days(values)):
            return Guess(name, is_nullable, _no_zone(values) if name == "DateTime" else None)
    different = pc.unique(values)
    if len(values) >= _MANY and 1 < len(different) <= _FEW:
        shown = ", ".join(sorted(different.to_pylist()))
        if len(shown) <= 100 and all(
            text and text.replace("-", "_").isidentifier() for text in different.to_pylist()
        ):
            return Guess("String", is_nullable, f"perhaps enum({shown})")
    return Guess("String", is_nullable)


def _are_days(values: pa.ChunkedArray) -> bool:
    try:
        return values.cast(pa.date32()) is not None
    except pa.ArrowInvalid:
        return False


def _no_zone(values: pa.ChunkedArray) -> str | None:
    is_known = pc.all(pc.match_substring_regex(values, _ZONE)).as_py()
    return None if is_known else "times without a zone are taken for UTC"


def _of_lists(column: pa.ChunkedArray, is_nullable: bool) -> Guess:
    values = column.drop_null()
    items = pc.list_flatten(values)
    lengths = pc.unique(pc.list_value_length(values))
    is_numeric = pa.types.is_floating(items.type)
    if is_numeric and len(lengths) == 1 and lengths[0].as_py() >= _SHORTEST_VECTOR:
        return Guess(f"Vector({lengths[0].as_py()})", is_nullable)
    if not len(items):
        return Guess("[String]", is_nullable, "all lists are empty")
    item = guess_type(items if isinstance(items, pa.ChunkedArray) else pa.chunked_array([items]), is_text=False)
    if item.type == NOTHING or item.type.startswith(("[", "Vector", "Blob")):
        return _without_type(column.type, is_nullable)
    return Guess(f"[{item.type}]", is_nullable)
