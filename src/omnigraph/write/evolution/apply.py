"""Accepting another schema: checked against the rows of a branch, and made visible as one commit."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import lance
import pyarrow as pa
from ulid import ULID

from omnigraph.errors import OmniError, Outcome, SharedRows
from omnigraph.failpoints import hit
from omnigraph.formats.columns import table_schema
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.manifest.drafts import SchemaMove
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit, TablePin
from omnigraph.storage import layout
from omnigraph.storage.locks import CommitLock
from omnigraph.storage.stage.changes import ROWS_PER_FILE, stage_append
from omnigraph.write.base import Base
from omnigraph.write.committing.outcomes import InDoubt
from omnigraph.write.evolution.accepted import accepted
from omnigraph.write.evolution.plan import SchemaPlan, SchemaRequest, planned
from omnigraph.write.evolution.rules import check_table, require_kept, whole_rows
from omnigraph.write.evolution.tables import TableChange, Tables
from omnigraph.write.protocol import Prepared, Stage, WriteRequest, commit_holding, commit_write
from omnigraph.write.rules import Violations

WRITER: Final = "schema_apply"


@dataclass(frozen=True, slots=True)
class SchemaResult:
    """What was done. ``commit`` is None if the branch had the schema already."""

    plan: SchemaPlan
    commit: Commit | None

    def as_json(self) -> dict[str, Any]:
        return {**self.plan.as_json(), "commit": None if self.commit is None else self.commit.as_json()}


def apply_schema(repository: Repository, request: SchemaRequest) -> SchemaResult:
    """Accept a schema as one commit. Nothing is written if a step is not possible, which is a MigrationError, or
    if existing rows break a new rule, which is a ConstraintViolation."""
    return SchemaChange(repository, request).apply()


class SchemaChange:
    """One change of a branch's schema, alone or together with other branches.

    It keeps the new tables that it makes, to remove those that no state names.
    """

    def __init__(
        self, repository: Repository, request: SchemaRequest, together: frozenset[str] = frozenset()
    ) -> None:
        self._repository = repository
        self._request = request
        self._together = together | {request.branch.name}
        self._made: list[str] = []
        self._published: frozenset[str] = frozenset()
        self.purged: frozenset[str] = frozenset()
        """Where the tables lie of which something is to be purged, once all branches are changed."""

    def apply(self) -> SchemaResult:
        """Run the change to its end."""
        try:
            written = commit_write(self._repository, self._write_request, self.prepare, self._request.job_lock)
        except OmniError as error:
            self._clean(is_nothing_written=error.outcome is Outcome.NOTHING_WRITTEN)
            raise
        self._clean(is_nothing_written=written.commit is None)
        purge(self._repository, self.purged)
        return SchemaResult(written.result, written.commit)

    def apply_holding(self, lock: CommitLock) -> SchemaResult | InDoubt:
        """Run the change for a caller that holds the branch or the graph, and that purges what is given up."""
        try:
            plan, end = commit_holding(self._repository, self._write_request, self.prepare, lock)
        except OmniError as error:
            self._clean(is_nothing_written=error.outcome is Outcome.NOTHING_WRITTEN)
            raise
        if isinstance(end, InDoubt):
            return end
        self._clean(is_nothing_written=end is None)
        return SchemaResult(plan, end)

    @property
    def _write_request(self) -> WriteRequest:
        request = self._request
        return WriteRequest(
            WRITER,
            request.branch,
            request.actor,
            request.message,
            request.if_commit,
            graph_commit_id=request.graph_commit_id,
        )

    def check(self, base: Base) -> tuple[SchemaPlan, Tables]:
        """Raise what stands against the change in one state of the branch; nothing is written."""
        plan, tables = planned(base, self._request)
        plan.steps.require_supported()
        assert tables is not None  # noqa: S101  every step is possible
        after = accepted(base, Catalog(plan.steps.target), tables)
        found = Violations(self._request.error_limit)
        for change in tables.kept:
            check_table(change, base, after, found)
        require_kept(found)
        self._require_own(base, self._losing(tables))
        return plan, tables

    def prepare(self, base: Base) -> Prepared[SchemaPlan]:
        """The change of one state of the branch. No state names its new tables yet."""
        plan, tables = self.check(base)
        if not plan.steps.steps:
            return Prepared({}, plan, repeatable=True)
        digest = self._repository.schemas.store(self._request.desired.source.text, plan.steps.target)
        hit("schema.after_store")
        added = [self._create(entity) for entity in tables.added]
        stages: dict[str, Stage] = {}
        renamed: dict[str, str] = {}
        losing = self._losing(tables)
        removed = [base.pin(entity.table_key) for entity in tables.dropped]
        for change in tables.kept:
            key, pin = change.before.table_key, base.pin(change.before.table_key)
            if key in losing:
                added.append(self._copied(base, change))
                removed.append(pin)
            elif change.columns is not None:
                change_columns = self._request.change_columns
                stages[key] = partial(change_columns, self._repository, change.columns, pin.row_count)
                if change.is_renamed:
                    renamed[key] = change.after.table_key
            elif change.is_renamed:
                added.append(replace(pin, table_key=change.after.table_key))
                removed.append(pin)
        self._published = frozenset(pin.location for pin in added)
        self.purged = frozenset(base.pin(key).location for key in losing)
        schema = SchemaMove(digest, tuple(added), tuple(removed), renamed)
        reads = frozenset(base.snapshot.tables)
        return Prepared({}, plan, repeatable=True, stages=stages, reads=reads, schema=schema)

    def _losing(self, tables: Tables) -> frozenset[str]:
        """The tables of which the caller wants something purged: a property, or all of it."""
        if not self._request.allow_data_loss:
            return frozenset()
        dropped = {entity.table_key for entity in tables.dropped}
        return frozenset(dropped | {change.before.table_key for change in tables.kept if change.drops_columns})

    def _require_own(self, base: Base, losing: frozenset[str]) -> None:
        """Raise SharedRows if a branch that is not changed as well has a table that loses something."""
        purged = {base.pin(key).location: key for key in losing}
        if not purged:
            return
        for branch in self._repository.branches.all():
            if branch.name in self._together:
                continue
            pins = self._repository.manifest.latest(branch.native).tables.values()
            shared = sorted(purged[pin.location] for pin in pins if pin.location in purged)
            if shared:
                raise SharedRows(shared[0], branch.name)

    def _create(self, entity: EntityType) -> TablePin:
        location = layout.table_location(entity.table_key, str(ULID()))
        self._made.append(location)
        ref = self._repository.tables.create(location, table_schema(entity))
        hit("schema.after_table")
        return TablePin(entity.table_key, location, ref.version, checksum=ref.checksum)

    def _copied(self, base: Base, change: TableChange) -> TablePin:
        """A new table with the rows of an old one, without the properties that are dropped."""
        pin, tables = self._create(change.after), self._repository.tables
        ref = pin.ref
        for rows in _pieces(whole_rows(change, base), change.after):
            ref = tables.commit_staged(stage_append(tables.open(ref), ref.location, None, rows, WRITER))
            hit("schema.after_piece")
        row_count = base.pin(change.before.table_key).row_count
        return replace(pin, table_version=ref.version, checksum=ref.checksum, row_count=row_count)

    def _clean(self, *, is_nothing_written: bool) -> None:
        """Remove the tables that were made for a state that was not published. In doubt, they stay."""
        kept = frozenset() if is_nothing_written else self._published
        for location in self._made:
            if location not in kept:
                self._repository.objects.delete_prefix(location)


def purge(repository: Repository, locations: Iterable[str]) -> None:
    """Remove tables whose rows the caller gave up. What cannot be removed now is named in a warning."""
    for location in sorted(locations):
        try:
            repository.objects.delete_prefix(location)
        except OmniError as error:
            text = f"{location} could not be purged and is no part of the graph any more: {error}"
            warnings.warn(text, RuntimeWarning, stacklevel=3)


def _pieces(batches: Iterable[pa.Table], entity: EntityType) -> Iterator[pa.Table]:
    """Rows in the form in which they are written, in pieces of one data file each."""
    waiting: list[pa.Table] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= ROWS_PER_FILE:
            yield _written(waiting, entity)
            waiting = []
    if waiting:
        yield _written(waiting, entity)


def _written(parts: list[pa.Table], entity: EntityType) -> pa.Table:
    rows = pa.concat_tables(parts)
    for prop in entity.properties.values():
        if prop.type.is_blob:
            place = rows.column_names.index(prop.name)
            rows = rows.set_column(place, prop.name, lance.blob_array(rows.column(place).to_pylist()))
    return rows.cast(table_schema(entity))
