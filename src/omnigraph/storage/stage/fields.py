"""The columns of a Lance table as Lance stores them: each with a number that its data files know it by.

Lance's Python interface makes schemas only with fresh numbers. A schema for existing files has to keep theirs, so
the stored form of its fields, small protobuf messages, is edited here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from lance.schema import LanceSchema

from omnigraph.storage.files.wire import Message, encode_fields, read_fields

_NAME: Final = 2
_ID: Final = 3
_PARENT: Final = 4
_NULLABLE: Final = 6
_NO_PARENT: Final = 2**64 - 1


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
    for message in (tuple(read_fields(each)) for each in stored):
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
    messages = [encode_fields(message) for tree in trees for message in tree.messages]
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
