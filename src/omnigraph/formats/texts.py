"""Cells that are texts, as those of CSV files, into typed columns; errors name the cell.

Arrow converts a column at once if all its cells are plain. If not, each distinct text is read by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.formats.cells import RowErrors, parse_texts
from omnigraph.formats.columns import column
from omnigraph.formats.dialect import Dialect
from omnigraph.lang.schema.catalog import EntityType, Property
from omnigraph.lang.values import FLOATS, INTEGERS, Scalar, in_range, parse_date, parse_datetime

_TRUE: Final = frozenset({"true", "t", "yes", "y", "1"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "0"})
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LONGEST_SHOWN: Final = 40
_HOURS: Final = (len("YYYY-MM-DDT"), len("YYYY-MM-DDTHH:"))
_MOMENTS: Final = (pa.timestamp("us"), pa.timestamp("us", tz="UTC"))


def plain_type(entity: EntityType, name: str) -> pa.DataType:
    """The type with which Arrow may read the cells of a column: that of numbers and days, else text."""
    prop = entity.properties.get(name)
    if prop is None or not prop.type.is_plain or prop.type.is_blob:
        return pa.string()
    scalar = prop.type.scalar
    if scalar in FLOATS:
        return pa.float64()
    return column(name, prop.type).type if scalar in INTEGERS or scalar is Scalar.DATE else pa.string()


def typed_batch(
    entity: EntityType, cells: Mapping[str, pa.Array], dialect: Dialect, errors: RowErrors
) -> pa.RecordBatch:
    """Columns of texts as columns of the types that the properties have; texts that do not fit become null.

    Columns that have such a type already stay as they are.
    """
    arrays = {
        name: texts
        if (prop := entity.properties.get(name)) is None or not pa.types.is_string(texts.type)
        else _typed(entity, prop, texts, dialect, errors)
        for name, texts in cells.items()
    }
    return pa.RecordBatch.from_pydict(arrays)


def _typed(entity: EntityType, prop: Property, texts: pa.Array, dialect: Dialect, errors: RowErrors) -> pa.Array:
    wanted = prop.type
    if wanted.is_blob or (wanted.is_plain and wanted.scalar is Scalar.STRING):
        return texts
    given = _without_blanks(texts)
    if given.null_count == len(given):
        return pa.nulls(len(given))
    stored = column(prop.name, wanted).type
    if wanted.is_plain:
        fast, parse = _fast_scalars(given, wanted.scalar, stored), _parser(wanted.scalar)
    else:
        stored = pa.list_(stored.value_type)
        fast = _fast_lists(given, wanted.scalar, stored, dialect)
        parse = partial(_parse_list, wanted.scalar, dialect.list_separator)
    if fast is not None:
        return fast
    parsed, reasons = parse_texts(given, parse, stored)
    for position, reason in reasons.items():
        errors.add([position], f"{entity.name}.{prop.name} is {wanted}: {reason}")
    return parsed


def _without_blanks(texts: pa.Array) -> pa.Array:
    """The texts with null for blank ones, as only texts can be empty."""
    blank = pc.equal(pc.utf8_trim_whitespace(texts), "")
    return pc.if_else(blank, pa.scalar(None, pa.string()), texts) if pc.any(blank).as_py() else texts


def _fast_scalars(texts: pa.Array, scalar: Scalar, stored: pa.DataType) -> pa.Array | None:
    """The values, if Arrow can read all texts for sure."""
    if scalar is Scalar.BOOL or (scalar in INTEGERS and _has_hexadecimal(texts)):
        return None
    if scalar is Scalar.DATETIME and not _have_minutes(texts):
        return None
    targets = _MOMENTS if scalar is Scalar.DATETIME else (pa.float64() if scalar in FLOATS else stored,)
    for target in targets:
        try:
            return texts.cast(target)
        except pa.ArrowInvalid:
            continue
    return None


def _has_hexadecimal(texts: pa.Array) -> bool:
    """Is a number among the texts written as 0x10, which Arrow reads, and nothing else of ours?"""
    return any(pc.any(pc.match_substring(texts, mark)).as_py() for mark in ("0x", "0X"))


def _have_minutes(texts: pa.Array) -> bool:
    """Has every time of day its minutes? Arrow does without them."""
    hours = pc.utf8_slice_codeunits(texts, *_HOURS)
    return bool(pc.all(pc.or_(pc.equal(hours, ""), pc.ends_with(hours, ":"))).as_py())


def _fast_lists(texts: pa.Array, scalar: Scalar, stored: pa.DataType, dialect: Dialect) -> pa.Array | None:
    """Lists of numbers, if all are written in the same way and Arrow can read all items for sure."""
    if scalar not in FLOATS and scalar not in INTEGERS:
        return None
    separator, opened = dialect.list_separator, pc.starts_with(texts, "[")
    if pc.any(opened).as_py():
        if not pc.all(pc.and_(opened, pc.ends_with(texts, "]"))).as_py():
            return None
        separator, texts = ",", pc.utf8_slice_codeunits(texts, 1, -1)
    parts = pc.split_pattern(texts, separator)
    written = pc.utf8_trim_whitespace(parts.values)
    if scalar in INTEGERS and _has_hexadecimal(written):
        return None
    try:
        items = written.cast(pa.float64() if scalar in FLOATS else stored.value_type)
    except pa.ArrowInvalid:
        return None
    return pa.ListArray.from_arrays(parts.offsets, items, mask=parts.is_null())


def _parser(scalar: Scalar) -> Callable[[str], Any]:
    """What reads one text."""
    if scalar in INTEGERS:
        return partial(_parse_integer, scalar)
    if scalar in FLOATS:
        return partial(_parse_float, scalar)
    parsers: dict[Scalar, Callable[[str], Any]] = {
        Scalar.BOOL: _parse_bool,
        Scalar.DATE: lambda text: _parse_moment(parse_date, text, text.strip()),
        Scalar.DATETIME: lambda text: _parse_moment(parse_datetime, text, text.strip().replace(" ", "T", 1)),
    }
    return parsers.get(scalar, str)


def _parse_integer(scalar: Scalar, text: str) -> int:
    bare = text.strip()
    if not _INTEGER.fullmatch(bare):
        raise ValueError(f"{_shown(text)} is not an integer")
    if len(bare) > _LONGEST_SHOWN or not in_range(int(bare), scalar):
        raise ValueError(f"{_shown(text)} exceeds {scalar} range")
    return int(bare)


def _parse_float(scalar: Scalar, text: str) -> float:
    bare = text.strip()
    if not _NUMBER.fullmatch(bare):
        raise ValueError(f"{_shown(text)} is not a number")
    number = float(bare)
    if not np.isfinite(np.float32(number) if scalar is Scalar.F32 else number):
        raise ValueError(f"{_shown(text)} exceeds {scalar} range")
    return number


def _parse_bool(text: str) -> bool:
    folded = text.strip().lower()
    if folded in _TRUE or folded in _FALSE:
        return folded in _TRUE
    raise ValueError(f"{_shown(text)} is neither true nor false")


def _parse_moment(parse: Callable[[str], Any], text: str, bare: str) -> Any:
    try:
        return parse(bare)
    except ValueError as error:
        raise ValueError(f"{_shown(text)} does not fit: {error}") from None


def _parse_list(scalar: Scalar, separator: str, text: str) -> list[Any]:
    """A list of JSON, or items with a separator between them. Numbers in brackets are written as in cells."""
    bare, parse = text.strip(), _parser(scalar)
    if not bare.startswith("["):
        return [parse(item.strip()) for item in bare.split(separator)]
    try:
        items = json.loads(bare)
    except (ValueError, RecursionError):
        try:
            return _bracketed(scalar, bare)
        except ValueError:
            raise ValueError(f"{_shown(text)} is not a list of JSON") from None
    if any(item is None or isinstance(item, list | dict) for item in items):
        raise ValueError(f"an item of {_shown(text)} does not fit")
    return [parse(item if isinstance(item, str) else json.dumps(item)) for item in items]


def _bracketed(scalar: Scalar, text: str) -> list[Any]:
    """The numbers of a list that is not JSON only because of how they are written, as `[01, .5]`."""
    if not text.endswith("]") or (scalar not in FLOATS and scalar not in INTEGERS):
        raise ValueError(text)
    parse = _parser(scalar)
    return [parse(item.strip()) for item in text[1:-1].split(",")]


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…")
