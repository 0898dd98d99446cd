"""Single entities: one node or edge by its id, through the index on ids where there is one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.errors import RequestError
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.lookup import edge_type, node_type, table_keys
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.result.cells import python_values
from omnigraph.storage.rows.filters import sql_literal
from omnigraph.storage.tables import Tables


def entity_key(catalog: Catalog, name: str) -> str:
    """The table of the type that a caller named, as `Person`, or as `node:Person` if an edge has the name too."""
    kind, colon, rest = name.partition(":")
    if colon and kind == "node":
        return node_type(catalog, rest).table_key
    if colon and kind == "edge":
        return edge_type(catalog, rest).table_key
    found = table_keys(catalog, [name])
    if len(found) > 1:
        raise RequestError(f"'{name}' is a node type and an edge type; write {' or '.join(found)}")
    return found[0]


def find_entity(tables: Tables, snapshot: Snapshot, table_key: str, entity_id: str) -> dict[str, Any] | None:
    """All columns of one row as Python values, blobs as their bytes; None if no row has the id."""
    pin = snapshot.tables.get(table_key)
    if pin is None or not pin.row_count:
        return None
    names = snapshot.entity(table_key).columns
    where = f"id = {sql_literal(pa.scalar(entity_id))}"
    rows = tables.scan(pin.ref, names, where, whole_blobs=True).read_all()
    if not rows.num_rows:
        return None
    return {name: python_values(rows[name])[0] for name in names}
