"""The rules of the schema, over the rows that are there: values, keys, unique groups, ends of edges, cardinality.

These are the evaluator's own rules. Tables are read in pieces, so that memory does not grow with them, and without
indexes, which may be what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OmniError
from omnigraph.formats.jsonl.columns import key_ids
from omnigraph.lang.schema.catalog import EdgeType, EntityType, NodeType, Property
from omnigraph.lang.values import FLOATS
from omnigraph.maintenance.doctor.examination import Examination, ExaminedBranch, ExaminedTable
from omnigraph.maintenance.doctor.pieces import ROWS_PER_PIECE, parts_of, pieces_of, rows_of
from omnigraph.maintenance.doctor.report import Finding, Severity
from omnigraph.storage.tables import TableRef
from omnigraph.write.base import Base
from omnigraph.write.delta import TableDelta, one_chunk
from omnigraph.write.evaluator import check_cardinality, check_unique, note_dangling
from omnigraph.write.evolution.rules import narrowed
from omnigraph.write.rules import Violations, check_rows

_REMEDY = "correct the rows with `omnigraph mutate` or `omnigraph load --mode merge`"
TABLE_RULES: Final = ("value_rule", "key_mismatch", "duplicate_id", "duplicate_value", "cardinality")
"""The codes of findings about the rows of one table."""

ROWS_AT_ONCE: Final = 65_536
"""Of so many rows the values are checked together."""

_LISTED: Final = 1


def check_rules(exam: Examination, rows_per_piece: int = ROWS_PER_PIECE) -> Iterator[Finding]:
    """Check all rows of all tables of the newest states."""
    branches = {each.branch.name: each for each in exam.branches}
    checked: set[tuple[TableRef, TableRef, str]] = set()
    for table in exam.heads("rules"):
        examined = branches[table.shown]
        if table.entity is None or table.pin.ref in exam.unreadable:
            continue
        base = Base(exam.repository, examined.branch, examined.snapshot(exam.repository))
        rules = _TableRules(base, table.pin.ref, table.entity, rows_per_piece)
        try:
            rules.check()
        except OmniError as error:
            exam.unreadable.add(table.pin.ref)
            yield _unreadable(table, error)
            continue
        for code, found in rules.broken.items():
            yield from _finding(table, code, found)
    for examined in exam.branches:
        yield from _ends(exam, examined, checked, rows_per_piece)


def _unreadable(table: ExaminedTable, error: OmniError) -> Finding:
    remedy = "see what `omnigraph doctor --check files` finds"
    return Finding("table_unreadable", Severity.ERROR, str(error), remedy, table.shown, table.table_key)


def _finding(table: ExaminedTable, code: str, found: Violations) -> Iterator[Finding]:
    """What rows break of one kind of rule: the first of them is shown, all are counted."""
    if not found.total:
        return
    more = f", and {found.total - 1} more" if found.total > 1 else ""
    message = f"{found.listed[0].message}{more}"
    yield Finding(code, Severity.ERROR, message, _REMEDY, table.shown, table.table_key, count=found.total)


class _TableRules:
    """The rules that concern one table alone. ``broken`` has what breaks them, by the code of the finding."""

    def __init__(self, base: Base, ref: TableRef, entity: EntityType, rows_per_piece: int) -> None:
        self._base = base
        self._tables = base.repository.tables
        self._ref = ref
        self._entity = entity
        self._rows_per_piece = rows_per_piece
        self.broken = {code: Violations(_LISTED) for code in TABLE_RULES}

    def check(self) -> None:
        """Check values row by row, then groups of values, piece by piece."""
        entity, names = self._entity, _ruled(self._entity)
        ruled = narrowed(entity, names)
        wanted = [*dict.fromkeys(["id", *names, *entity.key])]
        for rows in parts_of(self._tables, self._ref, wanted, ROWS_AT_ONCE):
            check_rows(ruled, rows, self.broken["value_rule"])
            if entity.key:
                self._check_keys(entity, rows)
        self._check_ids()
        for group in entity.uniques:
            self._check_group(group)
        if isinstance(entity, EdgeType) and (entity.minimum or entity.maximum is not None):
            self._check_cardinality(entity)

    def _check_keys(self, entity: EntityType, rows: pa.Table) -> None:
        """The id of a node or edge is the one that its key gives."""
        keys = key_ids(entity, {name: one_chunk(rows[name]) for name in entity.key})
        broken = pc.fill_null(pc.not_equal(rows["id"], keys), False)
        self.broken["key_mismatch"].add(
            rows.select(["id", *entity.key]),
            broken,
            "key",
            lambda row: (entity.table_key, f"{entity.name} '{row['id']}' has not the id that its key gives"),
            f"{entity.name} has not the id that its key gives",
        )

    def _check_ids(self) -> None:
        """No two rows have the same id."""
        for piece in pieces_of(self._tables, self._ref, "id", self._rows_per_piece):
            ids = rows_of(self._tables, self._ref, ["id"], piece, "id")
            counted = ids.group_by("id").aggregate([([], "count_all")])
            twice = counted.filter(pc.greater(counted["count_all"], 1)).sort_by("id")
            reason = f"{self._entity.name} is there more than once"
            self.broken["duplicate_id"].add(twice, pc.is_valid(twice["id"]), "id", self._twice, reason)

    def _twice(self, row: dict[str, object]) -> tuple[str, str]:
        return self._entity.table_key, f"{self._entity.name} '{row['id']}' is there {row['count_all']} times"

    def _check_group(self, group: Sequence[str]) -> None:
        for piece in pieces_of(self._tables, self._ref, group[0], self._rows_per_piece):
            columns = list(dict.fromkeys(["id", *group]))
            rows = rows_of(self._tables, self._ref, columns, piece, group[0])
            delta = TableDelta(self._entity.table_key, rows, replaces=True)
            check_unique(delta, group, self._base, self.broken["duplicate_value"])

    def _check_cardinality(self, edge: EdgeType) -> None:
        for piece in pieces_of(self._tables, self._ref, "src", self._rows_per_piece):
            rows = rows_of(self._tables, self._ref, ["id", "src"], piece, "src")
            edges = TableDelta(edge.table_key, rows, replaces=True)
            check_cardinality(edge, edges, {edge.table_key: edges}, self._base, self.broken["cardinality"])


def _ruled(entity: EntityType) -> list[str]:
    """The properties that rules of single rows are about."""
    names = {p.name for p in entity.properties.values() if _has_rule(p)}
    if isinstance(entity, NodeType):
        names |= {rule.property for rule in entity.ranges} | {*entity.checks}
    return sorted(names)


def _has_rule(prop: Property) -> bool:
    kind = prop.type
    return not kind.nullable or kind.members is not None or (kind.is_plain and kind.scalar in FLOATS)


def _ends(
    exam: Examination, examined: ExaminedBranch, checked: set[tuple[TableRef, TableRef, str]], rows_per_piece: int
) -> Iterator[Finding]:
    """Every edge of a branch leads from a node that exists to one that exists."""
    catalog, pins, tables = examined.catalog, examined.state.tables, exam.repository.tables
    for edge in () if catalog is None else catalog.edges.values():
        for column, end in (("src", edge.source), ("dst", edge.target)):
            own, nodes = pins.get(edge.table_key), pins.get(f"node:{end}")
            if own is None or nodes is None or {own.ref, nodes.ref} & exam.unreadable:
                continue
            if (own.ref, nodes.ref, column) in checked:
                continue
            checked.add((own.ref, nodes.ref, column))
            found = Violations(_LISTED)
            for piece in pieces_of(tables, nodes.ref, "id", rows_per_piece):
                ids = one_chunk(rows_of(tables, nodes.ref, ["id"], piece, "id")["id"])
                for some in parts_of(tables, own.ref, ["id", column], rows_per_piece):
                    edges = piece.of(some, column)
                    ends = one_chunk(pc.unique(edges[column]))
                    missing = ends.filter(pc.invert(pc.is_in(ends, value_set=ids)))
                    if len(missing):
                        note_dangling(edge, column, edges, missing, found)
            table = ExaminedTable(examined.branch.name, own, edge, examined.state.schema)
            yield from _finding(table, "dangling_edge", found)
