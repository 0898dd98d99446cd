"""The difference of two states of a graph: entities that were inserted, updated and deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidArgument
from omnigraph.history.columns import Columns, columns_of, same_type
from omnigraph.history.tables import RowChanges, RowDeltas, Touched, changes_between, common_version, followed
from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType
from omnigraph.lang.schema.migration import steps_between
from omnigraph.lang.schema.steps import Step
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import TablePin
from omnigraph.read.result.cells import json_value, python_values
from omnigraph.storage.tables import TableRef, Tables

_ENDS: Final = ("src", "dst")


class Op(StrEnum):
    """What happened to an entity."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Change:
    """One entity that differs, with its columns before and after.

    An insert has no ``before`` and a delete no ``after``; ``changed`` names the properties that an update changed.
    """

    op: Op
    table_key: str
    id: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    changed: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "op": self.op.value,
            "table_key": self.table_key,
            "id": self.id,
            "changed": list(self.changed),
            "before": _json_image(self.before),
            "after": _json_image(self.after),
        }


def _json_image(image: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if image is None else {name: json_value(value) for name, value in image.items()}


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes are wanted: kinds (`node`, `edge`), types and operations; None means all of them.

    Types are ``tables``, by their keys, or by the stable ids in ``types``: in older states they may have had other
    names.
    """

    kinds: frozenset[str] | None = None
    tables: frozenset[str] | None = None
    ops: frozenset[Op] | None = None
    types: frozenset[int] | None = None

    def takes(self, table_key: str) -> bool:
        """May the table have changes that are wanted?"""
        kind = table_key.partition(":")[0]
        return (self.kinds is None or kind in self.kinds) and (self.tables is None or table_key in self.tables)

    def takes_type(self, entity: EntityType) -> bool:
        """May a type of some schema have changes that are wanted?"""
        if self.types is None:
            return self.takes(entity.table_key)
        kind = entity.table_key.partition(":")[0]
        return (self.kinds is None or kind in self.kinds) and entity.id in self.types


@dataclass(frozen=True, slots=True)
class Shifts:
    """Rows, by table, by which either of two states is to be taken as different from its snapshot."""

    before: Mapping[str, RowChanges] = field(default_factory=dict)
    after: Mapping[str, RowChanges] = field(default_factory=dict)

    @property
    def tables(self) -> set[str]:
        return {*self.before, *self.after}


UNSHIFTED: Final = Shifts()


@dataclass(frozen=True, slots=True)
class TableDiff:
    """The changes of one table, as Arrow: the rows before and after in the same order, one of each per change.

    ``ops`` has the operation of each, and ``changed`` for each property which of the rows differ in it.
    """

    table_key: str
    ids: pa.Array
    ops: pa.Array
    before: pa.Table
    after: pa.Table
    changed: dict[str, pa.Array]

    def counts(self) -> dict[str, int]:
        """How many changes there are of each operation."""
        found = {row["values"]: row["counts"] for row in pc.value_counts(self.ops).to_pylist()}
        return {op.value: found.get(op.value, 0) for op in Op}

    def slice(self, offset: int, length: int) -> TableDiff:
        """Some of the changes."""
        return TableDiff(
            self.table_key,
            self.ids.slice(offset, length),
            self.ops.slice(offset, length),
            self.before.slice(offset, length),
            self.after.slice(offset, length),
            {name: mask.slice(offset, length) for name, mask in self.changed.items()},
        )

    def rows(self) -> Iterator[Change]:
        """The changes in the order of ids."""
        names = self.before.column_names
        old = [python_values(self.before.column(name)) for name in names]
        new = [python_values(self.after.column(name)) for name in names]
        masks = {name: mask.to_pylist() for name, mask in self.changed.items()}
        for index, (entity_id, op) in enumerate(zip(self.ids.to_pylist(), self.ops.to_pylist(), strict=True)):
            before = None if op == Op.INSERT else {n: v[index] for n, v in zip(names, old, strict=True)}
            after = None if op == Op.DELETE else {n: v[index] for n, v in zip(names, new, strict=True)}
            changed = tuple(name for name, mask in masks.items() if mask[index]) if op == Op.UPDATE else ()
            yield Change(Op(op), self.table_key, entity_id, before, after, changed)


@dataclass(frozen=True, slots=True, repr=False)
class Diff:
    """What changed from one state of a graph to another, nodes before edges, each type by id."""

    before: Snapshot
    after: Snapshot
    tables: tuple[TableDiff, ...] = field(default=())

    @property
    def schema(self) -> tuple[Step, ...]:
        """The steps from the schema of one state to that of the other, if they have different ones."""
        if self.before.schema_digest == self.after.schema_digest:
            return ()
        return steps_between(self.before.catalog.ir, self.after.catalog.ir)

    def __len__(self) -> int:
        return sum(len(table.ids) for table in self.tables)

    def __iter__(self) -> Iterator[Change]:
        for table in self.tables:
            yield from table.rows()

    def __repr__(self) -> str:
        counted = ", ".join(f"{count} {op}" for op, count in self.stat["total"].items())
        return f"<Diff of {self.before.branch} and {self.after.branch}: {counted}>"

    @property
    def stat(self) -> dict[str, dict[str, int]]:
        """How many entities were inserted, updated and deleted, by table and in all."""
        by_table = {table.table_key: table.counts() for table in self.tables}
        total = {op.value: sum(counts[op.value] for counts in by_table.values()) for op in Op}
        return {**by_table, "total": total}

    def to_arrow(self) -> dict[str, pa.Table]:
        """The changes of each table: `op`, `id`, and each column before and after."""
        return {table.table_key: _as_arrow(table) for table in self.tables}

    def as_json(self) -> dict[str, Any]:
        return {
            "before": _named(self.before),
            "after": _named(self.after),
            "stat": self.stat,
            "schema": [step.as_json() for step in self.schema],
            "changes": [change.as_json() for change in self],
        }


def _named(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "branch": snapshot.branch,
        "manifest_version": snapshot.manifest_version,
        "graph_commit_id": snapshot.graph_commit_id,
    }


def _as_arrow(table: TableDiff) -> pa.Table:
    columns = {"op": table.ops, "id": table.ids}
    for name in table.before.column_names:
        if name != "id":
            columns[f"before.{name}"] = table.before[name]
            columns[f"after.{name}"] = table.after[name]
    return pa.table(columns)


def diff(
    tables: Tables,
    before: Snapshot,
    after: Snapshot,
    wanted: ChangeFilter,
    touched: Touched | None = None,
    shifts: Shifts = UNSHIFTED,
    terms: Snapshot | None = None,
) -> Diff:
    """Compare two snapshots of one graph, at the cost of what differs.

    Rows have the columns of the later state's schema, or of that of ``terms``. All rows of a type that is new
    are inserts; a type that was dropped is left out.
    """
    find = touched or RowDeltas(tables)
    terms = terms or after
    moved = {*moved_tables(before, after, wanted, terms), *filter(wanted.takes, shifts.tables)}
    found = (diff_table(tables, before, after, key, find, shifts, terms) for key in _in_order(moved))
    chosen = (with_ops(table, wanted.ops) for table in found)
    return Diff(before, after, tuple(table for table in chosen if len(table.ids)))


def moved_tables(
    before: Snapshot, after: Snapshot, wanted: ChangeFilter, terms: Snapshot | None = None
) -> list[str]:
    """The tables that may have changes: those whose versions differ, nodes before edges."""
    terms = terms or after
    keys = [entity.table_key for entity in terms.catalog.by_id.values() if wanted.takes_type(entity)]
    return [key for key in _in_order(keys) if _is_moved(before, after, terms, key)]


def _is_moved(before: Snapshot, after: Snapshot, terms: Snapshot, table_key: str) -> bool:
    old, new = pin_of(before, terms, table_key), pin_of(after, terms, table_key)
    return new is not None and (old is None or old.ref != new.ref)


def pin_of(state: Snapshot, terms: Snapshot, table_key: str) -> TablePin | None:
    """The table of a type in a state, whatever its key is there; None if the state does not have it."""
    if state.schema_digest == terms.schema_digest:
        return state.tables.get(table_key)
    there = same_type(state.catalog, terms.catalog, terms.entity(table_key))
    return None if there is None else state.tables.get(there.table_key)


def _in_order(keys: Iterable[str]) -> list[str]:
    return sorted(keys, key=lambda key: (key.startswith("edge:"), key))


def diff_table(
    tables: Tables,
    before: Snapshot,
    after: Snapshot,
    table_key: str,
    touched: Touched,
    shifts: Shifts = UNSHIFTED,
    terms: Snapshot | None = None,
) -> TableDiff:
    """Compare one table of two snapshots, as far as the rows ``touched`` finds."""
    terms = terms or after
    entity = terms.entity(table_key)
    old, new = pin_of(before, terms, table_key), pin_of(after, terms, table_key)
    columns = columns_of(tables, terms.catalog, entity, (terms, after, before))
    if old is not None and new is not None and _can_be_followed(tables, old.ref, new.ref, columns):
        changes = changes_between(tables, old.ref, new.ref, columns, touched)
    else:
        changes = RowChanges(_whole(tables, old, columns), _whole(tables, new, columns))
    if table_key in shifts.before:
        changes = followed(shifts.before[table_key].reverse, changes)
    if table_key in shifts.after:
        changes = followed(changes, shifts.after[table_key])
    return compare_rows(entity, changes)


def _can_be_followed(tables: Tables, old: TableRef, new: TableRef, columns: Columns) -> bool:
    """Do the rows that were written since tell all that differs? Not if a property was dropped that the other
    state still has: that took its values from rows without writing them."""
    if old.location != new.location:
        return False
    there, here = (columns.at(tables.open(ref), ref.location).keys() for ref in (old, new))
    if here <= there:
        return True
    shared = common_version(tables, old, new)
    return not (here - there) & columns.at(tables.open(shared), shared.location).keys()


def _whole(tables: Tables, pin: TablePin | None, columns: Columns) -> pa.Table:
    """All rows of a table that has no version in common with the one it is compared with."""
    if pin is None:
        return columns.schema.empty_table()
    names = columns.at(tables.open(pin.ref), pin.location)
    rows = tables.scan(pin.ref, list(dict.fromkeys(names.values())), whole_blobs=True).read_all()
    return columns.translated(rows, names)


def compare_rows(entity: EntityType, changes: RowChanges) -> TableDiff:
    """Rows before and after by id, with those that are equal left out."""
    ids = changes.ids
    old_at = pc.index_in(ids, value_set=changes.before["id"].combine_chunks())
    new_at = pc.index_in(ids, value_set=changes.after["id"].combine_chunks())
    before, after = changes.before.take(old_at), changes.after.take(new_at)
    is_new, is_gone = pc.is_null(old_at), pc.is_null(new_at)
    own = [name for name in entity.columns if name != "id"]
    changed = {name: differs(before[name].combine_chunks(), after[name].combine_chunks()) for name in own}
    touched = np.zeros(len(ids), bool)
    for mask in changed.values():
        touched |= mask.to_numpy(zero_copy_only=False)
    updated = pa.array(touched)
    ops = pc.if_else(is_new, Op.INSERT.value, pc.if_else(is_gone, Op.DELETE.value, Op.UPDATE.value))
    kept = pc.or_(pc.or_(is_new, is_gone), updated)
    shown = {name: mask.filter(kept) for name, mask in changed.items() if is_shown(entity, name)}
    return TableDiff(
        entity.table_key, ids.filter(kept), ops.filter(kept), before.filter(kept), after.filter(kept), shown
    )


def is_shown(entity: EntityType, name: str) -> bool:
    """Is a column a property, or an end of an edge, and not one of the engine's own?"""
    return name in entity.properties or (isinstance(entity, EdgeType) and name in _ENDS)


def with_ops(found: TableDiff, ops: Collection[Op] | None) -> TableDiff:
    """The changes of some operations."""
    if ops is None:
        return found
    kept = pc.is_in(found.ops, value_set=pa.array([op.value for op in ops], pa.string()))
    return TableDiff(
        found.table_key,
        found.ids.filter(kept),
        found.ops.filter(kept),
        found.before.filter(kept),
        found.after.filter(kept),
        {name: mask.filter(kept) for name, mask in found.changed.items()},
    )


def differs(left: pa.Array, right: pa.Array) -> pa.Array:
    """Where two columns differ, bit for bit: null is not empty, and NaN equals itself."""
    if pa.types.is_fixed_size_list(left.type):
        return _vectors_differ(left, right)
    if pa.types.is_nested(left.type):
        return _nested_differs(left, right)
    if pa.types.is_floating(left.type):
        left, right = _bits(left), _bits(right)
    equal = pc.fill_null(pc.equal(left, right), False)
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.invert(pc.or_(equal, both_null))


def _bits(column: pa.Array) -> pa.Array:
    """Floats as integers with the same bits, in which equal means identical."""
    kind = pa.int32() if column.type == pa.float32() else pa.int64()
    return column.view(kind)


def _vectors_differ(left: pa.Array, right: pa.Array) -> pa.Array:
    """Where two columns of vectors differ in any bit; the items of a vector are never null."""
    one, other = _vector_bits(left), _vector_bits(right)
    nulls = [pc.is_null(side).to_numpy(zero_copy_only=False) for side in (left, right)]
    return pa.array((nulls[0] != nulls[1]) | (~nulls[0] & (one != other).any(axis=1)))


def _vector_bits(column: pa.Array) -> npt.NDArray[np.int32]:
    """The vectors of a column, one per row, as integers with the same bits."""
    size = column.type.list_size
    items = column.values.slice(column.offset * size, len(column) * size)
    bits: npt.NDArray[np.int32] = items.view(pa.int32()).to_numpy(zero_copy_only=False)
    return bits.reshape(len(column), size)


def _nested_differs(left: pa.Array, right: pa.Array) -> pa.Array:
    """Where two columns of lists differ: in their lengths, or in an item."""
    one, other = pc.list_value_length(left), pc.list_value_length(right)
    lengths = differs(one, other).to_numpy(zero_copy_only=False)
    nulls = pc.is_null(left).to_numpy(zero_copy_only=False) != pc.is_null(right).to_numpy(zero_copy_only=False)
    apart = lengths | nulls
    same = np.flatnonzero(~apart & pc.is_valid(left).to_numpy(zero_copy_only=False))
    rows = pa.array(same)
    mine, theirs = left.take(rows), right.take(rows)
    if len(rows):
        items = differs(pc.list_flatten(mine), pc.list_flatten(theirs)).to_numpy(zero_copy_only=False)
        parents = pc.list_parent_indices(mine).to_numpy()
        apart[same[np.unique(parents[items])]] = True
    return pa.array(apart)


def filtered(
    kinds: Sequence[str] | None, tables: Sequence[str] | None, ops: Sequence[str] | None, catalog: Catalog
) -> ChangeFilter:
    """A filter from the names that callers give; those of types are of one schema."""
    check_filter_names(kinds, ops)
    return ChangeFilter(
        None if kinds is None else frozenset(kinds),
        None if tables is None else frozenset(tables),
        None if ops is None else frozenset(Op(op) for op in ops),
        None if tables is None else frozenset(catalog.entity(key).id for key in tables),
    )


def check_filter_names(kinds: Sequence[str] | None, ops: Sequence[str] | None) -> None:
    """InvalidArgument for a kind or an operation that there is not."""
    _require_known("kinds", kinds, ("node", "edge"))
    _require_known("ops", ops, tuple(Op))


def _require_known(argument: str, names: Sequence[str] | None, known: Sequence[str]) -> None:
    for name in names or ():
        if name not in known:
            raise InvalidArgument(argument, f"there is no '{name}'; there are {', '.join(known)}")
