"""The version file that follows another one when rows were only added, built without Lance.

Lance reads a table's versions again before each commit, which takes longer than everything else about a small
write. A version that only adds data files differs from the one before in a few fields of its description; every
other byte is taken over. Anything that is not known here is left to Lance.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lance import LanceOperation, Transaction
from lance.fragment import DataFile, FragmentMetadata

from omnigraph.storage.files.names import name_of
from omnigraph.storage.files.versionfiles import Sections
from omnigraph.storage.files.wire import encode_field, encode_fields, encode_packed, placed_fields

_FRAGMENT: Final = 2
_VERSION: Final = 3
_INDEX_SECTION: Final = 6
_TIMESTAMP: Final = 7
_FEATURES: Final = (9, 10)
_LARGEST_FRAGMENT: Final = 11
_TRANSACTION_FILE: Final = 12
_NEXT_ROW: Final = 14
_OLD_TRANSACTION_SECTION: Final = 21
_TRANSACTION_SECTION: Final = 23
_REPLACED: Final = frozenset(
    {_VERSION, _INDEX_SECTION, _TIMESTAMP, _LARGEST_FRAGMENT, _TRANSACTION_FILE, _NEXT_ROW}
    | {_OLD_TRANSACTION_SECTION, _TRANSACTION_SECTION}
)
_KNOWN: Final = _REPLACED | {1, _FRAGMENT, 5, *_FEATURES, 13, 15, 16, 18, 19, 20}
"""The fields of a description that are replaced or can be taken over: schema, metadata, configuration, bases."""

_STABLE_ROW_IDS: Final = 2
_KNOWN_FEATURES: Final = 63
_APPEND, _UPDATE = 100, 108

Fields = list[tuple[int, int | bytes]]


def is_added(transaction: Transaction) -> bool:
    """Does a transaction only add rows that are new?"""
    return _only_added(transaction) is not None


def successor(content: bytes, version: int, transaction: Transaction) -> bytes | None:
    """The file of the version after ``version``, whose file has this content, if the transaction only adds rows
    that are new; None if Lance has to make it."""
    added = _only_added(transaction)
    if added is None or transaction.read_version != version:
        return None
    sections = Sections.of(content)
    kept, numbers = _taken_over(sections.description)
    if not numbers.keys() <= _KNOWN or numbers.get(_VERSION) != version:
        return None
    flags = [numbers.get(field, 0) for field in _FEATURES]
    if any(not each & _STABLE_ROW_IDS or each & ~_KNOWN_FEATURES for each in flags):
        return None
    indexes = _index_section(sections.before, numbers.get(_INDEX_SECTION))
    described = _transaction(transaction, added)
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    fragments, largest, next_row = _numbered(added, numbers, version + 1)
    fields: Fields = [
        (_VERSION, version + 1),
        (_TIMESTAMP, encode_fields([(1, seconds), (2, nanoseconds)])),
        (_LARGEST_FRAGMENT, largest),
        (_TRANSACTION_FILE, f"{version}-{transaction.uuid}.txn".encode()),
        (_NEXT_ROW, next_row),
        (_TRANSACTION_SECTION, len(indexes)),
    ]
    if indexes:
        fields.append((_INDEX_SECTION, 0))
    return Sections(
        indexes + _prefixed(described), b"".join([kept, *fragments, encode_fields(fields)]), sections.end
    ).encode()


def _only_added(transaction: Transaction) -> Sequence[FragmentMetadata] | None:
    """The fragments with new rows that a transaction adds; None if it does anything else."""
    match transaction.operation:
        case LanceOperation.Append(fragments):
            added = list(fragments)
        case LanceOperation.Update() as update if not (
            update.removed_fragment_ids or update.updated_fragments or update.fields_modified
        ):
            added = list(update.new_fragments)
        case _:
            return None
    is_plain = all(
        each.row_id_meta is None and each.deletion_file is None and each.physical_rows and each.files
        for each in added
    )
    return added if added and is_plain else None


def _taken_over(description: bytes) -> tuple[bytes, Mapping[int, int]]:
    """The fields of a description that stay, as they are stored, and the numbers in it; a field that is no number
    counts as 0."""
    parts: list[bytes] = []
    numbers: dict[int, int] = {}
    done = 0
    for number, value, start, end in placed_fields(description):
        numbers[number] = value if isinstance(value, int) else 0
        if number in _REPLACED:
            parts.append(description[done:start])
            done = end
    parts.append(description[done:])
    return b"".join(parts), numbers


def _numbered(
    added: Sequence[FragmentMetadata], numbers: Mapping[int, int], version: int
) -> tuple[list[bytes], int, int]:
    """New fragments as the description has them, and the largest number of a fragment and the next row id."""
    largest = numbers.get(_LARGEST_FRAGMENT, -1)
    next_row = numbers.get(_NEXT_ROW, 0)
    fragments = []
    for each in added:
        largest += 1
        rows = each.physical_rows
        row_ids = encode_field(1, _range(next_row, next_row + rows))
        made_at = encode_field(1, encode_field(1, _range(0, rows)) + encode_field(2, version))
        fields: Fields = [
            (1, largest),
            *_files(each),
            (5, row_ids),
            (7, made_at),
            (9, made_at),
        ]
        fragments.append(encode_field(_FRAGMENT, encode_fields(_present(fields))))
        next_row += rows
    return fragments, largest, next_row


def _files(fragment: FragmentMetadata) -> Iterator[tuple[int, int | bytes]]:
    for file in fragment.files:
        yield 2, _file(file)
    yield 4, fragment.physical_rows


def _file(file: DataFile) -> bytes:
    fields: Fields = [
        (1, name_of(file).encode()),
        (2, encode_packed(file.fields)),
        (3, encode_packed(file.column_indices)),
        (4, file.file_major_version),
        (5, file.file_minor_version),
        (6, file.file_size_bytes or 0),
    ]
    base = [] if file.base_id is None else [(7, file.base_id)]
    return encode_fields([*_present(fields), *base])


def _transaction(transaction: Transaction, added: Sequence[FragmentMetadata]) -> bytes:
    """A transaction as a version file holds it."""
    fragments = [encode_fields(_files(each)) for each in added]
    match transaction.operation:
        case LanceOperation.Update() as update:
            number = _UPDATE
            preserved = encode_packed(update.fields_for_preserving_frag_bitmap or [])
            operation = encode_fields([*((3, each) for each in fragments), *_present([(6, preserved)])])
        case _:
            number, operation = _APPEND, encode_fields((1, each) for each in fragments)
    properties = (
        (4, encode_fields([(1, key.encode()), (2, value.encode())]))
        for key, value in sorted((transaction.transaction_properties or {}).items())
    )
    head: Fields = [(1, transaction.read_version), (2, str(transaction.uuid).encode())]
    return encode_fields([*_present(head), *properties, (number, operation)])


def _index_section(before: bytes, place: int | None) -> bytes:
    """The list of indexes in front of a description, with its length."""
    if place is None:
        return b""
    (length,) = struct.unpack_from("<I", before, place)
    return before[place : place + 4 + length]


def _prefixed(section: bytes) -> bytes:
    return struct.pack("<I", len(section)) + section


def _range(start: int, end: int) -> bytes:
    """A segment of numbers that follow each other."""
    return encode_field(1, encode_fields(_present([(1, start), (2, end)])))


def _present(fields: Fields) -> Fields:
    """Fields without those that are zero or empty, which protobuf leaves out."""
    return [(number, value) for number, value in fields if value]
