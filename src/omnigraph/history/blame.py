"""Blame: for each property of an entity the commit that gave it its value.

A row knows the version of its table that wrote it last. So the walk goes from one version of the row to the one
before, and never looks at commits that did not write the row. Where a merge brought a value, the walk goes on in
the history that the value came from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from omnigraph.errors import HistoryReclaimed, RequestError, SnapshotNotFound
from omnigraph.history.columns import columns_at, same_type
from omnigraph.history.diff import differs, is_shown
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.manifest.lineage import age
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit, ManifestState, TablePin
from omnigraph.read.result.cells import json_value, python_values
from omnigraph.storage.rows.filters import sql_literal
from omnigraph.storage.tables import TableRef

_ROW_ID: Final = "_rowid"
_UPDATED: Final = "_row_last_updated_at_version"
_LOOKED_UP: Final = 4_096
"""Up to how many row ids are named in one look-up."""


@dataclass(frozen=True, slots=True)
class PropertyBlame:
    """A property, or an end of an edge, with its value and the commit that gave it that value."""

    property: str
    value: Any
    commit: Commit

    def as_json(self) -> dict[str, Any]:
        return {
            "property": self.property,
            "value": json_value(self.value),
            "commit": self.commit.as_json(),
        }


@dataclass(frozen=True, slots=True)
class Blame:
    """An entity, with the commit behind each of its properties."""

    table_key: str
    id: str
    properties: tuple[PropertyBlame, ...]

    def __iter__(self) -> Iterator[PropertyBlame]:
        return iter(self.properties)

    def __getitem__(self, name: str) -> PropertyBlame:
        """The blame of one property."""
        for found in self.properties:
            if found.property == name:
                return found
        raise KeyError(name)

    def as_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "id": self.id,
            "properties": [found.as_json() for found in self.properties],
        }


@dataclass(frozen=True, slots=True)
class _Row:
    """One version of the entity's row, in a state of a branch."""

    branch: Branch
    state: ManifestState
    columns: pa.Table
    row_id: int
    updated: int
    """The version of the table that wrote the row last."""

    def equal(self, other: _Row, names: Collection[str]) -> set[str]:
        """The columns in which two rows are the same, bit for bit."""
        pairs = (
            (name, self.columns[name].combine_chunks(), other.columns[name].combine_chunks()) for name in names
        )
        return {name for name, mine, theirs in pairs if not differs(mine, theirs)[0].as_py()}


@dataclass(frozen=True, slots=True)
class _Written:
    """A commit that wrote a row, and the states around it."""

    commit: Commit
    branch: Branch
    before: ManifestState | None
    after: ManifestState


def blame(repository: Repository, snapshot: Snapshot, table_key: str, entity_id: str) -> Blame:
    """The commits behind the properties of one entity; RequestError if there is no such entity."""
    entity = snapshot.entity(table_key)
    walk = _Walk(repository, snapshot.catalog, entity, entity_id)
    row = walk.start(snapshot)
    names = [name for name in entity.columns if is_shown(entity, name)]
    commits = walk.explain(row, names)
    found = (PropertyBlame(name, python_values(row.columns[name])[0], commits[name]) for name in names)
    return Blame(table_key, entity_id, tuple(found))


def commits_of(repository: Repository, snapshot: Snapshot, table_key: str, entity_id: str) -> list[Commit]:
    """The commits that changed an entity since it was inserted, newest first, those of merged branches included.

    RequestError if there is no such entity.
    """
    entity = snapshot.entity(table_key)
    walk = _Walk(repository, snapshot.catalog, entity, entity_id)
    found = walk.history(walk.start(snapshot), [name for name in entity.columns if is_shown(entity, name)])
    return sorted(found, key=age, reverse=True)


def _located(repository: Repository, snapshot: Snapshot) -> tuple[Branch, ManifestState]:
    """The branch whose manifest holds a snapshot, and the state: versions from before a fork are the parent's."""
    branch = repository.branches.find(snapshot.branch)
    while branch.parent is not None and snapshot.manifest_version < (branch.fork_version or 0):
        branch = repository.branches.find(branch.parent)
    return branch, repository.manifest.at(branch.native, snapshot.manifest_version)


