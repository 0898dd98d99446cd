"""The files that make versions of Lance tables: which other files they refer to, and where they say those lie.

Such a file ends with a protobuf message that describes the version, its position and a mark; before it may stand
the list of the version's indexes and the transaction that made it. A version of a native branch names the folder
of the table it was forked from by its absolute address, which is wrong once the graph lies somewhere else.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from omnigraph.records import dataclass
from omnigraph.storage.files.wire import encode_field, placed_fields, read_fields

_MARK: Final = b"LANC"
_FOOTER: Final = 16
_FRAGMENT: Final = 2
_INDEX_SECTION: Final = 6
_FEATURES: Final = (9, 10)
_TRANSACTION_SECTION: Final = (21, 23)
_FRAGMENT_FIELDS: Final = frozenset(range(1, 11))
_TRANSACTION_FILE: Final = 12
_BASE: Final = 18
_BASE_ID, _BASE_PATH = 1, 4
_CLONE, _CLONE_PATH = 113, 4
_KNOWN_FEATURES: Final = 63
"""Flags of the features of which it is known where they keep their files."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A file that a version refers to, by its key in the graph; its size where the version says it.

    A data file may have blobs in a folder of its name without the ending. An index is a folder, whose key ends
    with a slash.
    """

    key: str
    size: int | None = None

    @property
    def is_folder(self) -> bool:
        """Is it the folder of an index?"""
        return self.key.endswith("/")


@dataclass(frozen=True, slots=True)
class Sections:
    """The parts of a version file: what stands before the description, the description, and its end."""

    before: bytes
    description: bytes
    end: bytes

    @classmethod
    def of(cls, content: bytes) -> Sections:
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


def description(content: bytes) -> bytes:
    """The message in a version file that describes the version; ValueError if it cannot be read."""
    return Sections.of(content).description


class VersionReader:
    """Reads version files of one native branch of a table, and yields each file they refer to once."""

    def __init__(self, location: str, prefix: str) -> None:
        self._location = location
        self._prefix = prefix
        self._seen: set[tuple[str, bytes]] = set()

    def references(self, content: bytes) -> Iterator[Reference]:
        """The files that a version refers to and no version before it did; ValueError if it cannot be read.

        A transaction that the version file holds itself, as most do, is not read from its own file.
        """
        sections = Sections.of(content)
        fragments, bases, index_section = list[bytes](), dict[int, str](), None
        transaction, held = "", list[int]()
        for number, value in read_fields(sections.description):
            if number == _FRAGMENT and isinstance(value, bytes):
                fragments.append(value)
            elif number == _BASE and isinstance(value, bytes):
                base, path = _base(value)
                bases[base] = f"{self._location}{_inner(path, self._location)}"
            elif number == _INDEX_SECTION and isinstance(value, int):
                index_section = value
            elif number in _FEATURES and isinstance(value, int) and value & ~_KNOWN_FEATURES:
                raise ValueError(f"it uses features of a newer release of Lance ({value})")
            elif number == _TRANSACTION_FILE and isinstance(value, bytes):
                transaction = value.decode()
            elif number in _TRANSACTION_SECTION and isinstance(value, int):
                held.append(value)
        if transaction and not any(_is_held(sections.before, place, transaction) for place in held):
            yield Reference(f"{self._prefix}/_transactions/{transaction}")
        known = "\n".join(f"{base} {folder}" for base, folder in sorted(bases.items()))
        for fragment in fragments:
            if (known, fragment) not in self._seen:
                self._seen.add((known, fragment))
                yield from self._of_fragment(fragment, bases)
        if index_section is not None:
            yield from self._of_indexes(sections.before, index_section, bases, known)

    def _of_fragment(self, fragment: bytes, bases: Mapping[int, str]) -> Iterator[Reference]:
        fields = list(read_fields(fragment))
        number = _number(dict(fields), 1)
        for field, value in fields:
            if field not in _FRAGMENT_FIELDS:
                raise ValueError(f"a fragment has the unknown field {field}")
            if not isinstance(value, bytes):
                continue
            inner = dict(read_fields(value)) if field in (2, 3, 6, 8, 10) else {}
            folder = bases[_number(inner, 7)] if 7 in inner else self._prefix
            if field == 2:
                yield Reference(f"{folder}/data/{_text(inner, 1)}", _number(inner, 6) or None)
            elif field == 3:
                suffix = "bin" if _number(inner, 1) else "arrow"
                yield Reference(f"{folder}/_deletions/{number}-{_number(inner, 2)}-{_number(inner, 3)}.{suffix}")
            elif field in (6, 8, 10):
                yield Reference(f"{self._prefix}/{_text(inner, 1)}")

    def _of_indexes(self, before: bytes, place: int, bases: Mapping[int, str], known: str) -> Iterator[Reference]:
        (length,) = struct.unpack_from("<I", before, place)
        for _, index in read_fields(before[place + 4 : place + 4 + length]):
            if not isinstance(index, bytes) or (known, index) in self._seen:
                continue
            self._seen.add((known, index))
            fields = list(read_fields(index))
            inner = dict(fields)
            named = dict(read_fields(_bytes(inner, 1)))
            folder = f"{bases[_number(inner, 9)] if 9 in inner else self._prefix}/_indices"
            folder = f"{folder}/{uuid.UUID(bytes=_bytes(named, 1))}/"
            yield Reference(folder)
            for field, value in fields:
                if field == 10 and isinstance(value, bytes):
                    file = dict(read_fields(value))
                    yield Reference(folder + _text(file, 1), _number(file, 2))


def _is_held(before: bytes, place: int, file: str) -> bool:
    """Does a version file hold the transaction of which there is a file, too?"""
    try:
        (length,) = struct.unpack_from("<I", before, place)
        fields = dict(read_fields(before[place + 4 : place + 4 + length]))
        return f"{_number(fields, 1)}-{_text(fields, 2)}.txn" == file
    except (ValueError, struct.error):
        return False


def roots(content: bytes, location: str) -> set[str]:
    """The roots of the graph by which a version of one of its tables names folders; empty on the trunk."""
    found = set()
    for number, value in read_fields(Sections.of(content).description):
        if number == _BASE and isinstance(value, bytes):
            _, path = _base(value)
            found.add(path[: len(path) - len(location) - 1 - len(_inner(path, location))])
    return found


def relocated(content: bytes, location: str, root: str) -> bytes:
    """A version file of a table whose graph lies at a root: every other byte stays as it is."""
    sections = Sections.of(content)

    def moved(value: bytes) -> bytes:
        return _replaced(value, _BASE_PATH, lambda path: _placed(path, location, root))

    description = _replaced(sections.description, _BASE, moved)
    if description == sections.description:
        return content
    before = _relocated_clone(sections.before, sections.description, location, root)
    return Sections(before, description, sections.end).encode()


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


def _bytes(fields: Mapping[int, int | bytes], number: int) -> bytes:
    found = fields.get(number, b"")
    if not isinstance(found, bytes):
        raise ValueError(f"field {number} is a number")
    return found


def _text(fields: Mapping[int, int | bytes], number: int) -> str:
    return _bytes(fields, number).decode()
