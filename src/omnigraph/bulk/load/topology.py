"""The topology that a load leaves behind, so that the first query after it does not derive it.

The checks of a load find out where the nodes at the ends of its edges are, and keep that in files of the job.
After the commit one task per edge type sorts the pairs and saves them; the driver holds none. A topology is saved
only if the committed tables consist of the files that were checked, in their order; if not, queries derive it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph.bulk.pieces import open_tables
from omnigraph.bulk.runner import Runner, TaskResult
from omnigraph.errors import OmniError
from omnigraph.lang.query.ir import Direction
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.data.adjacency import Adjacency
from omnigraph.read.data.bucketed import adjacency_of, turned
from omnigraph.read.data.cache import default_limit
from omnigraph.read.data.saved.shelf import save
from omnigraph.read.data.saved.topology import SavedTopology
from omnigraph.read.data.saved.versions import SavedTable
from omnigraph.read.values.columns import Ints, Positions
from omnigraph.storage import layout
from omnigraph.storage.files.mapped import mapped
from omnigraph.storage.objects import open_objects
from omnigraph.storage.rows.pieces import Piece, pieces_of

if TYPE_CHECKING:
    from omnigraph.bulk.load.checking.checks import StagedLoad

_BYTES_EACH: Final = 16
"""About how much memory an edge takes while its pairs are sorted in both directions and written."""
_KEPT_AT_A_TIME: Final = 1 << 19
"""The positions of so many ends are kept in one file."""
_SIDES: Final = ("src", "dst")


@dataclass(frozen=True, slots=True)
class EndsFile:
    """A file of the job with the positions of the nodes at one side of the edges of some staged files.

    Positions count the staged nodes of the type in the order of their files, and then the committed ones.
    """

    key: str
    table_key: str
    side: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _TopologyTask:
    """Saves the topology of one edge type. ``checked`` is the load as it was checked, ``snapshot`` a state of the
    branch after its commit."""

    checked: StagedLoad
    snapshot: Snapshot
    table_key: str
    ends: tuple[EndsFile, ...]


def kept_ends(load: StagedLoad, job: str, least: int) -> dict[str, str]:
    """The edge tables whose topology can be saved after the load, each with a prefix for its files of ends: tables
    with at least so many edges, all of them loaded now."""
    folder = f"{layout.job_folder(job)}/ends"
    found = {}
    for number, (table_key, files) in enumerate(load.files.items()):
        rows = sum(file.rows for file in files)
        is_new = load.replaces or not load.snapshot.rows(table_key)
        if table_key.startswith("edge:") and is_new and least <= rows <= default_limit() // _BYTES_EACH:
            found[table_key] = f"{folder}/{number}"
    return found


class KeptEnds:
    """Keeps the positions that a check of ends finds, some files of edges at a time, if the topology is to be
    saved."""

    def __init__(self, load: StagedLoad, table_key: str, side: str) -> None:
        self._objects = open_objects(load.snapshot.address)
        self._prefix = load.ends.get(table_key)
        self._table_key = table_key
        self._side = side
        self._names: list[str] = []
        self._places: list[Positions] = []
        self._kept: list[EndsFile] = []

    def add(self, name: str, places: Positions, *, is_whole: bool) -> None:
        """Add the positions of a file of edges. As long as they are not ``is_whole`` they are still changed."""
        if self._prefix is None:
            return
        self._names.append(name)
        self._places.append(places)
        if is_whole and sum(map(len, self._places)) >= _KEPT_AT_A_TIME:
            self._keep()

    def finish(self) -> tuple[EndsFile, ...]:
        """The files with all positions."""
        if self._names:
            self._keep()
        return tuple(self._kept)

    def _keep(self) -> None:
        key = f"{self._prefix}/{self._names[0]}.{self._side}"
        self._objects.hint(key, *(part.astype("<i4", copy=False).data.cast("B") for part in self._places))
        self._kept.append(EndsFile(key, self._table_key, self._side, tuple(self._names)))
        self._names, self._places = [], []


def save_topologies(
    runner: Runner, load: StagedLoad, ends: Sequence[EndsFile], snapshot: Callable[[], Snapshot]
) -> None:
    """Save the topologies whose ends are all known, after the commit; ``snapshot`` gives the branch as it is then.

    Whatever fails here leaves out what is never needed, and the load has succeeded.
    """
    known = {table_key: tuple(file for file in ends if file.table_key == table_key) for table_key in load.ends}
    whole = [table_key for table_key, found in known.items() if _cover(found, load, table_key)]
    if whole:
        with suppress(OmniError):
            after = snapshot()
            tasks = [_TopologyTask(load, after, table_key, known[table_key]) for table_key in whole]
            runner.run("saving topologies", _save, tasks)


def _cover(ends: Sequence[EndsFile], load: StagedLoad, table_key: str) -> bool:
    """Are the ends of all staged edges of a table known, on both sides?"""
    staged = sorted(file.name for file in load.files[table_key])
    return all(sorted(_names(ends, side)) == staged for side in _SIDES)


def _names(ends: Iterable[EndsFile], side: str) -> list[str]:
    return [name for file in ends if file.side == side for name in file.files]


def _save(task: _TopologyTask) -> TaskResult[bool]:
    """Sort the pairs of an edge type in both directions, and save them."""
    tables, snapshot = open_tables(task.snapshot.address), task.snapshot
    edge = snapshot.catalog.edges[task.table_key.partition(":")[2]]
    keys = {"src": f"node:{edge.source}", "dst": f"node:{edge.target}"}
    pieces = {key: _checked_pieces(task, key) for key in (task.table_key, *keys.values())}
    if any(found is None for found in pieces.values()):
        return TaskResult(False)
    saved = {key: _saved(snapshot, key, found or ()) for key, found in pieces.items()}
    edges = saved[task.table_key].size
    sources, targets = (saved[keys[side]].size for side in _SIDES)
    ends = partial(_pairs, task, ("src", keys["src"], sources), ("dst", keys["dst"], targets))
    out = adjacency_of(ends, sources, targets, edges)
    back = None if out is None else turned(out)
    if out is None or back is None:
        return TaskResult(False)
    pairs = {Direction.OUT: _arrays(out), Direction.IN: _arrays(back)}
    topology = SavedTopology(saved[task.table_key], saved[keys["src"]], saved[keys["dst"]], pairs)
    return TaskResult(save(tables, topology), rows=edges)


def _checked_pieces(task: _TopologyTask, table_key: str) -> tuple[Piece, ...] | None:
    """The pieces of a table, if they are those that were checked, in that order, and without deleted rows."""
    load, tables = task.checked, open_tables(task.snapshot.address)
    staged = load.files.get(table_key)
    expected: list[tuple[str, ...]] = []
    if load.snapshot.rows(table_key) and not (load.replaces and staged is not None):
        expected += [piece.files for piece in pieces_of(tables, load.snapshot.tables[table_key].ref)]
    expected += [(file.name,) for file in staged or ()]
    found = pieces_of(tables, task.snapshot.tables[table_key].ref)
    is_same = [piece.files for piece in found] == expected
    return found if is_same and not any(piece.deletions for piece in found) else None


def _saved(snapshot: Snapshot, table_key: str, pieces: tuple[Piece, ...]) -> SavedTable:
    none = np.zeros(0, dtype=np.int32)
    return SavedTable(snapshot.tables[table_key].ref, pieces, tuple(none for _ in pieces))


_End = tuple[str, str, int]
"""A side of edges, the table of the nodes there, and how many rows it has."""


def _pairs(task: _TopologyTask, near: _End, far: _End) -> Iterator[tuple[Positions, Positions]]:
    """The ends of all edges, in pieces of the same lengths."""
    lefts, rights = _positions(task, *near), _positions(task, *far)
    left = right = none = np.zeros(0, dtype=np.int32)
    while len(left := left if len(left) else next(lefts, none)):
        right = right if len(right) else next(rights, none)
        size = min(len(left), len(right))
        if not size:
            return
        yield left[:size], right[:size]
        left, right = left[size:], right[size:]


def _positions(task: _TopologyTask, side: str, node_key: str, size: int) -> Iterator[Positions]:
    """The nodes at one side of all edges by their positions in the table, where committed rows come first."""
    address = task.snapshot.address
    objects = open_objects(address)
    staged = sum(file.rows for file in task.checked.files.get(node_key, ()))
    committed = size - staged
    for file in task.ends:
        content = mapped(objects, address, file.key) if file.side == side else None
        if content is not None:
            places: Positions = np.frombuffer(content, dtype="<i4")
            moved = np.where(places < staged, places + committed, places - staged) if committed else places
            yield moved.astype(np.int32, copy=False)


def _arrays(adjacency: Adjacency) -> tuple[Ints, Positions, Ints]:
    assert adjacency.repeats is not None  # noqa: S101  distinct pairs that were built know them
    return adjacency.starts, adjacency.targets, adjacency.repeats
