"""The fields of `$x.*`: what a whole node or edge is made of."""

from __future__ import annotations

from omnigraph.lang.query.typecheck.scope import Bound
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.lang.values import STRING, ValueType

ENDS = {"from": "src", "to": "dst"}
"""The fields of an edge's ends, and the columns that they are in."""


def fields_of(bound: Bound) -> list[tuple[str, ValueType]]:
    """The fields in order: the id, of an edge its ends, and all properties but Blobs."""
    assert bound.type is not None  # noqa: S101  the checker found it
    fields = [("id", STRING)]
    if isinstance(bound.type, EdgeType):
        fields += [(name, STRING) for name in ENDS]
    fields += [(name, prop.type) for name, prop in bound.type.properties.items() if not prop.type.is_blob]
    return [(name, kind.or_null() if bound.nullable else kind) for name, kind in fields]
