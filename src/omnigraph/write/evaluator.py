"""The evaluator: checks a complete delta against a pinned snapshot, by every rule of the schema.

Rules of single rows come from `write.rules`. The rules here take several rows or several tables: keys, unique
groups, referential integrity, cardinality. Each looks up the committed rows it needs with an index probe if they
are few, and with one pass over one column if they are many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ConstraintViolation, KeyConflict, Violation
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.write.base import Base
from omnigraph.write.delta import TableDelta, one_chunk, without
from omnigraph.write.rules import SHOWN, Describe, Violations, check_rows

Delta = Mapping[str, TableDelta]
_NUMBER: Final = "row number"
"""The name of a helper column; no property can have it."""


def validate(delta: Delta, base: Base, limit: int = SHOWN) -> None:
    """Raise ConstraintViolation unless the graph keeps every rule after the delta; it lists ``limit`` of them."""
    found = Violations(limit)
    for table_key, change in delta.items():
        check_rows(base.entity(table_key), change.upserts, found)
    for table_key, change in delta.items():
        if change.strict:
            check_new(change, base, limit)
        for group in base.entity(table_key).uniques:
            check_unique(change, group, base, found)
    for table_key, change in delta.items():
        entity = base.entity(table_key)
        if isinstance(entity, EdgeType):
            check_endpoints(entity, change, delta, base, found)
            check_cardinality(entity, change, delta, base, found)
        else:
            check_kept_edges(entity, change, delta, base, found)
    if found.total:
        raise ConstraintViolation(found.listed, found.total, found.tally.summary())


def read_set(delta: Delta, catalog: Catalog) -> set[str]:
    """The tables that validation reads: the delta's own, the nodes of its edges, the edges of removed nodes."""
    read = set(delta)
    for table_key, change in delta.items():
        kind, _, name = table_key.partition(":")
        if kind == "edge" and change.upserts.num_rows:
            edge = catalog.edges[name]
            read |= {f"node:{edge.source}", f"node:{edge.target}"}
        if kind == "node" and (change.replaces or len(change.deletes)):
            read |= {edge.table_key for edge in catalog.incident[name]}
    return read


def check_new(change: TableDelta, base: Base, limit: int = SHOWN) -> None:
    """Raise KeyConflict if a strict insert has an id that exists."""
    taken = base.existing(change.table_key, change.ids)
    if len(taken):
        raise KeyConflict(change.table_key, taken.slice(0, limit).to_pylist(), len(taken))


def check_unique(change: TableDelta, group: Sequence[str], base: Base, found: Violations) -> None:
    """No two rows that are there after the change share the values of a group; a null makes a row exempt."""
    columns = [*group, "id"]
    mine = change.upserts.select(columns).drop_null()
    if not mine.num_rows:
        return
    together = mine
    if not change.replaces:
        wanted = {column: one_chunk(mine[column]) for column in group}
        kept = base.rows_with(change.table_key, wanted, columns)
        kept = without(kept, change.replaced)
        together = pa.concat_tables([mine, kept.cast(mine.schema)])
    # Of rows that share a value, the violation is reported for the last one that the change brings.
    brought = np.where(np.arange(together.num_rows) < mine.num_rows, np.arange(together.num_rows), -1)
    numbered = _one_zero(together).append_column(_NUMBER, pa.array(brought))
    counted = [("id", "min"), ("id", "max"), ("id", "count"), (_NUMBER, "max")]
    holders = numbered.group_by(list(group)).aggregate(counted)
    shared = holders.filter(pc.greater(holders["id_count"], 1))
    name = base.entity(change.table_key).name
    violations: list[Violation] = []
    for row in shared.slice(0, found.limit).to_pylist():
        message = unique_message(name, group, [row[column] for column in group], row["id_min"], row["id_max"])
        last = mine["id"][row[f"{_NUMBER}_max"]].as_py()
        violations.append(Violation(change.table_key, last, "unique", message))
    found.note(violations, shared.num_rows, unique_reason(name, group))


def unique_reason(name: str, group: Sequence[str]) -> str:
    """What is wrong with rows that share values which must be unique."""
    where = group[0] if len(group) == 1 else f"({', '.join(group)})"
    return f"@unique violation on {name}.{where}"


def unique_message(name: str, group: Sequence[str], values: Sequence[object], low: str, high: str) -> str:
    """The message about two rows that share values which must be unique."""
    value = str(values[0]) if len(group) == 1 else "(" + ", ".join(map(str, values)) + ")"
    return f"{unique_reason(name, group)}: value '{value}' held by '{low}' and '{high}'"


def _one_zero(rows: pa.Table) -> pa.Table:
    """The rows with -0.0 replaced by 0.0, so that both count as the same value."""
    for index, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            rows = rows.set_column(index, field, pc.add(rows.column(index), pa.scalar(0.0, field.type)))
    return rows


def check_endpoints(edge: EdgeType, change: TableDelta, delta: Delta, base: Base, found: Violations) -> None:
    """Every end of a new or changed edge is a node that exists after the change."""
    if not change.upserts.num_rows:
        return
    for column in ("src", "dst"):
        missing = missing_ends(edge, column, change.upserts[column], delta, base)
        if len(missing):
            note_dangling(edge, column, change.upserts.select(["id", column]), missing, found)


