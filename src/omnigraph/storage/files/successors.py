"""The version file that follows another one when rows were added, or all of them replaced, built without Lance.

Lance looks for newer versions before each commit, which takes longer than anything else about a small write. A
version that only adds data files differs from the one before in a few fields of its description, and so does one
with other data files and the same columns; every other byte is taken over. Anything else is left to Lance.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa
from lance import LanceOperation, Transaction
from lance.fragment import DataFile, FragmentMetadata

from omnigraph.records import dataclass
from omnigraph.storage.files.names import name_of
from omnigraph.storage.files.versionfiles import Sections
from omnigraph.storage.files.wire import encode_field, encode_fields, encode_packed, placed_fields, read_fields

_COLUMN: Final = 1
_FRAGMENT: Final = 2
_VERSION: Final = 3
_METADATA: Final = 5
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
_KNOWN: Final = _REPLACED | {_COLUMN, _FRAGMENT, _METADATA, *_FEATURES, 13, 15, 16, 18, 19, 20}
"""The fields of a description that are replaced or can be taken over: schema, metadata, configuration, bases."""

_STABLE_ROW_IDS: Final = 2
_KNOWN_FEATURES: Final = 63
_APPEND, _OVERWRITE, _UPDATE = 100, 102, 108
_LEARNED: Final = 8

Fields = list[tuple[int, int | bytes]]


class KnownColumns:
    """How Lance has stored the columns of some schemas. Only that of its own versions is taken over."""

    def __init__(self) -> None:
        self._stored: list[tuple[pa.Schema, bytes]] = []

    def learn(self, content: bytes, transaction: Transaction) -> None:
        """Remember how a schema was stored in a version file that Lance has made by replacing all rows."""
        operation = transaction.operation
        if not isinstance(operation, LanceOperation.Overwrite) or not isinstance(operation.new_schema, pa.Schema):
            return
        columns = _taken_over(Sections.of(content).description, ()).columns
        self._stored = [(operation.new_schema.remove_metadata(), columns), *self._stored[: _LEARNED - 1]]

    def find(self, transaction: Transaction) -> bytes | None:
        """How the schema of a transaction that replaces all rows is stored; None if that is not known."""
        operation = transaction.operation
        if not isinstance(operation, LanceOperation.Overwrite) or not isinstance(operation.new_schema, pa.Schema):
            return None
        wanted = operation.new_schema.remove_metadata()
        return next((stored for known, stored in self._stored if known.equals(wanted, check_metadata=True)), None)


def is_added(transaction: Transaction) -> bool:
    """Does a transaction only add rows that are new?"""
    is_overwrite = isinstance(transaction.operation, LanceOperation.Overwrite)
    return not is_overwrite and _new_fragments(transaction) is not None


def successor(
    content: bytes, version: int, transaction: Transaction, columns: bytes | None = None
) -> bytes | None:
    """The file of the version after ``version``, whose file has this content; None if Lance has to make it.

    The transaction only adds rows that are new, or replaces all rows by others with the same ``columns``.
    """
    added = _new_fragments(transaction)
    if added is None or transaction.read_version != version:
        return None
    sections = Sections.of(content)
    is_overwrite = isinstance(transaction.operation, LanceOperation.Overwrite)
    kept = _taken_over(sections.description, _REPLACED | {_FRAGMENT, _METADATA} if is_overwrite else _REPLACED)
    numbers = kept.numbers
    if not numbers.keys() <= _KNOWN or numbers.get(_VERSION) != version:
        return None
    flags = [numbers.get(field, 0) for field in _FEATURES]
    if any(not each & _STABLE_ROW_IDS or each & ~_KNOWN_FEATURES for each in flags):
        return None
    if is_overwrite and (columns is None or kept.columns != columns):
        return None
    indexes = b"" if is_overwrite else _index_section(sections.before, numbers.get(_INDEX_SECTION))
    described = _transaction(transaction, added, kept.columns)
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    fragments, largest, next_row = _numbered(added, numbers, version + 1)
    fields: Fields = [
        *_metadata(transaction),
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
        indexes + _prefixed(described), b"".join([kept.rest, *fragments, encode_fields(fields)]), sections.end
    ).encode()


def _new_fragments(transaction: Transaction) -> Sequence[FragmentMetadata] | None:
    """The fragments with new rows that a transaction adds, or that replace all others; None if it does anything
    else."""
    match transaction.operation:
        case LanceOperation.Append(fragments):
            added = list(fragments)
        case LanceOperation.Overwrite(_, fragments, None):
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


@dataclass(frozen=True, slots=True)
class _TakenOver:
    """The fields of a description that stay, and its columns, as they are stored; and the numbers in it, where a
    field that is no number counts as 0."""

    rest: bytes
    columns: bytes
    numbers: Mapping[int, int]


def _taken_over(description: bytes, without: Collection[int]) -> _TakenOver:
    rest, columns = list[bytes](), list[bytes]()
    numbers: dict[int, int] = {}
    for number, value, start, end in placed_fields(description):
        numbers[number] = value if isinstance(value, int) else 0
        stored = description[start:end]
        if number not in without:
            rest.append(stored)
        if number == _COLUMN:
            columns.append(stored)
    return _TakenOver(b"".join(rest), b"".join(columns), numbers)


def _metadata(transaction: Transaction) -> Fields:
    """The metadata of the schema of a transaction that replaces all rows, key by key."""
    operation = transaction.operation
    if not isinstance(operation, LanceOperation.Overwrite) or not isinstance(operation.new_schema, pa.Schema):
        return []
    entries = sorted((operation.new_schema.metadata or {}).items())
    return [(_METADATA, encode_fields([(1, key), (2, value)])) for key, value in entries]


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


def _transaction(transaction: Transaction, added: Sequence[FragmentMetadata], columns: bytes) -> bytes:
    """A transaction as a version file holds it."""
    fragments = [encode_fields(_files(each)) for each in added]
    match transaction.operation:
        case LanceOperation.Update() as update:
            number = _UPDATE
            preserved = encode_packed(update.fields_for_preserving_frag_bitmap or [])
            operation = encode_fields([*((3, each) for each in fragments), *_present([(6, preserved)])])
        case LanceOperation.Overwrite():
            number = _OVERWRITE
            operation = encode_fields((1, each) for each in fragments) + _columns_of_operation(columns)
        case _:
            number, operation = _APPEND, encode_fields((1, each) for each in fragments)
    properties = (
        (4, encode_fields([(1, key.encode()), (2, value.encode())]))
        for key, value in sorted((transaction.transaction_properties or {}).items())
    )
    head: Fields = [(1, transaction.read_version), (2, str(transaction.uuid).encode())]
    return encode_fields([*_present(head), *properties, (number, operation)])


@lru_cache(_LEARNED)
def _columns_of_operation(columns: bytes) -> bytes:
    """The columns of a description as an operation that replaces all rows holds them."""
    return encode_fields((2, value) for _, value in read_fields(columns))


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
