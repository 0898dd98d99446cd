"""The base of a write: one pinned snapshot of a branch, and how a writer looks up rows in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph.errors import ResourceLimit
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import TablePin
from omnigraph.storage.files.verification import LOOKUP_BYTES
from omnigraph.storage.rows.filters import sql_literal
from omnigraph.storage.rows.small import ROW_ADDRESS, ROW_ID
from omnigraph.storage.stage.lookups import PROBE_LIMIT, are_looked_up, is_probed, slices
from omnigraph.storage.tables import TableRef
from omnigraph.storage.unavailable import translated
from omnigraph.write.delta import one_chunk


@dataclass(frozen=True, slots=True)
class Base:
    """A branch as a writer sees it: its catalog, and every table at its pinned version."""

    repository: Repository
    branch: Branch
    snapshot: Snapshot
    probe_limit: int = PROBE_LIMIT
    cached: dict[tuple[str, ...], pa.Table] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Whole columns read so far, by table key and column names: one write often needs the same ones again."""

    @property
    def catalog(self) -> Catalog:
        """The schema of the branch."""
        return self.snapshot.catalog

    def entity(self, table_key: str) -> EntityType:
        """The type behind a table key."""
        return self.snapshot.entity(table_key)

    def schema(self, table_key: str) -> pa.Schema:
        """The columns of a table."""
        return self.snapshot.schema(table_key)

    def pin(self, table_key: str) -> TablePin:
        return self.snapshot.tables[table_key]

    def ref(self, table_key: str) -> TableRef:
        """The version of the Lance table that holds the rows."""
        return self.pin(table_key).ref

    def open(self, table_key: str) -> LanceDataset:
        return self.repository.tables.open(self.ref(table_key))

    def is_empty(self, table_key: str) -> bool:
        return self.pin(table_key).row_count == 0

    def kept(self, table_key: str) -> pa.Table | None:
        """All committed rows of a small table, whole, with their row ids and row addresses, in memory; None if the
        rows of the table have to be looked up."""
        return self.repository.small_tables.rows(self.ref(table_key), self.schema(table_key))

    def located(self, table_key: str, ids: pa.Array) -> dict[str, pa.Array] | None:
        """Where the rows of a small table with these ids are, as `locate_rows` gives it; None for other tables."""
        kept = self.kept(table_key)
        if kept is None:
            return None
        found = _among(kept.select(["id", ROW_ID, ROW_ADDRESS]), {"id": ids})
        columns = {"id": "id", "row_id": ROW_ID, "row_address": ROW_ADDRESS}
        return {name: one_chunk(found[column]) for name, column in columns.items()}

    def scan(self, table_key: str, columns: Sequence[str], where: str | None = None) -> pa.Table:
        """Committed rows that a filter in Lance's SQL keeps."""
        if self.is_empty(table_key) or where == "false":
            schema = self.schema(table_key)
            return pa.schema([schema.field(name) for name in columns]).empty_table()
        return self.repository.tables.scan(self.ref(table_key), columns, where).read_all()

    def whole_rows(self, table_key: str, where: str, limit: int | None = None) -> pa.Table:
        """Committed rows with all their columns, in the form in which rows are written: blobs with their bytes.

        Reading more than ``limit`` bytes raises ResourceLimit.
        """
        schema = self.schema(table_key)
        nullable = pa.schema([field.with_nullable(True) for field in schema])
        if self.is_empty(table_key) or where == "false":
            return nullable.empty_table()
        with translated(self.repository.tables.shown(self.pin(table_key).location)):
            handle = self.repository.tables.verified(self.ref(table_key), LOOKUP_BYTES)
            scanner = handle.scanner(schema.names, filter=where, blob_handling="all_binary")
            reader = scanner.to_reader()
            rows = pa.Table.from_batches(_limited(reader, limit), reader.schema)
        return with_blobs(self.entity(table_key), rows).cast(nullable)

    def whole_rows_of(self, table_key: str, ids: pa.Array, limit: int | None = None) -> pa.Table:
        """Committed rows with all their columns, by their ids."""
        if not len(ids):
            return self.whole_rows(table_key, "false")
        return pa.concat_tables(self.whole_rows(table_key, probe, limit) for probe in self._probes({"id": ids}))

    def rows_with(self, table_key: str, wanted: Mapping[str, pa.Array], columns: Sequence[str]) -> pa.Table:
        """Committed rows that have, in each column of ``wanted``, one of the values given for it.

        A column with few values is probed; if all columns have many, one pass reads them whole.
        """
        sets = {name: distinct(values) for name, values in wanted.items()}
        if self.is_empty(table_key) or not all(map(len, sets.values())):
            return self.scan(table_key, columns, "false")
        kept = self.kept(table_key)
        if kept is not None:
            return _among(kept, sets).select(list(columns))
        few = {name: values for name, values in sets.items() if self._is_probed(table_key, name, values)}
        needed = sorted({*columns, *sets})
        if few:
            rows = pa.concat_tables(self.scan(table_key, needed, probe) for probe in self._probes(few))
        else:
            rows = self.whole_columns(table_key, needed)
        return _among(rows, {name: sets[name] for name in sets.keys() - few.keys()}).select(list(columns))

    def _is_probed(self, table_key: str, column: str, values: pa.Array) -> bool:
        """Are values of a column looked up one by one?"""
        if column == "id":
            return are_looked_up(self.open(table_key), values, self.probe_limit)
        return is_probed(len(values), self.pin(table_key).row_count, self.probe_limit)

    def _probes(self, wanted: Mapping[str, pa.Array]) -> Iterator[str]:
        """Filters that find rows with these values: several if one column has many of them."""
        most = max(wanted, key=lambda name: len(wanted[name]))
        for part in slices(wanted[most], self.probe_limit):
            each = {**wanted, most: part}.items()
            yield " and ".join(f"`{name}` in ({', '.join(map(sql_literal, values))})" for name, values in each)

    def whole_columns(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        """Whole columns of a table, read once."""
        key = (table_key, *columns)
        if key not in self.cached:
            self.cached[key] = self.scan(table_key, columns)
        return self.cached[key]

    def existing(self, table_key: str, ids: pa.Array) -> pa.Array:
        """The ids that committed rows have."""
        return self.rows_with(table_key, {"id": ids}, ["id"])["id"].combine_chunks()


def _among(rows: pa.Table, wanted: Mapping[str, pa.Array]) -> pa.Table:
    """The rows that have, in each of some columns, one of the values given for it."""
    for name, values in wanted.items():
        rows = rows.filter(pc.is_in(rows[name], value_set=values))
    return rows


def with_blobs(entity: EntityType, rows: pa.Table) -> pa.Table:
    """Rows whose blobs were read as bytes, with blobs in the form in which Lance writes them."""
    for index, name in enumerate(rows.column_names):
        prop = entity.properties.get(name)
        if prop is not None and prop.type.is_blob:
            rows = rows.set_column(index, name, lance.blob_array(rows.column(index).to_pylist()))
    return rows


def _limited(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """The batches; ResourceLimit as soon as they have more bytes than the limit."""
    size = 0
    for batch in batches:
        size += batch.nbytes
        if limit is not None and size > limit:
            raise ResourceLimit("bytes changed by one mutation", limit, size)
        yield batch


def distinct(values: pa.Array) -> pa.Array:
    """The values to look up: without nulls and repetitions, and zero with either sign."""
    found = pc.unique(values.drop_null())
    if pa.types.is_floating(found.type) and pc.any(pc.equal(found, 0.0)).as_py():
        found = pc.unique(pa.concat_arrays([found, pa.array([0.0, -0.0], found.type)]))
    return found


def capture(repository: Repository, branch: Branch) -> Base:
    """Pin the newest state of a branch."""
    return Base(repository, branch, repository.snapshot(branch))