def missing_ends(edge: EdgeType, column: str, ends: pa.ChunkedArray, delta: Delta, base: Base) -> pa.Array:
    """The ends of edges, on one side, that are no nodes after the delta is applied."""
    node_type = edge.source if column == "src" else edge.target
    return _missing_nodes(f"node:{node_type}", ends, delta, base)


def note_dangling(edge: EdgeType, column: str, rows: pa.Table, missing: pa.Array, found: Violations) -> None:
    """Add a violation for each edge whose end on one side is missing; ``rows`` have that column and the id."""
    broken = pc.is_in(rows[column], value_set=missing)
    describe, reason = endpoint_describer(edge, column), endpoint_reason(edge, column)
    found.add(rows, broken, "endpoint", describe, reason, by=column)


def endpoint_reason(edge: EdgeType, column: str) -> str:
    """What is wrong with edges whose ends on one side are missing."""
    return f"{column} of edge {edge.name} not found in {edge.source if column == 'src' else edge.target}"


def endpoint_describer(edge: EdgeType, column: str) -> Describe:
    """Makes the message about an edge whose end on one side is missing."""
    node_type = edge.source if column == "src" else edge.target

    def describe(row: dict[str, object]) -> tuple[str, str]:
        return (
            edge.table_key,
            f"{column} '{row[column]}' not found in {node_type} (edge {edge.name} '{row['id']}')",
        )

    return describe


def _missing_nodes(table_key: str, ids: pa.ChunkedArray, delta: Delta, base: Base) -> pa.Array:
    """The distinct ids that no node has after the delta is applied."""
    change = delta.get(table_key)
    if change is not None:
        ids = ids.filter(pc.invert(pc.is_in(ids, value_set=change.ids)))
    unknown = one_chunk(pc.unique(ids))
    if not len(unknown) or (change is not None and change.replaces):
        return unknown
    present = base.existing(table_key, unknown)
    if change is not None and len(change.deletes):
        present = present.filter(pc.invert(pc.is_in(present, value_set=change.deletes)))
    return unknown.filter(pc.invert(pc.is_in(unknown, value_set=present)))


def check_kept_edges(node: NodeType, change: TableDelta, delta: Delta, base: Base, found: Violations) -> None:
    """No edge that the change keeps has an end that the change removes."""
    removed = change.deletes
    if change.replaces and not base.is_empty(change.table_key):
        before = one_chunk(base.scan(change.table_key, ["id"])["id"])
        removed = before.filter(pc.invert(pc.is_in(before, value_set=change.ids)))
    if not len(removed):
        return
    for edge in base.catalog.incident[node.name]:
        edges = delta.get(edge.table_key)
        if edges is not None and edges.replaces:
            continue
        for column, end in (("src", edge.source), ("dst", edge.target)):
            if end != node.name:
                continue
            kept = base.rows_with(edge.table_key, {column: removed}, ["id", column])
            if edges is not None:
                kept = without(kept, edges.replaced)
            every = pc.is_valid(kept["id"])
            describe, reason = endpoint_describer(edge, column), endpoint_reason(edge, column)
            found.add(kept, every, "endpoint", describe, reason, by=column)


def check_cardinality(edge: EdgeType, change: TableDelta, delta: Delta, base: Base, found: Violations) -> None:
    """Every source whose edges change has an allowed number of them afterwards."""
    if edge.minimum == 0 and edge.maximum is None:
        return
    after = change.upserts.select(["src"])
    touched = one_chunk(after["src"])
    if not change.replaces and not base.is_empty(edge.table_key):
        before = base.rows_with(edge.table_key, {"id": change.replaced}, ["src"])
        touched = pa.concat_arrays([touched, one_chunk(before["src"])])
        kept = without(base.rows_with(edge.table_key, {"src": touched}, ["id", "src"]), change.replaced)
        after = pa.concat_tables([after, kept.select(["src"]).cast(after.schema)])
    sources = pa.table({"src": pc.unique(touched)})
    nodes = delta.get(f"node:{edge.source}")
    if nodes is not None:
        sources = without(sources, nodes.deletes, "src")
    counts = after.group_by("src").aggregate([([], "count_all")])
    counted = sources.join(counts, "src", join_type="left outer")
    numbers = pc.fill_null(counted["count_all"], 0)
    for bound, broken in (
        (f"(max {edge.maximum})", _above(numbers, edge.maximum)),
        (f"(min {edge.minimum})", pc.less(numbers, edge.minimum)),
    ):
        wrong = counted.filter(broken).sort_by("src")
        violations = [
            Violation(
                edge.table_key,
                row["src"],
                "card",
                cardinality_message(edge, row["src"], row["count_all"] or 0, bound),
            )
            for row in wrong.slice(0, found.limit).to_pylist()
        ]
        found.note(violations, wrong.num_rows, cardinality_reason(edge, bound))


def cardinality_reason(edge: EdgeType, bound: str) -> str:
    """What is wrong with nodes that have too many edges, or too few."""
    return f"@card violation on edge {edge.name} {bound}"


def cardinality_message(edge: EdgeType, source: str, count: int, bound: str) -> str:
    """The message about a node with too many edges, or too few."""
    return f"@card violation on edge {edge.name}: source '{source}' has {count} edges {bound}"


def _above(numbers: pa.ChunkedArray, maximum: int | None) -> pa.ChunkedArray:
    """A mask of the numbers above a maximum; all false if there is none."""
    return pc.greater(numbers, numbers if maximum is None else maximum)
