"""`omnigraph version`: which release this is."""

from __future__ import annotations

import platform

import omnigraph
from omnigraph.cli.output import Json, print_json, print_text


def version(as_json: Json = False) -> None:
    """Print the release and the version of the schema format it writes."""
    from omnigraph.lang.schema.identity import IR_VERSION
    from omnigraph.manifest.stamp import INTERNAL_SCHEMA_VERSION

    if as_json:
        print_json(
            {
                "version": omnigraph.__version__,
                "internal_schema_version": INTERNAL_SCHEMA_VERSION,
                "schema_ir_version": IR_VERSION,
                "python": platform.python_version(),
            }
        )
        return
    print_text(f"omnigraph {omnigraph.__version__}")
    print_text(f"internal-schema {INTERNAL_SCHEMA_VERSION}")
    print_text(f"schema-ir {IR_VERSION}")
