"""The graph and the type that the options of a source or a sink name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from omnigraph.errors import OmniError
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.lang.schema.lookup import edge_type, node_type
from omnigraph.manifest.repository import Repository, open_existing
from omnigraph.storage.address import parse_address

STORAGE: Final = "storage."
_HIDE: Final = "SPARK_HIDE_TRACEBACK"


@contextmanager
def telling() -> Iterator[None]:
    """Let Spark begin with the message of an error of ours, which says what to do.

    It would begin with the stack of the process in which the error was raised. That process ends with it.
    """
    try:
        yield
    except OmniError:
        os.environ[_HIDE] = "1"
        raise


def opened(options: Mapping[str, str], *, read_only: bool) -> Repository:
    """The graph that options name; options called `storage.NAME` are storage options."""
    storage = {name.removeprefix(STORAGE): value for name, value in options.items() if name.startswith(STORAGE)}
    return open_existing(parse_address(options["path"], storage or None), read_only=read_only)


def entity_of(options: Mapping[str, str], catalog: Catalog) -> EntityType:
    """The type that options name."""
    return node_type(catalog, options["type"]) if "type" in options else edge_type(catalog, options["edge"])
