"""The files that make versions of Lance tables: where they say that the files of their table lie.

Such a file ends with a protobuf message that describes the version, its position and a mark; before it may stand
the list of the version's indexes and the transaction that made it. A version of a native branch names the folder
of the table it was forked from by its absolute address, which is wrong once the graph lies somewhere else.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from omnigraph.storage.wire import encode_field, placed_fields, read_fields

_MARK: Final = b"LANC"
_FOOTER: Final = 16
_INDEX_SECTION: Final = 6
_BASE: Final = 18
_BASE_ID, _BASE_PATH = 1, 4
_CLONE, _CLONE_PATH = 113, 4


@dataclass(frozen=True, slots=True)
class _Sections:
    """The parts of a version file: what stands before the description, the description, and its end."""

    before: bytes
    description: bytes
    end: bytes

    @classmethod
    def of(cls, content: bytes) -> _Sections:
        if len(content) < _FOOTER or content[-4:] != _MARK:
            raise ValueError("its end is missing")
        (place,) = struct.unpack("<q", content[-16:-8])
        if not 0 <= place <= len(content) - _FOOTER - 4:
            raise ValueError("its description lies outside of it")
        (length,) = struct.unpack_from("<I", content, place)
        description = content[place + 4 : -_FOOTER]
        if len(description) != length:
            raise ValueError("its description has another length than it says")
        return cls(content[:place], description, content[-8:])

    def encode(self) -> bytes:
        length = struct.pack("<I", len(self.description))
        return self.before + length + self.description + struct.pack("<q", len(self.before)) + self.end


def roots(content: bytes, location: str) -> set[str]:
    """The roots of the graph by which a version of one of its tables names folders; empty on the trunk."""
    found = set()
    for number, value in read_fields(_Sections.of(content).description):
        if number == _BASE and isinstance(value, bytes):
            _, path = _base(value)
            found.add(path[: len(path) - len(location) - 1 - len(_inner(path, location))])
    return found


def relocated(content: bytes, location: str, root: str) -> bytes:
    """A version file of a table whose graph lies at a root: every other byte stays as it is."""
    sections = _Sections.of(content)

    def moved(value: bytes) -> bytes:
        return _replaced(value, _BASE_PATH, lambda path: _placed(path, location, root))

    description = _replaced(sections.description, _BASE, moved)
    if description == sections.description:
        return content
    before = _relocated_clone(sections.before, sections.description, location, root)
    return _Sections(before, description, sections.end).encode()


def relocated_transaction(content: bytes, location: str, root: str) -> bytes:
    """A transaction file of a table whose graph lies at a root. Only the one of a fork names a place."""

    def moved(value: bytes) -> bytes:
        return _replaced(value, _CLONE_PATH, lambda path: _placed(path, location, root))

    return _replaced(content, _CLONE, moved)


def _relocated_clone(before: bytes, description: bytes, location: str, root: str) -> bytes:
    """What stands before the description, with the fork's own transaction, which is its last part, moved."""
    index = dict(read_fields(description)).get(_INDEX_SECTION)
    place = 0
    while place < len(before):
        (length,) = struct.unpack_from("<I", before, place)
        end = place + 4 + length
        if end == len(before) and place != index:
            transaction = relocated_transaction(before[place + 4 :], location, root)
            return before[:place] + struct.pack("<I", len(transaction)) + transaction
        place = end
    return before


def _replaced(message: bytes, field: int, replace: Callable[[bytes], bytes]) -> bytes:
    """A message in which the values of one field are replaced."""
    parts, done = [], 0
    for number, value, start, end in placed_fields(message):
        if number == field and isinstance(value, bytes):
            parts += [message[done:start], encode_field(number, replace(value))]
            done = end
    return message if not parts else b"".join([*parts, message[done:]])


def _placed(path: bytes, location: str, root: str) -> bytes:
    """The address of a folder of a table, below another root."""
    return f"{root}/{location}{_inner(path.decode(), location)}".encode()


def _inner(path: str, location: str) -> str:
    """Which folder of a table an address names: the table's own, or the tree of a native branch."""
    own, tree, native = path.rpartition(f"/{location}/tree/")
    if tree and own:
        return f"/tree/{native}"
    if path.endswith(f"/{location}"):
        return ""
    raise ValueError(f"it refers to {path}, which is no folder of its table")


def _base(value: bytes) -> tuple[int, str]:
    fields = dict(read_fields(value))
    return _number(fields, _BASE_ID), _text(fields, _BASE_PATH)


def _number(fields: Mapping[int, int | bytes], number: int) -> int:
    found = fields.get(number, 0)
    if not isinstance(found, int):
        raise ValueError(f"field {number} is no number")
    return found


def _text(fields: Mapping[int, int | bytes], number: int) -> str:
    found = fields.get(number, b"")
    if not isinstance(found, bytes):
        raise ValueError(f"field {number} is a number")
    return found.decode()