@dataclass(frozen=True, slots=True)
class _Walk:
    """The walk through the versions of one entity's row."""

    repository: Repository
    catalog: Catalog
    entity: EntityType
    entity_id: str

    def start(self, snapshot: Snapshot) -> _Row:
        """The row in a snapshot."""
        row = self.find(*_located(self.repository, snapshot))
        if row is None:
            raise RequestError(f"there is no {self.entity.name} with id '{self.entity_id}'")
        return row

    def history(self, row: _Row, names: Collection[str]) -> list[Commit]:
        """The commits that changed any of these columns, in no certain order."""
        found: dict[str, Commit] = {}
        waiting = [row]
        while waiting:
            here = waiting.pop()
            written = self._last_write(here)
            earlier = self._before(here, written)
            changed = set(names) - (set() if earlier is None else here.equal(earlier, names))
            if changed and written.commit.graph_commit_id not in found:
                found[written.commit.graph_commit_id] = written.commit
                waiting.extend(
                    source for source in self._merged(here, written.commit) if here.equal(source, changed)
                )
            if earlier is not None:
                waiting.append(earlier)
        return list(found.values())

    def explain(self, row: _Row, names: Collection[str]) -> dict[str, Commit]:
        """The commit behind each of these columns."""
        found: dict[str, Commit] = {}
        waiting = [(row, set(names))]
        while waiting:
            here, unexplained = waiting.pop()
            written = self._last_write(here)
            earlier = self._before(here, written)
            kept = set() if earlier is None else here.equal(earlier, unexplained)
            changed = unexplained - kept
            for source in self._merged(here, written.commit):
                brought = here.equal(source, changed)
                if brought:
                    waiting.append((source, brought))
                    changed -= brought
            found |= dict.fromkeys(changed, written.commit)
            if earlier is not None and kept:
                waiting.append((earlier, kept))
        return found

    def _last_write(self, row: _Row) -> _Written:
        """The commit that wrote a row last: the first of its branch at which the table has that version."""
        tables, manifest = self.repository.tables, self.repository.manifest
        pin = self._pin(row.state)
        assert pin is not None  # noqa: S101  the row was found there
        home = pin.ref
        while home.branch is not None:
            point = tables.left_from(home)
            if point is None or row.updated > point.version:
                break
            home = point
        branch, newest = row.branch, row.state.version
        while branch.native != home.branch and branch.parent is not None:
            newest = branch.fork_version or newest
            branch = self.repository.branches.find(branch.parent)
        oldest = (branch.fork_version or 0) + 1
        while oldest < newest:
            middle = (oldest + newest) // 2
            there = self._pin(manifest.at(branch.native, middle))
            if there is not None and _holds(there, home, row.updated):
                newest = middle
            else:
                oldest = middle + 1
        after = manifest.at(branch.native, newest)
        before = manifest.at(branch.native, newest - 1) if newest > 1 else None
        return _Written(self._commit_of(branch, after), branch, before, after)

    def _commit_of(self, branch: Branch, state: ManifestState) -> Commit:
        if state.head is not None:
            return state.head
        archived = self.repository.manifest.archive.read().values()
        found = self.repository.branches.head_among(branch, state.version, archived)
        if found is None:
            raise SnapshotNotFound(f"commit of manifest version {state.version} of '{branch.name}'")
        return found

    def _before(self, row: _Row, written: _Written) -> _Row | None:
        """The row as it was before a commit wrote it; None if the entity was not there."""
        old = None if written.before is None else self._pin(written.before)
        new = self._pin(written.after)
        if written.before is None or old is None or new is None or old.location != new.location:
            return None
        found = self._look_up(written.branch, written.before, old, f"{_ROW_ID} = {row.row_id}")
        if found is not None:
            return found
        gone = self.repository.tables.deleted_row_ids(new.ref, old.table_version)
        if not gone:
            return None
        among = f" and {_ROW_ID} in ({', '.join(map(str, gone))})" if len(gone) <= _LOOKED_UP else ""
        return self._look_up(written.branch, written.before, old, self._has_id + among)

    def _merged(self, row: _Row, commit: Commit) -> Iterator[_Row]:
        """The row in the states that a commit merged, as far as they can be read."""
        for parent in commit.parents[1:]:
            try:
                merged = self.repository.commits.find(parent, row.branch)
                branch, state = self.repository.commits.state_at(merged)
            except (HistoryReclaimed, SnapshotNotFound):
                continue
            found = self.find(branch, state, row.row_id)
            if found is not None:
                yield found

    def find(self, branch: Branch, state: ManifestState, row_id: int | None = None) -> _Row | None:
        """The entity's row in a state. Its row id is a guess that saves a search if it is right: rows from before
        a fork have the same one on both sides."""
        pin = self._pin(state)
        if pin is None or not pin.row_count:
            return None
        guessed = None if row_id is None else self._look_up(branch, state, pin, f"{_ROW_ID} = {row_id}")
        return guessed or self._look_up(branch, state, pin, self._has_id)

    @property
    def _has_id(self) -> str:
        return f"id = {sql_literal(pa.scalar(self.entity_id))}"

    def _look_up(self, branch: Branch, state: ManifestState, pin: TablePin, where: str) -> _Row | None:
        there = self._type(state)
        assert there is not None  # noqa: S101  its table was found
        catalog = self.repository.schemas.catalog(state.schema)
        columns, names = columns_at(self.entity, there, self.catalog.ir.dropped_by_either(catalog.ir))
        wanted = [*dict.fromkeys(names.values()), _UPDATED]
        rows = self.repository.tables.scan(pin.ref, wanted, where, row_ids=True, whole_blobs=True).read_all()
        if not rows.num_rows or rows["id"][0].as_py() != self.entity_id:
            return None
        found = columns.translated(rows, names)
        return _Row(branch, state, found, rows[_ROW_ID][0].as_py(), rows[_UPDATED][0].as_py())

    def _type(self, state: ManifestState) -> EntityType | None:
        """The type of the entity in a state, which may have had another name then."""
        return same_type(self.repository.schemas.catalog(state.schema), self.catalog, self.entity)

    def _pin(self, state: ManifestState) -> TablePin | None:
        """The table of the entity in a state."""
        there = self._type(state)
        return None if there is None else state.tables.get(there.table_key)


def _holds(pin: TablePin, home: TableRef, version: int) -> bool:
    """Does a pin have what a version of a native branch wrote?"""
    return (pin.location, pin.table_branch) == (home.location, home.branch) and pin.table_version >= version
