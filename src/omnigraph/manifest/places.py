"""Graphs that were moved, or copied by hand: recognised when they are opened, and given their new addresses.

The versions of branches name folders by absolute addresses. Where those lead elsewhere, they are rewritten before
anything else is written; until then a branch is refused, since Lance would read the files of the graph that the
copy was made from. The trunk of each table names no address, so that main can always be read.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.errors import CopyUnfinished, GraphMoved, NotAGraph, ObjectDamaged
from omnigraph.failpoints import hit
from omnigraph.manifest.refs.branches import Branches
from omnigraph.manifest.schemas import Schemas
from omnigraph.storage import layout
from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.control.place import Place, PlaceState, read_place, root_of, write_place
from omnigraph.storage.locks import Locks
from omnigraph.storage.objects import ObjectStore

if TYPE_CHECKING:
    from omnigraph.storage.locks import CommitLock

_TABLES = (layout.MANIFEST, layout.NODES, layout.EDGES)


def note_place(address: Address, objects: ObjectStore, graph_id: str) -> None:
    """Say where a new graph lies."""
    if address.scheme is not Scheme.MEMORY:
        write_place(objects, Place(graph_id, root_of(address)))


def require_readable(address: Address, objects: ObjectStore) -> Place | None:
    """What a graph says about its place; raises if there is only a part of a copy, or a backup."""
    if address.scheme is Scheme.MEMORY:
        return None
    place = read_place(objects)
    if place is None:
        return None
    if place.state is PlaceState.COPYING:
        raise CopyUnfinished(str(address), str(place.copied.get("source", "")))
    if place.state is PlaceState.BACKUP:
        remedy = f"run `omnigraph restore {address} TARGET` to get a graph"
        raise NotAGraph(str(address), "it holds backups", remedy)
    return place


def settle_place(
    address: Address,
    objects: ObjectStore,
    locks: Locks,
    branches: Branches,
    schemas: Schemas,
    place: Place | None,
) -> None:
    """Make sure that a graph which is to be written to lies where its branches say.

    Raises CopyUnfinished for a copy that is being brought up to date, and GraphMoved if the graph can still be
    opened at the place that it names.
    """
    if address.scheme is Scheme.MEMORY:
        return
    if place is not None and place.state is PlaceState.UPDATING:
        raise CopyUnfinished(str(address), str(place.copied.get("source", "")))
    if place is not None and place.state is PlaceState.WHOLE and place.root == root_of(address):
        return
    if place is not None and _is_same_folder(address, place.root):
        raise GraphMoved(str(address), place.root, f"it is the same folder: open it as {place.root}")
    with locks.control() as lock:
        found = require_readable(address, objects)
        if found is None:
            found = Place(schemas.catalog(None).ir.domain, _inferred_root(address, objects, branches))
        if found.state is not PlaceState.WHOLE or found.root != root_of(address):
            _relocate(address, objects, found, lock)
        elif place is None:
            write_place(objects, found)


def _is_same_folder(address: Address, root: str) -> bool:
    """Does a folder have two names, as one that is mounted twice?"""
    if address.scheme is not Scheme.LOCAL or root == address.root or "://" in root:
        return False
    try:
        return Path(root).samefile(address.root)
    except OSError:
        return False


def _inferred_root(address: Address, objects: ObjectStore, branches: Branches) -> str:
    """Where a graph of an older release lay when a branch was made; where it lies now if there is no branch."""
    from omnigraph.storage.files.versionfiles import roots

    for branch in branches.all():
        prefix = layout.native_prefix(layout.MANIFEST, branch.native)
        versions = [] if branch.native is None else objects.list(f"{prefix}/_versions")
        for key in versions:
            found = objects.get(key) if layout.version_place(key) else None
            named = set() if found is None else roots(found.content, layout.MANIFEST)
            if named:
                return min(named)
    return root_of(address)


def _relocate(address: Address, objects: ObjectStore, place: Place, lock: CommitLock) -> None:
    """Give the versions of all branches the address at which the graph lies. If that is interrupted, the next one
    who opens the graph for writing goes on."""
    moving = place.moved_to(root_of(address))
    lock.verify()
    write_place(objects, moving)
    hit("move.after_note")
    for folder in _TABLES:
        for key in objects.list(folder):
            made = layout.version_place(key)
            if made is not None and made[1] is not None:
                _rewrite(objects, key, made[0], moving.root)
    lock.verify()
    hit("move.before_end")
    write_place(objects, replace(moving, state=PlaceState.WHOLE))


def _rewrite(objects: ObjectStore, key: str, location: str, root: str) -> None:
    from omnigraph.storage.files.versionfiles import relocated

    found = objects.get(key)
    if found is None:
        return
    try:
        moved = relocated(found.content, location, root)
    except ValueError as error:
        raise ObjectDamaged(key, str(error)) from error
    if moved != found.content:
        objects.put(key, moved)
        hit("move.after_version")
