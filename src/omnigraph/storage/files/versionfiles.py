"""What one version of a table refers to, read from the file that makes the version.

Lance's own interface would open a table for each version, and says nothing of transaction files. The file is a
protobuf message, of which only the fields are decoded that name other files. A version with a feature or a field
that is not known here may refer to files in a way that is not known either, so it is refused.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from omnigraph.errors import ObjectDamaged

_MAGIC: Final = b"LANC"
_FOOTER: Final = 16
_KNOWN_FLAGS: Final = 0b1011_1111
"""Features of tables: deletion files, stable row ids, and so on. Overlays and those to come are not among them."""

_FRAGMENT: Final = frozenset(range(1, 11))
_DATA_FILE: Final = frozenset(range(1, 8))
_DELETION_FILE: Final = frozenset({1, 2, 3, 4, 7})
_INDEX: Final = frozenset(range(1, 12))

_Value = int | bytes
_Fields = Iterator[tuple[int, _Value]]
_Folders = tuple[str, tuple[tuple[int, str], ...]]


@dataclass(slots=True)
class VersionReader:
    """Reads the versions of one table. Fragments that were seen in another version are not decoded again."""

    location: str
    _known: dict[tuple[str, tuple[tuple[int, str], ...]], dict[bytes, tuple[str, ...]]] = field(
        default_factory=dict
    )

    def references(self, key: str, content: bytes) -> set[str]:
        """The keys of the files that a version refers to; of an index, the key of its folder.

        ``key`` is that of the version's file; ObjectDamaged if its content cannot be understood.
        """
        try:
            return self._references(key.rpartition("/_versions/")[0], content)
        except (ValueError, IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
            remedy = "nothing was removed; a newer release may understand it"
            raise ObjectDamaged(key, f"what it refers to cannot be read ({error})", remedy) from error

    def _references(self, tree: str, content: bytes) -> set[str]:
        if content[-4:] != _MAGIC:
            raise ValueError("its end is missing")
        (position,) = struct.unpack("<Q", content[-_FOOTER : 8 - _FOOTER])
        fragments: list[bytes] = []
        indexes: list[bytes] = []
        bases: dict[int, str] = {}
        transaction, sections = "", list[int]()
        found: set[str] = set()
        for number, value in _decoded(_message(content, position)):
            match number:
                case 2:
                    fragments.append(_bytes(value))
                case 6:
                    section = _message(content, _integer(value))
                    indexes += [_bytes(index) for _, index in _decoded(section)]
                case 9 | 10 if _integer(value) & ~_KNOWN_FLAGS:
                    raise ValueError(f"it has features {_integer(value):b}")
                case 12:
                    transaction = _text(value)
                case 21 | 23:
                    sections.append(_integer(value))
                case 18:
                    bases |= _base(self.location, _bytes(value))
        if transaction and not any(_has_transaction(content, at, transaction) for at in sections):
            found.add(f"{tree}/_transactions/{transaction}")
        prefixes = {-1: tree, **bases}
        known = self._known.setdefault((tree, tuple(sorted(bases.items()))), {})
        for fragment in fragments:
            if fragment not in known:
                known[fragment] = tuple(_of_fragment(fragment, prefixes))
            found.update(known[fragment])
        found.update(_of_index(index, prefixes) for index in indexes)
        return found


def _has_transaction(content: bytes, position: int, file: str) -> bool:
    """Does a version's file hold the transaction itself? Lance then does not read the transaction's own file."""
    try:
        fields = dict(_decoded(_message(content, position)))
        return f"{_integer(fields.get(1, 0))}-{_text(fields[2])}.txn" == file
    except (ValueError, IndexError, KeyError, struct.error):
        return False


def _of_fragment(message: bytes, prefixes: Mapping[int, str]) -> Iterator[str]:
    """The data files and the deletion file of a fragment."""
    number, deletion = 0, None
    for tag, value in _checked(message, _FRAGMENT, "fragment"):
        match tag:
            case 1:
                number = _integer(value)
            case 2:
                fields = dict(_checked(_bytes(value), _DATA_FILE, "data file"))
                yield f"{prefixes[_base_id(fields)]}/data/{_text(fields[1])}"
            case 3:
                deletion = dict(_checked(_bytes(value), _DELETION_FILE, "deletion file"))
            case 6 | 8 | 10:
                yield f"{prefixes[-1]}/{_text(dict(_decoded(_bytes(value)))[1])}"
    if deletion is not None:
        suffix = "bin" if deletion.get(1) else "arrow"
        read, identity = _integer(deletion.get(2, 0)), _integer(deletion.get(3, 0))
        name = f"{number}-{read}-{identity}.{suffix}"
        yield f"{prefixes[_base_id(deletion)]}/_deletions/{name}"


def _of_index(message: bytes, prefixes: Mapping[int, str]) -> str:
    """The folder of an index."""
    fields = dict(_checked(message, _INDEX, "index"))
    (identity,) = (value for _, value in _decoded(_bytes(fields[1])))
    return f"{prefixes[_base_id(fields, 9)]}/_indices/{uuid.UUID(bytes=_bytes(identity))}"


def _base_id(fields: Mapping[int, _Value], tag: int = 7) -> int:
    """The number of the folder that a file lies in; -1 is that of the version itself."""
    return _integer(fields.get(tag, -1))


def _base(location: str, message: bytes) -> dict[int, str]:
    """The folder of another native branch of the table, by its number.

    Lance notes it as the address that the graph had when the branch was forked; the graph may have been moved.
    """
    fields = dict(_decoded(message))
    path = _text(fields[4]).rstrip("/")
    before, found, below = path.rpartition(f"/{location}")
    if not found or (below and not below.startswith("/tree/")) or not fields.get(3) or not before:
        raise ValueError(f"it refers to files in {path}, which is no part of the table")
    return {_integer(fields.get(1, 0)): f"{location}{below}"}


def _checked(message: bytes, known: frozenset[int], what: str) -> _Fields:
    for number, value in _decoded(message):
        if number not in known:
            raise ValueError(f"a {what} has the unknown field {number}")
        yield number, value


def _message(content: bytes, position: int) -> bytes:
    """A message of the file, which begins with its length."""
    (length,) = struct.unpack_from("<I", content, position)
    if position + 4 + length > len(content):
        raise ValueError("it is shorter than it says")
    return content[position + 4 : position + 4 + length]


def _decoded(message: bytes) -> _Fields:
    """The fields of a protobuf message by their numbers; repeated ones come repeatedly."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        match kind:
            case 0:
                value, at = _varint(message, at)
                yield number, value
            case 1 | 5:
                at += 8 if kind == 1 else 4
            case 2:
                length, at = _varint(message, at)
                if at + length > len(message):
                    raise ValueError("a field is shorter than it says")
                yield number, message[at : at + length]
                at += length
            case _:
                raise ValueError(f"field {number} is of the unknown kind {kind}")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    byte = message[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        at += 1
        byte = message[at]
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, at + 1


def _integer(value: _Value) -> int:
    if not isinstance(value, int):
        raise ValueError("a number is none")
    return value


def _bytes(value: _Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a message is none")
    return value


def _text(value: _Value) -> str:
    return _bytes(value).decode()
