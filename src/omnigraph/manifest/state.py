"""The state of a graph branch, and its rows in the `__manifest` table."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import xxhash

from omnigraph.manifest.stamp import EVOLVED_SCHEMA_VERSION, INTERNAL_SCHEMA_VERSION, STAMP
from omnigraph.records import dataclass
from omnigraph.storage.versions import TableRef

if TYPE_CHECKING:
    from omnigraph.manifest.streams import Marks, StreamMark

MAIN: Final = "main"

CHECKSUM: Final = "omnigraph:checksum"
"""The key in the manifest table's schema metadata under which the checksum of its rows stands."""

MANIFEST_SCHEMA: Final = pa.schema(
    [
        pa.field(
            "object_id",
            pa.string(),
            nullable=False,
            metadata={"lance-schema:unenforced-primary-key": "true"},
        ),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string(), metadata={"lance-encoding:compression": "zstd"}),
        pa.field("base_objects", pa.list_(pa.string())),
        pa.field("table_key", pa.string()),
        pa.field("table_version", pa.uint64()),
        pa.field("table_branch", pa.string()),
        pa.field("row_count", pa.uint64()),
    ],
    metadata={STAMP: str(INTERNAL_SCHEMA_VERSION)},
)


_COLUMNS: Final = tuple(MANIFEST_SCHEMA.names)
_REMEMBERED: Final = 512
"""How many tables, and how many commits, have rows that are kept for the next version."""


