"""The version of the manifest's own format, and where it is stamped."""

from __future__ import annotations

from typing import Final

STAMP: Final = "omnigraph:internal_schema_version"
"""The key in the manifest table's schema metadata."""

INTERNAL_SCHEMA_VERSION: Final = 4
"""The format this release writes: 2 annotated the key, 3 swept run branches, 4 holds the lineage."""

EVOLVED_SCHEMA_VERSION: Final = 5
"""The format of a branch whose schema was changed. It differs only in naming the schema, which older releases
would overlook: they would read the tables with the schema that the graph was created with."""
