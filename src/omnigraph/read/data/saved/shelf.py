"""Where topologies are saved: one beside each large edge table and branch, the newest."""

from __future__ import annotations

from omnigraph.errors import OmniError
from omnigraph.read.data.saved.topology import SavedTopology, decoded, encoded
from omnigraph.storage import layout
from omnigraph.storage.files.mapped import mapped
from omnigraph.storage.handles import TableRef
from omnigraph.storage.tables import Tables


def saved_topology(tables: Tables, edges: TableRef) -> SavedTopology | None:
    """The topology that was saved for some version of an edge table; that of the trunk will do for a branch."""
    for native in dict.fromkeys((edges.branch, None)):
        try:
            keys = sorted(saved_keys(tables, edges.location, native), key=layout.topology_versions)
            content = mapped(tables.objects, tables.address, keys[-1]) if keys else None
        except OmniError:
            return None
        found = None if content is None else decoded(content, tables.address.lance_root)
        if found is not None and found.edges.ref.location == edges.location:
            return found
    return None


def saved_keys(tables: Tables, location: str, native: str | None) -> list[str]:
    """The objects in which topologies of a table and a branch are saved."""
    listed = tables.objects.list(layout.topology_folder(location, native))
    return [key for key in listed if layout.topology_versions(key)]


def save(tables: Tables, saved: SavedTopology) -> bool:
    """Save a topology in the place of earlier ones of its table and branch; was that possible?"""
    edges = saved.edges.ref
    versions = (edges.version, saved.sources.ref.version, saved.targets.ref.version)
    key = layout.topology_object(edges.location, edges.branch, versions)
    content = encoded(saved, tables.address.lance_root)
    if content is None:
        return False
    tables.objects.hint(key, content)
    for other in saved_keys(tables, edges.location, edges.branch):
        if other != key:
            tables.objects.discard(other)
    return True
