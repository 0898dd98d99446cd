"""Which staged rows break a rule together with other rows, found in the memory of this process.

Of records with one id, or one unique value, the first stays; committed rows stay before all records. Nodes are
decided first, so that an edge to a rejected node is rejected too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.load.checking.bad_records import RejectedRow
from omnigraph.bulk.load.checking.checks import StagedLoad
from omnigraph.bulk.load.checking.joins import NoJoins
from omnigraph.bulk.load.checking.rejecting import Rejected, rejected_rows
from omnigraph.bulk.load.options import Mode
from omnigraph.bulk.masks import ExcludedRows, packed_mask
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.read.values.exact import ExactIndex

_Positions = npt.NDArray[np.int64]
_NULL: Final = -1
"""The code of a group without a value."""
Reasons = tuple[_Positions, Sequence[str]]
"""Rows by their positions among those that are loaded, and why they are rejected."""
Finder = Callable[[StagedLoad, str], Reasons]


class LocalJoins(NoJoins):
    """The joins of a load in this process: its keys are in its memory, so only rejected rows are looked for."""

    def rejected(self, load: StagedLoad) -> tuple[ExcludedRows, Rejected]:  # type: ignore[override]
        """The staged rows that must be skipped, with the reasons, by slice."""
        return rejected_rows(load, _finders, _found)


def _found(find: Finder, load: StagedLoad, table_key: str, rows: Rejected) -> ExcludedRows:
    return _collected(load, table_key, find(load, table_key), rows)


def _finders(load: StagedLoad, table_key: str) -> Iterator[Finder]:
    """The rules of a table, in the order in which they are applied."""
    entity = load.snapshot.entity(table_key)
    if load.has_explicit_ids(table_key) and load.mode is not Mode.MERGE:
        yield _repeated
        if load.mode is Mode.APPEND and load.snapshot.rows(table_key):
            yield _existing
    if isinstance(entity, EdgeType):
        yield partial(_dangling, "src")
        yield partial(_dangling, "dst")
    for group in entity.uniques:
        yield partial(_shared, group)
    if isinstance(entity, EdgeType) and entity.maximum is not None:
        yield partial(_too_many, entity, entity.maximum)


def _collected(
    load: StagedLoad, table_key: str, found: Reasons, rows: dict[int, list[RejectedRow]]
) -> ExcludedRows:
    """Masks of the rows that were found, which are added to ``rows`` by slice."""
    positions, reasons = found
    masks: dict[str, bytes] = {}
    start = 0
    for file in load.files[table_key]:
        kept = load.excluded.kept(file)
        low, high = np.searchsorted(positions, (start, start + len(kept)))
        own = kept[positions[low:high] - start]
        start += len(kept)
        if len(own):
            mask = np.zeros(file.rows, bool)
            mask[own] = True
            masks[file.name] = packed_mask(mask)
            rows.setdefault(file.slice, []).extend(
                RejectedRow(table_key, file.first + at, reason)
                for at, reason in zip(own.tolist(), reasons[low:high], strict=True)
            )
    return ExcludedRows(masks)


def _repeated(load: StagedLoad, table_key: str) -> Reasons:
    ids = load.keys(table_key, ["id"])["id"].combine_chunks()
    codes = _codes([ids])
    counts = np.bincount(codes)
    at = np.flatnonzero(_rank(codes) > 0)
    shown = zip(_taken(ids, at), counts[codes[at]].tolist(), strict=True)
    return at, [f"id '{row_id}' is in {count} records" for row_id, count in shown]


def _existing(load: StagedLoad, table_key: str) -> Reasons:
    ids = load.keys(table_key, ["id"])["id"].combine_chunks()
    existing = load.base().existing(table_key, ids)
    at = pc.indices_nonzero(pc.is_in(ids, value_set=existing)).to_numpy().astype(np.int64)
    return at, [f"id '{row_id}' exists already" for row_id in _taken(ids, at)]


def _dangling(side: str, load: StagedLoad, table_key: str) -> Reasons:
    edge = load.snapshot.entity(table_key)
    assert isinstance(edge, EdgeType)  # noqa: S101  only edges have ends
    end = edge.source if side == "src" else edge.target
    ends = load.keys(table_key, [side])[side].combine_chunks()
    missing = np.ones(len(ends), bool)
    for ids in _node_ids(load, f"node:{end}"):
        missing &= ExactIndex(ids).places(ends) < 0
    at = np.flatnonzero(missing)
    return at, [f"{side} '{value}' not found in {end}" for value in _taken(ends, at)]


def _node_ids(load: StagedLoad, table_key: str) -> Iterator[pa.Array]:
    """The ids of a node type once the load is applied: those that are staged, and those that stay."""
    if table_key in load.files:
        yield load.keys(table_key, ["id"])["id"].combine_chunks()
    if load.snapshot.rows(table_key) and not (table_key in load.files and load.mode is Mode.OVERWRITE):
        yield load.base().scan(table_key, ["id"])["id"].combine_chunks()


def _shared(group: Sequence[str], load: StagedLoad, table_key: str) -> Reasons:
    every = _surviving(load, table_key, group)
    codes = _codes([every.column(name).combine_chunks() for name in group])
    at = np.flatnonzero((_rank(codes) > 0) & (codes != _NULL)) - every.committed
    at = at[at >= 0]
    name = load.snapshot.entity(table_key).name
    reason = f"@unique violation on {name}.({', '.join(group)}): another row has the same value"
    return at, [reason] * len(at)


def _too_many(edge: EdgeType, maximum: int, load: StagedLoad, table_key: str) -> Reasons:
    every = _surviving(load, table_key, ["src"])
    sources = every.column("src").combine_chunks()
    at = np.flatnonzero(_rank(_codes([sources])) >= maximum)
    at = at[at >= every.committed]
    message = f"@card violation on edge {edge.name}: source '%s' has more than {maximum} edges"
    return at - every.committed, [message % source for source in _taken(sources, at)]


@dataclass(frozen=True, slots=True)
class _Every:
    """Committed rows that stay, ``committed`` of them, and then the staged rows."""

    rows: pa.Table
    committed: int

    def column(self, name: str) -> pa.ChunkedArray:
        return self.rows[name]


def _surviving(load: StagedLoad, table_key: str, columns: Sequence[str]) -> _Every:
    """The rows of a table once the load is applied: committed ones first, then staged ones in their order."""
    names = list(dict.fromkeys([*columns, "id"]))
    staged = load.keys(table_key, names)
    if load.mode is Mode.OVERWRITE or not load.snapshot.rows(table_key):
        return _Every(staged, 0)
    committed = load.base().scan(table_key, names)
    if load.mode is Mode.MERGE and load.has_explicit_ids(table_key):
        replaced = pc.is_in(committed["id"], value_set=staged["id"].combine_chunks())
        committed = committed.filter(pc.invert(replaced))
    fitting = committed.select(names).cast(staged.schema)
    return _Every(pa.concat_tables([fitting, staged]), committed.num_rows)


def _codes(columns: Sequence[pa.Array]) -> _Positions:
    """A number for each row that rows with equal values share, as 0.0 and -0.0 are; -1 if a value is null."""
    codes = np.zeros(len(columns[0]), np.int64)
    for values in columns:
        one_zero = pc.add(values, 0.0).cast(values.type) if pa.types.is_floating(values.type) else values
        own = pc.fill_null(one_zero.dictionary_encode().indices, _NULL).to_numpy().astype(np.int64)
        _, both = np.unique(codes * (len(codes) + 1) + own, return_inverse=True)
        codes = np.where((own == _NULL) | (codes == _NULL), _NULL, both)
    return codes


def _rank(codes: _Positions) -> _Positions:
    """How many rows with the same code come before each row."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(codes) else np.zeros(0, bool)
    first = np.maximum.accumulate(np.where(starts, np.arange(len(codes)), 0))
    rank = np.empty(len(codes), np.int64)
    rank[order] = np.arange(len(codes)) - first
    return rank


def _taken(values: pa.Array, at: _Positions) -> list[str]:
    taken: list[str] = values.take(pa.array(at)).to_pylist()
    return taken
