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
from omnigraph.storage.wire import read_fields

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


@dataclass(frozen=True, slots=True)
class Reference:
    """A file that a version refers to, by its key in the graph, and its size where the version says it.

    A data file may have blobs in a folder of its name without the ending. An index is a folder.
    """

    key: str
    size: int | None = None
    is_folder: bool = False


@dataclass(slots=True)
class VersionReader:
    """Reads the versions of one table. Fragments that were seen in another version are not decoded again."""

    location: str
    _known: dict[tuple[str, tuple[tuple[int, str], ...]], dict[bytes, tuple[Reference, ...]]] = field(
        default_factory=dict
    )

    def references(self, key: str, content: bytes) -> set[Reference]:
        """The files that a version refers to; of an index, its folder and those of its files that have a size.

        ``key`` is that of the version's file; ObjectDamaged if its content cannot be understood.
        """
        try:
            return self._references(key.rpartition("/_versions/")[0], content)
        except (ValueError, IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
            remedy = "nothing was removed; a newer release may understand it"
            raise ObjectDamaged(key, f"what it refers to cannot be read ({error})", remedy) from error

    def _references(self, tree: str, content: bytes) -> set[Reference]:
        if content[-4:] != _MAGIC:
            raise ValueError("its end is missing")
        (position,) = struct.unpack("<Q", content[-_FOOTER : 8 - _FOOTER])
        fragments: list[bytes] = []
        indexes: list[bytes] = []
        bases: dict[int, str] = {}
        found: set[Reference] = set()
        for number, value in read_fields(_message(content, position)):
            match number:
                case 2:
                    fragments.append(_bytes(value))
                case 6:
                    section = _message(content, _integer(value))
                    indexes += [_bytes(index) for _, index in read_fields(section)]
                case 9 | 10 if _integer(value) & ~_KNOWN_FLAGS:
                    raise ValueError(f"it has features {_integer(value):b}")
                case 12 if value:
                    found.add(Reference(f"{tree}/_transactions/{_text(value)}"))
                case 18:
                    bases |= _base(self.location, _bytes(value))
        prefixes = {-1: tree, **bases}
        known = self._known.setdefault((tree, tuple(sorted(bases.items()))), {})
        for fragment in fragments:
            if fragment not in known:
                known[fragment] = tuple(_of_fragment(fragment, prefixes))
            found.update(known[fragment])
        for index in indexes:
            if index not in known:
                known[index] = tuple(_of_index(index, prefixes))
            found.update(known[index])
        return found


def _of_fragment(message: bytes, prefixes: Mapping[int, str]) -> Iterator[Reference]:
    """The data files and the deletion file of a fragment."""
    number, deletion = 0, None
    for tag, value in _checked(message, _FRAGMENT, "fragment"):
        match tag:
            case 1:
                number = _integer(value)
            case 2:
                fields = dict(_checked(_bytes(value), _DATA_FILE, "data file"))
                size = _integer(fields.get(6, 0)) or None
                yield Reference(f"{prefixes[_base_id(fields)]}/data/{_text(fields[1])}", size)
            case 3:
                deletion = dict(_checked(_bytes(value), _DELETION_FILE, "deletion file"))
            case 6 | 8 | 10:
                yield Reference(f"{prefixes[-1]}/{_text(dict(read_fields(_bytes(value)))[1])}")
    if deletion is not None:
        suffix = "bin" if deletion.get(1) else "arrow"
        read, identity = _integer(deletion.get(2, 0)), _integer(deletion.get(3, 0))
        name = f"{number}-{read}-{identity}.{suffix}"
        yield Reference(f"{prefixes[_base_id(deletion)]}/_deletions/{name}")


def _of_index(message: bytes, prefixes: Mapping[int, str]) -> Iterator[Reference]:
    """The folder of an index, and the files in it whose sizes are known."""
    listed = list(_checked(message, _INDEX, "index"))
    fields = dict(listed)
    (identity,) = (value for _, value in read_fields(_bytes(fields[1])))
    folder = f"{prefixes[_base_id(fields, 9)]}/_indices/{uuid.UUID(bytes=_bytes(identity))}"
    yield Reference(folder, is_folder=True)
    for file in (dict(read_fields(_bytes(value))) for number, value in listed if number == 10):
        yield Reference(f"{folder}/{_text(file[1])}", _integer(file.get(2, 0)))


def _base_id(fields: Mapping[int, _Value], tag: int = 7) -> int:
    """The number of the folder that a file lies in; -1 is that of the version itself."""
    return _integer(fields.get(tag, -1))


def _base(location: str, message: bytes) -> dict[int, str]:
    """The folder of another native branch of the table, by its number.

    Lance notes it as the address that the graph had when the branch was forked; the graph may have been moved.
    """
    fields = dict(read_fields(message))
    path = _text(fields[4]).rstrip("/")
    before, found, below = path.rpartition(f"/{location}")
    if not found or (below and not below.startswith("/tree/")) or not fields.get(3) or not before:
        raise ValueError(f"it refers to files in {path}, which is no part of the table")
    return {_integer(fields.get(1, 0)): f"{location}{below}"}


def _checked(message: bytes, known: frozenset[int], what: str) -> _Fields:
    for number, value in read_fields(message):
        if number not in known:
            raise ValueError(f"a {what} has the unknown field {number}")
        yield number, value


def _message(content: bytes, position: int) -> bytes:
    """A message of the file, which begins with its length."""
    (length,) = struct.unpack_from("<I", content, position)
    if position + 4 + length > len(content):
        raise ValueError("it is shorter than it says")
    return content[position + 4 : position + 4 + length]


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
