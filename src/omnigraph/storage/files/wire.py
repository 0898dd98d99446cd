"""Protobuf messages as they are stored, field by field, without knowing their definitions.

Lance keeps its schemas and versions as such messages. Its Python interface cannot change them, so the few fields
that have to be changed are edited in the stored form; every other byte stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5
_SIZES: Final = {FIXED64: 8, FIXED32: 4}
_LONGEST: Final = 10
_REMEMBERED: Final = 1024

Message = tuple[tuple[int, int | bytes], ...]
"""A message: field numbers and values. Fields that are zero or empty are left out, as protobuf does."""


def read_fields(stored: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, in stored order: numbers and values; ValueError if it is no message."""
    for number, value, _, _ in placed_fields(stored):
        yield number, value


def placed_fields(stored: bytes) -> Iterator[tuple[int, int | bytes, int, int]]:
    """The fields of a message with the place of each: its number, its value, where it starts and where it ends."""
    place, end = 0, len(stored)
    while place < end:
        start = place
        tag = stored[place]
        if tag < 128:
            place += 1
        else:
            tag, place = _read_varint(stored, place)
        kind, value = tag & 7, 0
        if kind in (VARINT, BYTES):
            value, place = _read_varint(stored, place)
        size = 0 if kind == VARINT else value if kind == BYTES else _SIZES.get(kind, -1)
        if size < 0 or not tag >> 3:
            raise ValueError(f"field {tag >> 3} has the wire type {kind}, which is not known")
        if place + size > end:
            raise ValueError(f"field {tag >> 3} ends after its message")
        yield tag >> 3, value if kind == VARINT else stored[place : place + size], start, place + size
        place += size


def encode_fields(message: Iterable[tuple[int, int | bytes]]) -> bytes:
    """A message in its stored form."""
    return b"".join([encode_field(number, value) for number, value in message])


def encode_field(number: int, value: int | bytes) -> bytes:
    """One field of a message: a number as a varint, anything else with its length."""
    if isinstance(value, int):
        return _varint(number << 3 | VARINT) + _varint(value)
    return _varint(number << 3 | BYTES) + _varint(len(value)) + value


def encode_packed(values: Iterable[int]) -> bytes:
    """Several numbers as the value of one field; negative ones as 64 bits have them."""
    return b"".join([_varint(value & 0xFFFFFFFFFFFFFFFF) for value in values])


@lru_cache(_REMEMBERED)
def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(stored: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    for byte in stored[place : place + _LONGEST]:
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
    raise ValueError("a number ends too late")
