"""Do the rows that are there keep the rules of a new schema?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from omnigraph.errors import ConstraintViolation
from omnigraph.lang.schema.catalog import EdgeType, EntityType, NodeType
from omnigraph.storage.stage.columns import ComputedColumn, KeptColumn
from omnigraph.write.base import Base
from omnigraph.write.delta import TableDelta
from omnigraph.write.evaluator import check_cardinality, check_unique
from omnigraph.write.evolution.tables import TableChange
from omnigraph.write.rules import Violations, check_rows


def has_new_rules(change: TableChange) -> bool:
    """Do rows have to be read, to see whether they keep the rules?"""
    return bool(_names_with_new_rules(change) or _new_groups(change) or _has_new_bounds(change))


def check_table(change: TableChange, before: Base, after: Base, found: Violations) -> None:
    """Check the rows of a table against the rules that are new, and only those.

    ``before`` is the branch with its present schema, ``after`` the same one as if the new schema were accepted.
    """
    entity = change.after
    if before.is_empty(change.before.table_key):
        return
    names = _names_with_new_rules(change)
    for rows in rows_after(change, before, names) if names else ():
        check_rows(narrowed(entity, names), rows, found)
    for columns in _new_groups(change):
        rows = pa.concat_tables(rows_after(change, before, columns))
        check_unique(TableDelta(entity.table_key, rows, replaces=True), columns, after, found)
    if _has_new_bounds(change):
        assert isinstance(entity, EdgeType)  # noqa: S101  only edges have a cardinality
        sources = pa.concat_tables(rows_after(change, before, ("src",)))
        edges = TableDelta(entity.table_key, sources, replaces=True)
        check_cardinality(entity, edges, {entity.table_key: edges}, after, found)


def require_kept(found: Violations) -> None:
    """Raise ConstraintViolation if any row breaks a rule."""
    if found.total:
        raise ConstraintViolation(found.listed, found.total, found.tally.summary())


def _names_with_new_rules(change: TableChange) -> list[str]:
    """The properties of which single values have to be looked at."""
    old, new = change.before, change.after
    names: set[str] = set()
    by_id = {prop.id: prop for prop in old.properties.values()}
    for prop in new.properties.values():
        before = by_id.get(prop.id)
        if not prop.type.nullable and (before is None or before.type.nullable):
            names.add(prop.name)
    if isinstance(new, NodeType) and isinstance(old, NodeType):
        renamed = _old_names(change)
        ranges = {(rule.property, rule.low, rule.high) for rule in old.ranges}
        names |= {
            rule.property for rule in new.ranges if (renamed.get(rule.property), rule.low, rule.high) not in ranges
        }
        for name, patterns in new.checks.items():
            if not set(patterns) <= set(old.checks.get(renamed.get(name, ""), ())):
                names.add(name)
    return sorted(names)


def _new_groups(change: TableChange) -> list[tuple[str, ...]]:
    """The groups of properties that have to be unique from now on."""
    renamed = {**_old_names(change), "src": "src", "dst": "dst"}
    known = {frozenset(group) for group in change.before.uniques}
    return [group for group in change.after.uniques if frozenset(renamed.get(c, "") for c in group) not in known]


def _has_new_bounds(change: TableChange) -> bool:
    """Does a source of edges have a narrower number of them from now on?"""
    old, new = change.before, change.after
    if not isinstance(old, EdgeType) or not isinstance(new, EdgeType):
        return False
    is_lower = new.maximum is not None and (old.maximum is None or new.maximum < old.maximum)
    return is_lower or new.minimum > old.minimum


def _old_names(change: TableChange) -> dict[str, str]:
    """The old names of the properties, by their new ones."""
    by_id = {prop.id: prop.name for prop in change.before.properties.values()}
    return {prop.name: by_id[prop.id] for prop in change.after.properties.values() if prop.id in by_id}


def narrowed(entity: EntityType, names: Sequence[str]) -> EntityType:
    """The type with the rules of some properties."""
    properties = {name: entity.properties[name] for name in names}
    if isinstance(entity, EdgeType):
        return replace(entity, properties=properties)
    ranges = tuple(rule for rule in entity.ranges if rule.property in properties)
    checks = {name: patterns for name, patterns in entity.checks.items() if name in properties}
    return replace(entity, properties=properties, ranges=ranges, checks=checks)


def whole_rows(change: TableChange, base: Base) -> Iterator[pa.Table]:
    """All rows of a table as they will be under the new schema."""
    return rows_after(change, base, change.after.columns)


def rows_after(change: TableChange, base: Base, names: Sequence[str]) -> Iterator[pa.Table]:
    """Some columns of all rows, with their ids, as they will be under the new schema."""
    wanted = ["id", *(name for name in names if name != "id")]
    columns = {column.field.name: column for column in change.columns or ()}
    needs: set[str] = {"id"}
    for name in wanted:
        match columns.get(name):
            case KeptColumn(old):
                needs.add(old)
            case ComputedColumn(_, more, _):
                needs |= set(more)
            case None:
                needs.add(name)
    key = change.before.table_key
    for batch in base.repository.tables.scan(base.ref(key), sorted(needs), whole_blobs=True):
        made = []
        for name in wanted:
            match columns.get(name):
                case KeptColumn(old):
                    made.append(batch[old])
                case ComputedColumn(_, _, compute):
                    made.append(compute(batch))
                case None:
                    made.append(batch[name])
                case empty:
                    made.append(pa.nulls(batch.num_rows, empty.field.type))
        yield pa.Table.from_arrays(made, names=wanted)
