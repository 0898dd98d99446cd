"""Small graphs for tests of writing, and deltas made of plain dictionaries."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

import omnigraph
from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import ConstraintViolation
from omnigraph.formats.rows import rows_of
from omnigraph.graph import Graph
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.manifest.state import TablePin
from omnigraph.settings import Settings
from omnigraph.storage.stage.changes import ROWS_PER_FILE
from omnigraph.storage.stage.indexes import IndexSpec, stage_create_index
from omnigraph.write.base import Base, capture
from omnigraph.write.delta import TableDelta
from omnigraph.write.evaluator import validate
from omnigraph.write.protocol import Prepared, WriteRequest, commit_write

Row = Mapping[str, Any]


def new_graph(schema: str, embedder: EmbeddingClient | None = None, settings: Settings | None = None) -> Graph:
    """An empty graph in this process's memory."""
    created = omnigraph.init(f"memory://{uuid.uuid4().hex}/g", schema)
    return omnigraph.open(created.address, embedder=embedder, settings=settings)


def base_of(graph: Graph, branch: str = "main") -> Base:
    """The newest state of a branch, as a writer sees it."""
    repository = graph._repository
    return capture(repository, repository.branches.find(branch))


def stored(graph: Graph, table_key: str, *columns: str, branch: str = "main") -> list[dict[str, Any]]:
    """Rows of a table by id."""
    base = base_of(graph, branch)
    rows: list[dict[str, Any]] = base.whole_rows(table_key, "true").sort_by("id").to_pylist()
    return [{name: row[name] for name in columns or base.schema(table_key).names} for row in rows]


def ids_of(graph: Graph, table_key: str, branch: str = "main") -> list[str]:
    """The ids in a table, sorted."""
    return [row["id"] for row in stored(graph, table_key, "id", branch=branch)]


def entity_of(catalog: Catalog, table_key: str) -> EntityType:
    kind, _, name = table_key.partition(":")
    return catalog.nodes[name] if kind == "node" else catalog.edges[name]


def table_of(entity: EntityType, rows: Sequence[Row]) -> pa.Table:
    """Rows as Arrow; what a row does not say is null."""
    names = {name for row in rows for name in row}
    return rows_of(entity, {name: [row.get(name) for row in rows] for name in names}, len(rows))


def change(
    catalog: Catalog, table_key: str, rows: Sequence[Row] = (), deletes: Iterable[str] = (), **how: bool
) -> TableDelta:
    """The change of one table."""
    upserts = table_of(entity_of(catalog, table_key), rows)
    return TableDelta(table_key, upserts, pa.array(list(deletes), pa.string()), **how)


def messages(base: Base, *changes: TableDelta) -> list[str]:
    """What the evaluator has against a delta; all of it, which must be little."""
    found = refusal(base, *changes)
    if found is None:
        return []
    assert found.total == len(found.violations)
    return [violation.message for violation in found.violations]


def refusal(base: Base, *changes: TableDelta) -> ConstraintViolation | None:
    """The evaluator's error, if it has one."""
    try:
        validate({one.table_key: one for one in changes}, base)
    except ConstraintViolation as error:
        return error
    return None


def put(graph: Graph, *changes: TableDelta, rows_per_file: int = ROWS_PER_FILE) -> None:
    """Commit a delta."""
    repository = graph._repository
    delta = {one.table_key: one for one in changes}
    request = WriteRequest("load", repository.branches.find("main"), rows_per_file=rows_per_file)
    commit_write(repository, request, lambda _: Prepared(delta, None, repeatable=False, lineage_only=True))


def indexed(base: Base, columns: Mapping[str, Sequence[str]]) -> Base:
    """The same state with BTREE indexes over columns of tables."""
    pins: dict[str, TablePin] = dict(base.snapshot.tables)
    tables = base.repository.tables
    for table_key, names in columns.items():
        ref = base.ref(table_key)
        specs = [IndexSpec(name, "BTREE", f"{name}_idx") for name in names]
        staged = stage_create_index(tables.open(ref), ref.location, ref.branch, specs, "test")
        pins[table_key] = replace(pins[table_key], table_version=tables.commit_staged(staged).version)
    return replace(base, snapshot=replace(base.snapshot, tables=pins))
