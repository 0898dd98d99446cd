"""Rules that concern a single row: required values, enums, `@range`, `@check`. Arrow in, violations out.

These functions need no graph and no store, so the same code checks a mutation here and a batch in a Spark task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ErrorGroup, Violation
from omnigraph.lang.schema.catalog import EntityType, NodeType
from omnigraph.lang.schema.patterns import matches
from omnigraph.lang.values import FLOATS
from omnigraph.write.tally import KEPT, Tally

SHOWN: Final = 20
"""How many violations an error lists, if the caller sets no other limit."""


class Violations:
    """Collects violations: up to ``limit`` are listed, all are counted, by reason too."""

    def __init__(self, limit: int = SHOWN) -> None:
        self.limit = limit
        self.listed: list[Violation] = []
        self.total = 0
        self.tally = Tally()

    def add(
        self,
        rows: pa.Table,
        broken: pa.ChunkedArray | pa.Array,
        rule: str,
        describe: Describe,
        reason: str,
        by: str | None = None,
    ) -> None:
        """Add a violation for each row of the mask ``broken``; ``describe`` makes the message of one row.

        ``reason`` is what all of them have in common; ``by`` names a column by whose ids they are counted as well.
        """
        count = pc.sum(broken).as_py() or 0
        if not count:
            return
        self.total += count
        wrong = rows.filter(broken)

        def violation(row: dict[str, Any]) -> Violation:
            table_key, message = describe(row)
            return Violation(table_key, row["id"], rule, message)

        room = max(1, self.limit - len(self.listed))
        found = [violation(row) for row in wrong.slice(0, room).to_pylist()]
        self.listed += found[: max(0, self.limit - len(self.listed))]
        ids = () if by is None else _by_id(wrong, by, rule, violation)
        self.tally.add(ErrorGroup(rule, reason, count, found[0], ids))

    def note(self, violations: Sequence[Violation], total: int, reason: str) -> None:
        """Add violations of one rule, of which there are ``total``."""
        if total:
            self.total += total
            self.listed += violations[: max(0, self.limit - len(self.listed))]
            self.tally.add(ErrorGroup(violations[0].rule, reason, total, violations[0]))


def _by_id(
    rows: pa.Table, column: str, rule: str, violation: Callable[[dict[str, Any]], Violation]
) -> tuple[ErrorGroup, ...]:
    """Rows by the ids of a column: how many have each, and the first that has it."""
    counted = rows.group_by(column, use_threads=False).aggregate([("id", "first"), ([], "count_all")])
    largest = counted.sort_by([("count_all", "descending"), (column, "ascending")]).slice(0, KEPT).to_pylist()
    return tuple(
        ErrorGroup(
            rule, str(row[column]), row["count_all"], violation({column: row[column], "id": row["id_first"]})
        )
        for row in largest
    )


Describe = Callable[[dict[str, object]], tuple[str, str]]
"""From a row that breaks a rule to its table key and the message."""


@dataclass(frozen=True, slots=True)
class _Broken:
    """The rows that break one rule of one column, as a mask. A message has the row's value between two texts."""

    column: str
    rule: str
    mask: pa.ChunkedArray
    before: str
    after: str

    @property
    def reason(self) -> str:
        """What is wrong with all of the rows."""
        return f"{self.before}{'' if self.rule == 'required' else '…'}{self.after}"


def check_rows(entity: EntityType, rows: pa.Table, found: Violations) -> None:
    """Check every rule that concerns single rows of one type."""
    for broken in _broken(entity, rows):
        concerned = rows.select(["id", broken.column])
        found.add(concerned, broken.mask, broken.rule, _describer(entity, broken), broken.reason)


def broken_rows(entity: EntityType, rows: pa.Table) -> pa.ChunkedArray:
    """The rows that break any rule that concerns single rows, as one mask."""
    masks = [broken.mask for broken in _broken(entity, rows)]
    none = pa.chunked_array([pa.array(np.zeros(rows.num_rows, bool))])
    return reduce(pc.or_, masks, none)


def _describer(entity: EntityType, broken: _Broken) -> Describe:
    def describe(row: dict[str, object]) -> tuple[str, str]:
        value = row[broken.column]
        shown = "" if value is None else str(value)
        return entity.table_key, f"{broken.before}{shown}{broken.after} (row '{row['id']}')"

    return describe


def _broken(entity: EntityType, rows: pa.Table) -> Iterator[_Broken]:
    for prop in entity.properties.values():
        name, values = prop.name, rows[prop.name]
        where = f"{entity.name}.{name}"
        if not prop.type.nullable and values.null_count:
            yield _Broken(name, "required", pc.is_null(values), where, " is required and has no value")
        if prop.type.members is not None:
            members = pa.array(prop.type.members, pa.string())
            mask = _present(values, pc.invert(pc.is_in(values, value_set=members)))
            yield _Broken(name, "enum", mask, f"{where}: '", f"' is not one of {', '.join(prop.type.members)}")
        if prop.type.is_plain and prop.type.scalar in FLOATS:
            mask = _present(values, pc.invert(pc.is_finite(values)))
            yield _Broken(name, "finite", mask, f"{where}: ", " is not a finite number")
    if isinstance(entity, NodeType):
        yield from _broken_constraints(entity, rows)


def _broken_constraints(node: NodeType, rows: pa.Table) -> Iterator[_Broken]:
    for bounds in node.ranges:
        values = rows[bounds.property]
        numbers = values.cast(pa.float64(), safe=False)
        mask = pc.is_nan(numbers)
        if bounds.low is not None:
            mask = pc.or_kleene(mask, pc.less(numbers, bounds.low))
        if bounds.high is not None:
            mask = pc.or_kleene(mask, pc.greater(numbers, bounds.high))
        low = "" if bounds.low is None else f"{bounds.low:g}"
        high = "" if bounds.high is None else f"{bounds.high:g}"
        message = f"@range violation on {node.name}.{bounds.property}: "
        yield _Broken(bounds.property, "range", _present(values, mask), message, f" is not in {low}..{high}")
    for column, patterns in node.checks.items():
        values = rows[column]
        for pattern in patterns:
            mask = _present(values, pc.invert(matches(values, pattern)))
            message = f"@check violation on {node.name}.{column}: '"
            yield _Broken(column, "check", mask, message, f"' does not match {pattern}")


def _present(values: pa.ChunkedArray, mask: pa.ChunkedArray) -> pa.ChunkedArray:
    """The mask, but false where the value is null."""
    return pc.fill_null(pc.and_kleene(pc.is_valid(values), mask), False)
