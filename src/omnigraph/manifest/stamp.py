"""The version of the manifest's own format, and where it is stamped."""

from __future__ import annotations

from typing import Final

STAMP: Final = "omnigraph:internal_schema_version"
"""The key in the manifest table's schema metadata."""

INTERNAL_SCHEMA_VERSION: Final = 4
"""The format this release writes: 2 annotated the key, 3 swept run branches, 4 holds the lineage."""
