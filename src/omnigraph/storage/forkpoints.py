"""The list of a table's native branches: one small file of Lance's for each, which says where it left which other.

Lance reads all of them whenever it is asked about one, so a single file that a power cut has emptied would be in
the way of all branches. Such a file is what an interrupted fork left: there is no branch behind it.
"""

from __future__ import annotations

import json
from urllib.parse import unquote

from omnigraph.storage import layout
from omnigraph.storage.handles import TableRef
from omnigraph.storage.objects import ObjectStore


def fork_point(objects: ObjectStore, location: str, native: str) -> TableRef | None:
    """Where a native branch left which other one; None if the table does not list it."""
    return _decoded(location, _content(objects, layout.branch_entry(location, native)))


def fork_points(objects: ObjectStore, location: str) -> dict[str, TableRef]:
    """Where each native branch of a table left which other one, by name."""
    points = {_name(key): _decoded(location, _content(objects, key)) for key in _entries(objects, location)}
    return {name: point for name, point in sorted(points.items()) if point is not None}


def clear_torn_entries(objects: ObjectStore, location: str) -> None:
    """Remove the entries that say nothing."""
    for key in _entries(objects, location):
        content = _content(objects, key)
        if content is not None and _decoded(location, content) is None:
            objects.delete(key)


def _entries(objects: ObjectStore, location: str) -> list[str]:
    return [key for key in objects.list(layout.branch_entries(location)) if key.endswith(".json")]


def _content(objects: ObjectStore, key: str) -> bytes | None:
    found = objects.get(key)
    return None if found is None else found.content


def _name(key: str) -> str:
    return unquote(key.rpartition("/")[2].removesuffix(".json"))


def _decoded(location: str, content: bytes | None) -> TableRef | None:
    try:
        stored = json.loads(content or b"")
        return TableRef(location, stored["parentBranch"], int(stored["parentVersion"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
