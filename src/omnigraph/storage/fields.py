"""The columns of a Lance table as Lance stores them: each with a number that its data files know it by.

Lance's Python interface makes schemas only with fresh numbers. A schema for existing files has to keep theirs, so
the stored form of its fields, small protobuf messages, is edited here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from lance.schema import LanceSchema

_NAME: Final = 2
_ID: Final = 3
_PARENT: Final = 4
_NULLABLE: Final = 6
_NO_PARENT: Final = 2**64 - 1
_VARINT: Final = 0
_BYTES: Final = 2

Message = tuple[tuple[int, int | bytes], ...]
"""A protobuf message: field numbers and values. Fields that are zero or empty are left out, as protobuf does."""


@dataclass(frozen=True, slots=True)
class FieldTree:
    """A column with the fields inside it: the items of a list, the parts of a blob."""

    messages: tuple[Message, ...]

    @property
    def name(self) -> str:
        name = dict(self.messages[0])[_NAME]
        assert isinstance(name, bytes)  # noqa: S101  it is one in every release of Lance
        return name.decode()

    @property
    def ids(self) -> list[int]:
        """The numbers in it."""
        return [_number(message, _ID) for message in self.messages]

    @property
    def nullable(self) -> bool:
        """Can the column have nulls?"""
        return bool(_number(self.messages[0], _NULLABLE))

    def renamed(self, name: str, *, nullable: bool) -> FieldTree:
        """The same column with another name, and with or without nulls."""
        top = _with(_with(self.messages[0], _NAME, name.encode()), _NULLABLE, int(nullable))
        return FieldTree((top, *self.messages[1:]))

    def numbered_from(self, first: int) -> FieldTree:
        """A column that was numbered from zero, with numbers from ``first`` on."""
        start = _number(self.messages[0], _ID)
        moved = []
        for message in self.messages:
            message = _with(message, _ID, _number(message, _ID) - start + first)
            if _number(message, _PARENT) != _NO_PARENT:
                message = _with(message, _PARENT, _number(message, _PARENT) - start + first)
            moved.append(message)
        return FieldTree(tuple(moved))


def field_trees(schema: LanceSchema) -> list[FieldTree]:
    """The columns of a schema."""
    _, stored = _stored(schema)
    trees: list[list[Message]] = []
    for message in (tuple(message_fields(each)) for each in stored):
        if _number(message, _PARENT) == _NO_PARENT:
            trees.append([])
        trees[-1].append(message)
    return [FieldTree(tuple(tree)) for tree in trees]


def new_field_trees(schema: pa.Schema, first: int) -> list[FieldTree]:
    """Columns that no table has yet, with numbers from ``first`` on."""
    trees = []
    for tree in field_trees(LanceSchema.from_pyarrow(schema)):
        trees.append(tree.numbered_from(first))
        first = max(trees[-1].ids) + 1
    return trees


def schema_of(like: LanceSchema, trees: list[FieldTree]) -> LanceSchema:
    """A schema of these columns, with the metadata of another one."""
    metadata, _ = _stored(like)
    messages = [encode_message(message) for tree in trees for message in tree.messages]
    return LanceSchema._from_protos(metadata, *messages)


def _stored(schema: LanceSchema) -> tuple[str, Sequence[bytes]]:
    """The metadata of a schema and its fields in their stored form, from which `_from_protos` makes it again."""
    reduced: tuple[Any, ...] = tuple(schema.__reduce__())
    metadata, *fields = reduced[1]
    return metadata, fields


def _with(message: Message, field: int, value: int | bytes) -> Message:
    rest = [pair for pair in message if pair[0] != field]
    return tuple(sorted([*rest, (field, value)], key=lambda pair: pair[0])) if value else tuple(rest)


def _number(message: Message, field: int) -> int:
    found = dict(message).get(field, 0)
    assert isinstance(found, int)  # noqa: S101  it is one in every release of Lance
    return found


def message_fields(stored: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message in its stored form: their numbers and values."""
    place = 0
    while place < len(stored):
        tag, place = _read_varint(stored, place)
        value, place = _read_varint(stored, place)
        if tag & 7 == _VARINT:
            yield tag >> 3, value
        elif tag & 7 == _BYTES:
            yield tag >> 3, stored[place : place + value]
            place += value
        else:
            raise ValueError(f"field {tag >> 3} has the wire type {tag & 7}, which Lance did not use")


def encode_message(message: Message) -> bytes:
    """A protobuf message in its stored form."""
    out = b""
    for number, value in message:
        if isinstance(value, int):
            out += _tag(number, _VARINT) + _varint(value)
        else:
            out += _tag(number, _BYTES) + _varint(len(value)) + value
    return out


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(stored: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = stored[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if not byte & 128:
            return value, place
