"""Saving the topology of large edge tables, so that the first query of a process does not derive it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from omnigraph.errors import StorageError
from omnigraph.lang.query.ir import Direction
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.data.adjacency import Adjacency
from omnigraph.read.data.cache import Cache, QueryCache, default_limit
from omnigraph.read.data.saved.shelf import save, saved_keys
from omnigraph.read.data.saved.topology import SavedTopology
from omnigraph.read.data.saved.versions import SavedTable
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.values.columns import Ints, Positions
from omnigraph.settings import ReadSettings
from omnigraph.storage import layout

_NEVER: Final = 2**63
"""Topology that is to be saved is derived from the tables: positions are then those of the pieces in order."""

_BYTES_EACH: Final = 32
"""About how much memory an edge takes while its topology is derived and written."""


def save_topologies(repository: Repository, branch: Branch, settings: ReadSettings) -> list[str]:
    """Save the topology of the large edge tables that a branch owns, where that was not done for these versions;
    the edge types. A store that refuses it is left without: topologies are derived when they are needed."""
    snapshot = repository.snapshot(branch)
    wanted = [name for name in snapshot.catalog.edges if _is_wanted(repository, branch, snapshot, name, settings)]
    saved = []
    for name in wanted:
        try:
            if _save(repository, snapshot, name, settings):
                saved.append(name)
        except StorageError:
            continue
    return saved


def _is_wanted(
    repository: Repository, branch: Branch, snapshot: Snapshot, name: str, settings: ReadSettings
) -> bool:
    edge = snapshot.catalog.edges[name]
    pin = snapshot.tables[edge.table_key]
    if pin.row_count < settings.save_from or pin.table_branch != branch.native:
        return False
    if pin.row_count * _BYTES_EACH > default_limit():
        return False
    ends = (snapshot.catalog.nodes[edge.source], snapshot.catalog.nodes[edge.target])
    sources, targets = (snapshot.tables[node.table_key].table_version for node in ends)
    key = layout.topology_object(pin.ref.location, pin.ref.branch, (pin.table_version, sources, targets))
    return key not in saved_keys(repository.tables, pin.ref.location, pin.ref.branch)


def _save(repository: Repository, snapshot: Snapshot, name: str, settings: ReadSettings) -> bool:
    """Derive and save the topology of an edge type, unless some of its edges lack a node."""
    anew = replace(settings, save_from=_NEVER)
    tables = GraphTables(snapshot, repository.tables, QueryCache(Cache()), anew)
    edge = snapshot.catalog.edges[name]
    [edges], ends = tables.each_edges(name), (tables.nodes(edge.source), tables.nodes(edge.target))
    out, back = (tables.adjacency(name, way, edges=False) for way in (Direction.OUT, Direction.IN))
    if out.pairs + _further(out) != edges.count:
        return False
    pairs = {Direction.OUT: _arrays(out), Direction.IN: _arrays(back)}
    sources, targets = (SavedTable.of(table.placement) for table in ends)
    return save(repository.tables, SavedTopology(SavedTable.of(edges.placement), sources, targets, pairs))


def _further(adjacency: Adjacency) -> int:
    return 0 if adjacency.repeats is None else len(adjacency.repeats)


def _arrays(adjacency: Adjacency) -> tuple[Ints, Positions, Ints]:
    assert adjacency.repeats is not None  # noqa: S101  distinct pairs that were built know them
    return adjacency.starts, adjacency.targets, adjacency.repeats
