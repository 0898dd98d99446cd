"""Moving a staged change onto a newer state of its branch without preparing it again.

Writers of one process that wait for the same lock know each other's changes. Rows that are only added can be
committed on top of a change that does not touch them: the staged files are the same, and so is the outcome of all
checks. Anything else is prepared again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Catalog, EdgeType
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import ManifestState
from omnigraph.recovery.sidecar import TableMove
from omnigraph.storage.stage.changes import shrunk_fragments
from omnigraph.storage.tables import TableRef
from omnigraph.write.base import Base
from omnigraph.write.changes import Fold, Prepared, Ready, Result, StagedMove
from omnigraph.write.delta import TableDelta
from omnigraph.write.upkeep.folding import Folding

MOST_ROWS: Final = 1_000
"""A change of more rows is not remembered for other writers."""

Delta = Mapping[str, TableDelta]


@dataclass(frozen=True, slots=True)
class Footprint:
    """What changes touch that are made one after the other: the ids of the rows that they write, by table, and the
    tables that they take rows from."""

    ids: Mapping[str, pa.Array] = field(default_factory=dict)
    shrunk: frozenset[str] = frozenset()

    def and_then(self, delta: Delta) -> Footprint:
        """What is touched with one more change."""
        added = {key: change.ids for key, change in delta.items()}
        both = {key: pa.concat_arrays([self.ids[key], added[key]]) for key in added if key in self.ids}
        shrunk = (key for key, change in delta.items() if change.replaces or len(change.deletes))
        return Footprint({**self.ids, **added, **both}, self.shrunk.union(shrunk))


def remember(repository: Repository, native: str | None, version: int, prepared: Prepared[Result]) -> None:
    """Keep the change that made a version of a branch, for writers that have prepared theirs before."""
    rows = sum(change.upserts.num_rows + len(change.deletes) for change in prepared.delta.values())
    if rows <= MOST_ROWS and not prepared.stages and prepared.schema is None:
        repository.manifest.remember_change(native, version, Footprint().and_then(prepared.delta))


def rebased(
    ready: Ready[Result], state: ManifestState, folding: Folding, operation_id: str
) -> Ready[Result] | None:
    """A change on top of a newer state, staged or not; None if it has to be prepared again."""
    folding.begin()
    return moved_onto(ready, state, folding.reuse, operation_id) if can_follow(ready, state, Footprint()) else None


def can_follow(ready: Ready[Result], state: ManifestState, others: Footprint) -> bool:
    """Would a change be the same on top of a newer state, and after other changes that will be made there?"""
    base, prepared = ready.base, ready.prepared
    if not prepared.is_blind or prepared.stages or prepared.schema is not None:
        return False
    if state.schema != base.snapshot.schema_digest or not only_adds(ready):
        return False
    versions = range(base.snapshot.manifest_version + 1, state.version + 1)
    made = [base.repository.manifest.change_of(base.branch.native, version) for version in versions]
    return all(
        other is not None and _is_independent(prepared.delta, _as_footprint(other), base.catalog)
        for other in (*made, others)
    )


def moved_onto(ready: Ready[Result], state: ManifestState, fold: Fold, operation_id: str) -> Ready[Result] | None:
    """A change that can follow a state, on top of it; None if one of its tables lies elsewhere there."""
    base = ready.base
    newer = Base(base.repository, base.branch, base.repository.snapshot(base.branch, state))
    if not ready.is_staged:
        is_there = all(
            (newer.pin(key).location, newer.pin(key).table_branch)
            == (base.pin(key).location, base.pin(key).table_branch)
            for key in ready.prepared.tables
        )
        return replace(ready, base=newer) if is_there else None
    staged = list(_moved(ready, newer, fold, operation_id))
    return None if len(staged) != len(ready.staged) else replace(ready, base=newer, staged=staged)


def _as_footprint(remembered: object) -> Footprint:
    assert isinstance(remembered, Footprint)  # noqa: S101  only `remember` puts something there
    return remembered


def only_adds(ready: Ready[Result]) -> bool:
    """Does a change add rows, and nothing else?"""
    has_removed = any(change.replaces or len(change.deletes) for change in ready.prepared.delta.values())
    return not has_removed and all(shrunk_fragments(one.table.staged) == {} for one in ready.staged)


def _is_independent(added: Delta, other: Footprint, catalog: Catalog) -> bool:
    """Is it the same whether rows are added before other changes or after them?"""
    for table_key, change in added.items():
        entity = catalog.entity(table_key)
        ends = (f"node:{entity.source}", f"node:{entity.target}") if isinstance(entity, EdgeType) else ()
        if not other.shrunk.isdisjoint(ends):
            return False
        written = other.ids.get(table_key)
        if written is None:
            continue
        if table_key in other.shrunk or entity.uniques or _is_counted(entity):
            return False
        if _any_in(change.ids, written):
            return False
    return True


def _is_counted(entity: object) -> bool:
    """Is there a rule about how many edges a node has?"""
    return isinstance(entity, EdgeType) and (entity.minimum > 0 or entity.maximum is not None)


def _any_in(ids: pa.Array, others: pa.Array) -> bool:
    return bool(pc.any(pc.is_in(ids, value_set=others)).as_py())


def _moved(ready: Ready[Result], newer: Base, fold: Fold, operation_id: str) -> Iterator[StagedMove]:
    """The staged tables on top of the versions that a newer state has; one that lies elsewhere now is left out."""
    for one in ready.staged:
        pin, before, after = newer.pin(one.move.table_key), one.move.before, one.move.after
        if (pin.location, pin.table_branch) != (after.location, after.table_branch):
            return
        ref = TableRef(pin.location, pin.table_branch, pin.table_version)
        transaction = replace(one.table.staged.transaction, read_version=ref.version)
        staged = replace(one.table.staged, read_version=ref.version, transaction=transaction)
        rows = pin.row_count + one.table.rows - before.row_count
        versions = (staged, *fold(ref, staged, operation_id))
        move = TableMove(
            pin,
            replace(after, table_version=ref.version + len(versions), row_count=rows),
            tuple(version.transaction_id for version in versions),
        )
        yield StagedMove(replace(one.table, staged=staged, rows=rows), versions, move)
