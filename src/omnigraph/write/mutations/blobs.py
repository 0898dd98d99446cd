"""Blobs that a mutation names by an address: their bytes are copied before anything else is done."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.formats.rows import BLOB_PREFIX
from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.storage.external.sources import BlobSources


def copied_blobs(
    mutation: ir.MutationIR, values: Mapping[str, Value], catalog: Catalog, sources: BlobSources
) -> dict[str, bytes]:
    """The bytes at each address that a parameter assigns to a Blob property.

    BadValue if one may not be read, BlobSourceUnavailable if it cannot.
    """
    reading = sources.reading()
    found: dict[str, bytes] = {}
    for op in mutation.ops:
        if isinstance(op, ir.DeleteOp):
            continue
        entity = catalog.entity(f"{op.kind}:{op.type_name}")
        for assignment in op.assignments:
            prop, given = entity.properties.get(assignment.property), assignment.value
            if prop is None or not prop.type.is_blob or not isinstance(given, ir.Param):
                continue
            value = values.get(given.name)
            if isinstance(value, str) and not value.startswith(BLOB_PREFIX) and value not in found:
                found[value] = reading.fetch(prop.name, value)
    return found
