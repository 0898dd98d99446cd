"""`put_blob`: other bytes for one blob, as one commit."""

from __future__ import annotations

import lance
import pyarrow as pa

from omnigraph.errors import BlobChanged, BlobNotFound
from omnigraph.manifest.repository import Repository
from omnigraph.read.blobs import BlobCell, open_blob
from omnigraph.storage.rows.filters import sql_literal
from omnigraph.write.base import Base
from omnigraph.write.changes import Prepared, WriteRequest
from omnigraph.write.delta import TableDelta
from omnigraph.write.mutations.requests import MutationResult
from omnigraph.write.protocol import commit_write

_NAME = "put_blob"


def put_blob(
    repository: Repository, request: WriteRequest, cell: BlobCell, content: bytes | None, if_match: str | None
) -> MutationResult:
    """Give a blob other bytes, or make it null. ``if_match`` is the ETag that it must have at that moment."""

    def prepare(base: Base) -> Prepared[None]:
        rows = base.whole_rows(cell.table_key, f"id = {sql_literal(pa.scalar(cell.id))}")
        if not rows.num_rows:
            raise BlobNotFound(cell.table_key, cell.id, cell.property, False)
        if if_match is not None:
            _require_etag(base, cell, if_match)
        place = rows.schema.get_field_index(cell.property)
        rows = rows.set_column(place, rows.schema.field(place), lance.blob_array([content]))
        return Prepared({cell.table_key: TableDelta(cell.table_key, rows)}, None, repeatable=True)

    commit = commit_write(repository, request, prepare).commit
    is_node = cell.table_key.startswith("node:")
    return MutationResult(request.branch.name, _NAME, int(is_node), int(not is_node), commit, request.actor)


def _require_etag(base: Base, cell: BlobCell, expected: str) -> None:
    """BlobChanged if the blob has another ETag, or is null."""
    try:
        actual = open_blob(base.repository.tables, base.snapshot, cell).etag
    except BlobNotFound:
        actual = None
    if actual != expected:
        raise BlobChanged(cell.table_key, cell.id, cell.property, expected, actual)
