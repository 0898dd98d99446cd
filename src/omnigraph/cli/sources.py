"""Reading the files that commands are given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.lang.schema.catalog import Catalog
    from omnigraph.lang.source import Source


def read_source(path: Path) -> Source:
    """The text of a file, named by its path as given."""
    from omnigraph.lang.source import decode

    return decode(path.read_bytes(), str(path))


def read_catalog(path: Path) -> Catalog:
    """The catalog of a schema file."""
    from omnigraph.lang.schema.catalog import load_catalog

    source = read_source(path)
    return load_catalog(source.text, source.name)