@dataclass(frozen=True, slots=True)
class TablePin:
    """The published version of one table. ``table_branch`` is the native branch that holds it, None for the trunk.

    ``checksum`` is that of the version's file, if it was known when the version was published.
    """

    table_key: str
    location: str
    table_version: int
    table_branch: str | None = None
    row_count: int = 0
    checksum: str | None = field(default=None, compare=False, repr=False)

    @property
    def ref(self) -> TableRef:
        """The version of the Lance table that holds the rows."""
        return TableRef(self.location, self.table_branch, self.table_version, self.checksum)

    def as_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "location": self.location,
            "table_version": self.table_version,
            "table_branch": self.table_branch,
            "row_count": self.row_count,
        }


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A table that was removed from the graph: versions up to this one are hidden."""

    table_key: str
    location: str | None
    table_version: int


@dataclass(frozen=True, slots=True)
class Commit:
    """One change of the graph."""

    graph_commit_id: str
    branch: str
    manifest_version: int
    parents: tuple[str, ...]
    created_at: dt.datetime
    kind: str
    actor_id: str | None = None
    message: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "graph_commit_id": self.graph_commit_id,
            "branch": self.branch,
            "manifest_version": self.manifest_version,
            "parents": list(self.parents),
            "created_at": self.created_at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "kind": self.kind,
            "actor_id": self.actor_id,
            "message": self.message,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Commit:
        return cls(
            stored["graph_commit_id"],
            stored["branch"],
            stored["manifest_version"],
            tuple(stored["parents"]),
            dt.datetime.fromisoformat(stored["created_at"]),
            stored["kind"],
            _text(stored["actor_id"]),
            _text(stored["message"]),
        )


def _text(stored: object) -> str | None:
    """An actor or a message as text; older releases accepted any JSON value."""
    return None if stored is None else str(stored)


@dataclass(frozen=True, slots=True)
class ManifestState:
    """The content of one version of the manifest. ``commits`` is the newest part of the history, oldest first;
    ``streams`` has the last batch of each stream that writes to the branch. ``schema`` is the digest of the
    accepted schema, None for the one that the graph was created with."""

    version: int
    tables: Mapping[str, TablePin] = field(default_factory=dict)
    tombstones: tuple[Tombstone, ...] = ()
    commits: tuple[Commit, ...] = ()
    stamp: int = INTERNAL_SCHEMA_VERSION
    streams: Marks = field(default_factory=dict)
    schema: str | None = None

    @property
    def head(self) -> Commit | None:
        """The commit that made this state."""
        return self.commits[-1] if self.commits else None


def encode(state: ManifestState, branch: str) -> pa.Table:
    """The rows of a state, with their checksum in the schema's metadata."""
    rows: list[_Row] = []
    for pin in state.tables.values():
        rows += _pin_rows(
            pin.table_key, pin.location, pin.table_version, pin.table_branch, pin.row_count, pin.checksum
        )
    rows += map(_tombstone_row, state.tombstones)
    rows += map(_commit_row, state.commits)
    for name, mark in state.streams.items():
        rows.append(_row(f"stream:{name}", "stream", metadata=json.dumps(mark.as_json())))
    if state.schema is not None:
        rows.append(_row("schema", "schema", metadata=json.dumps({"digest": state.schema})))
    if state.head is not None:
        head = json.dumps({"graph_commit_id": state.head.graph_commit_id})
        rows.append(_row(f"graph_head:{branch}", "graph_head", metadata=head))
    stamp = INTERNAL_SCHEMA_VERSION if state.schema is None else EVOLVED_SCHEMA_VERSION
    checksum = _checksum([row.text for row in rows], stamp)
    metadata = {STAMP.encode(): str(stamp).encode(), CHECKSUM.encode(): checksum.encode()}
    columns = zip(*(row.values for row in rows), strict=True) if rows else [()] * len(_COLUMNS)
    arrays = [pa.array(values, each.type) for values, each in zip(columns, MANIFEST_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=MANIFEST_SCHEMA.with_metadata(metadata))


class _Row(NamedTuple):
    """One row of the manifest: its values, in the order of the columns, and their text for the checksum."""

    values: tuple[Any, ...]
    text: str


def _row(object_id: str, object_type: str, **others: object) -> _Row:
    named = {"object_id": object_id, "object_type": object_type, **others}
    values = tuple(map(named.get, _COLUMNS))
    return _Row(values, json.dumps(values))


@lru_cache(_REMEMBERED)
def _pin_rows(
    key: str, location: str, version: int, branch: str | None, row_count: int, checksum: str | None
) -> tuple[_Row, _Row]:
    """The rows of a table. They are the same in every version in which it has not moved, and so kept."""
    registered = _row(f"table:{key}", "table", location=location, table_key=key)
    pinned = _row(
        f"version:{key}@v={version}",
        "table_version",
        location=location,
        table_key=key,
        table_version=version,
        table_branch=branch,
        row_count=row_count,
        metadata=None if checksum is None else json.dumps({"checksum": checksum}),
    )
    return registered, pinned


def _tombstone_row(gone: Tombstone) -> _Row:
    return _row(
        f"tombstone:{gone.table_key}@{gone.location}@v={gone.table_version}",
        "table_tombstone",
        location=gone.location,
        table_key=gone.table_key,
        table_version=gone.table_version,
    )


@lru_cache(_REMEMBERED)
def _commit_row(commit: Commit) -> _Row:
    """The row of a commit, which never changes."""
    described = json.dumps(commit.as_json(), ensure_ascii=False, separators=(",", ":"))
    return _row(commit.graph_commit_id, "graph_commit", metadata=described)


def rows_checksum(rows: Sequence[Mapping[str, Any]], stamp: int) -> str:
    """The checksum of a state's rows, as they are read back, and of its stamp."""
    return _checksum([json.dumps([row.get(column) for column in _COLUMNS]) for row in rows], stamp)


def _checksum(texts: Iterable[str], stamp: int) -> str:
    return xxhash.xxh3_64_hexdigest(f"[{stamp}, [{', '.join(texts)}]]".encode())


def decode(table: pa.Table, version: int) -> ManifestState:
    """The state that rows describe: for each table its newest version that no tombstone hides.

    Older releases kept a row for every version ever published; this one keeps the newest. ValueError if the rows
    do not match their checksum.
    """
    from omnigraph.manifest.streams import StreamMark

    stamp = read_stamp(table.schema)
    rows = table.to_pylist()
    expected = (table.schema.metadata or {}).get(CHECKSUM.encode())
    if expected is not None and expected.decode(errors="replace") != rows_checksum(rows, stamp):
        raise ValueError("its rows are not those that were published")
    locations: dict[str, str] = {}
    versions: list[TablePin] = []
    tombstones: list[Tombstone] = []
    commits: list[Commit] = []
    streams: dict[str, StreamMark] = {}
    schema: str | None = None
    for row in rows:
        match row["object_type"]:
            case "table":
                locations[row["table_key"]] = row["location"]
            case "table_version":
                versions.append(
                    TablePin(
                        row["table_key"],
                        row["location"],
                        row["table_version"],
                        row["table_branch"],
                        row["row_count"] or 0,
                        json.loads(row["metadata"])["checksum"] if expected and row["metadata"] else None,
                    )
                )
            case "table_tombstone":
                tombstones.append(Tombstone(row["table_key"], row["location"], row["table_version"]))
            case "graph_commit" if stamp >= INTERNAL_SCHEMA_VERSION:
                commits.append(Commit.from_json(json.loads(row["metadata"])))
            case "stream":
                mark = StreamMark.from_json(json.loads(row["metadata"]))
                streams[mark.batch.stream] = mark
            case "schema":
                schema = json.loads(row["metadata"])["digest"]
    tables = _visible(versions, tombstones, locations)
    commits.sort(key=lambda c: (c.manifest_version, c.created_at, c.graph_commit_id))
    return ManifestState(version, tables, tuple(tombstones), tuple(commits), stamp, streams, schema)


def _visible(
    versions: Iterable[TablePin], tombstones: Iterable[Tombstone], locations: Mapping[str, str]
) -> dict[str, TablePin]:
    hidden: dict[tuple[str, str | None], int] = {}
    for gone in tombstones:
        key = (gone.table_key, gone.location)
        hidden[key] = max(hidden.get(key, 0), gone.table_version)
    newest: dict[str, TablePin] = {}
    for pin in versions:
        located = pin if pin.location else _at(pin, locations[pin.table_key])
        limit = max(hidden.get((pin.table_key, located.location), 0), hidden.get((pin.table_key, None), 0))
        if pin.table_version <= limit:
            continue
        present = newest.get(pin.table_key)
        if present is None or _newer(located, present, locations.get(pin.table_key)):
            newest[pin.table_key] = located
    return dict(sorted(newest.items()))


def _newer(pin: TablePin, present: TablePin, registered: str | None) -> bool:
    """Does a pin supersede another of the same table? The registered location decides, then the version."""
    if (pin.location == registered) != (present.location == registered):
        return pin.location == registered
    return pin.table_version > present.table_version


def _at(pin: TablePin, location: str) -> TablePin:
    return replace(pin, location=location)


def read_stamp(schema: pa.Schema) -> int:
    """The internal schema version of a manifest; 1 if it has no stamp."""
    found = (schema.metadata or {}).get(STAMP.encode())
    return 1 if found is None else int(found)
