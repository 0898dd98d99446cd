"""Where topologies and postings are saved: beside each large table and branch, the newest of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from omnigraph.errors import OmniError
from omnigraph.read.data.saved import topology
from omnigraph.read.data.saved.container import Parts
from omnigraph.read.data.saved.topology import SavedTopology
from omnigraph.storage import layout
from omnigraph.storage.files.mapped import mapped
from omnigraph.storage.handles import TableRef
from omnigraph.storage.tables import Tables

if TYPE_CHECKING:
    from omnigraph.read.data.saved.postings import SavedPostings


def saved_topology(tables: Tables, edges: TableRef) -> SavedTopology | None:
    """The topology that was saved for some version of an edge table; that of the trunk will do for a branch."""
    try:
        for native in dict.fromkeys((edges.branch, None)):
            keys = sorted(saved_keys(tables, edges.location, native), key=layout.topology_versions)
            for content in _newest(tables, keys):
                found = topology.decoded(content, tables.address.lance_root)
                if found is not None and found.edges.ref.location == edges.location:
                    return found
    except OmniError:
        pass
    return None


def saved_postings(tables: Tables, ref: TableRef, column: int) -> SavedPostings | None:
    """The postings that were saved for a column of some version of a table; those of the trunk will do for a
    branch."""
    from omnigraph.read.data.saved import postings

    try:
        for native in dict.fromkeys((ref.branch, None)):
            keys = sorted(postings_keys(tables, ref.location, native, column), key=layout.postings_version)
            for content in _newest(tables, keys):
                found = postings.decoded(content, tables.address.lance_root)
                if found is not None and (found.table.ref.location, found.column) == (ref.location, column):
                    return found
    except OmniError:
        pass
    return None


def _newest(tables: Tables, keys: list[str]) -> Iterator[memoryview]:
    """The bytes of the last of some objects, if there are any."""
    content = mapped(tables.objects, tables.address, keys[-1]) if keys else None
    if content is not None:
        yield content


def saved_keys(tables: Tables, location: str, native: str | None) -> list[str]:
    """The objects in which topologies of a table and a branch are saved."""
    listed = tables.objects.list(layout.topology_folder(location, native))
    return [key for key in listed if layout.topology_versions(key)]


def postings_keys(tables: Tables, location: str, native: str | None, column: int) -> list[str]:
    """The objects in which postings of a column of a table and a branch are saved."""
    listed = tables.objects.list(layout.postings_folder(location, native))
    return [key for key in listed if layout.postings_version(key)[:1] == (column,)]


def save(tables: Tables, saved: SavedTopology) -> bool:
    """Save a topology in the place of earlier ones of its table and branch; was that possible?"""
    edges = saved.edges.ref
    versions = (edges.version, saved.sources.ref.version, saved.targets.ref.version)
    key = layout.topology_object(edges.location, edges.branch, versions)
    content = topology.encoded(saved, tables.address.lance_root)
    return _put(tables, key, content, saved_keys(tables, edges.location, edges.branch))


def save_postings(tables: Tables, saved: SavedPostings) -> bool:
    """Save postings in the place of earlier ones of their column, table and branch; was that possible?"""
    from omnigraph.read.data.saved import postings

    ref = saved.table.ref
    key = layout.postings_object(ref.location, ref.branch, saved.column, ref.version)
    content = postings.encoded(saved, tables.address.lance_root)
    return _put(tables, key, content, postings_keys(tables, ref.location, ref.branch, saved.column))


def _put(tables: Tables, key: str, content: Parts | None, others: list[str]) -> bool:
    if content is None:
        return False
    tables.objects.hint(key, *content)
    for other in others:
        if other != key:
            tables.objects.discard(other)
    return True
