"""The change that the records of a small load make, with the line of each record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.load.options import Mode
from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import ConstraintViolation, KeyConflict, RecordError, RecordProblem, Violation
from omnigraph.formats.jsonl.blocks import TypedRecords, read_block
from omnigraph.formats.jsonl.lines import Lines
from omnigraph.formats.rows import with_fresh_ids
from omnigraph.lang.schema.catalog import Catalog, EntityType, NodeType
from omnigraph.write.delta import TableDelta, last_per_id
from omnigraph.write.rules import SHOWN
from omnigraph.write.vectors import fill_vectors


@dataclass(frozen=True, slots=True)
class Places:
    """Where the records of a load stand: the ids of each table, and the line of each."""

    source: str
    tables: dict[str, tuple[pa.Array, Lines]] = field(default_factory=dict)

    def lines_of(self, table_key: str, row_id: str | None) -> list[int]:
        """The lines of the records with an id, in order."""
        ids, lines = self.tables.get(table_key, (None, None))
        if ids is None or lines is None or row_id is None:
            return []
        found: list[int] = lines[np.flatnonzero(pc.equal(ids, row_id).to_numpy(zero_copy_only=False))].tolist()
        return found

    def given_to(self, error: ConstraintViolation) -> ConstraintViolation:
        """The error with the place of each violation that a record stands for, in the order of lines."""
        placed = [self._placed(violation) for violation in error.violations]
        return ConstraintViolation(sorted(placed, key=_order), error.total)

    def _placed(self, violation: Violation) -> Violation:
        """A violation with the line of the last record of its row; that of a cardinality names a node's row."""
        lines = [] if violation.rule == "card" else self.lines_of(violation.table_key, violation.row_id)
        return replace(violation, source=self.source, line=lines[-1]) if lines else violation


def _order(violation: Violation) -> tuple[bool, int, str]:
    return violation.line is None, violation.line or 0, violation.rule


@dataclass(frozen=True, slots=True)
class LoadChange:
    """The change that loading records makes, where they stand, and the vectors that could not be computed."""

    delta: dict[str, TableDelta]
    places: Places
    unembedded: tuple[str, ...]


def read_records(content: bytes, catalog: Catalog, source: str, most: int = SHOWN) -> dict[str, TypedRecords]:
    """All records by table key; RecordError lists the first bad ones."""
    block = read_block(content, catalog)
    if block.unreadable:
        listed = [RecordProblem(source, bad.line, bad.column, bad.reason) for bad in block.unreadable[:most]]
        raise RecordError(listed, len(block.unreadable))
    return block.records


def change_of(
    records: Mapping[str, TypedRecords],
    mode: Mode,
    embedder: EmbeddingClient | None,
    source: str,
    most: int = SHOWN,
) -> LoadChange:
    """The change that loading the records makes."""
    delta: dict[str, TableDelta] = {}
    places = Places(source)
    unembedded: set[str] = set()
    for table_key, found in records.items():
        entity = found.entity
        missing, count = found.rows["id"].null_count, found.rows.num_rows
        rows = with_fresh_ids(found.rows).combine_chunks()
        places.tables[table_key] = rows["id"].combine_chunks(), found.lines
        if mode is not Mode.MERGE:
            _refuse_repeats(entity, places, most)
        if isinstance(entity, NodeType):
            rows, skipped = fill_vectors(entity, rows, dict.fromkeys(entity.embeds, True), embedder)
            unembedded.update(skipped)
        delta[table_key] = TableDelta(
            table_key,
            last_per_id(rows),
            pa.array([], pa.string()),
            replaces=mode is Mode.OVERWRITE,
            strict=mode is Mode.APPEND and missing < count,
            fresh=mode is not Mode.OVERWRITE and missing == count,
        )
    return LoadChange(delta, places, tuple(sorted(unembedded)))


def _refuse_repeats(entity: EntityType, places: Places, most: int) -> None:
    """A repeated id is an error, except in a merge, where the last record wins."""
    table_key = entity.table_key
    ids, _ = places.tables[table_key]
    if pc.count_distinct(ids).as_py() == len(ids):
        return
    counts = pc.value_counts(ids)
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    shown = [(row["values"], row["counts"]) for row in repeated.slice(0, most).to_pylist()]
    if not isinstance(entity, NodeType) or not entity.key:
        raise KeyConflict(table_key, [value for value, _ in shown], len(repeated))
    where = entity.key[0] if len(entity.key) == 1 else f"({', '.join(entity.key)})"
    said = f"@unique violation on {entity.name}.{where}: value"
    violations = [
        Violation(
            table_key,
            value,
            "unique",
            f"{said} '{value}' is in {count} records",
            places.source,
            places.lines_of(table_key, value)[1],
        )
        for value, count in shown
    ]
    raise ConstraintViolation(sorted(violations, key=_order), len(repeated))
