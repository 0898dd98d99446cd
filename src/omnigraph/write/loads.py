"""Small loads: records into tables, in one of three modes, in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pyarrow as pa

from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import ConstraintViolation, KeyConflict, Violation
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.write.delta import TableDelta, last_per_id
from omnigraph.write.records import Records
from omnigraph.write.rows import fill_vectors, fresh_ids, rows_of

_SHOWN = 20


class Mode(StrEnum):
    """What happens to rows that are there: gone with their table, never touched, or replaced by id."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"


def delta_of(
    records: Mapping[str, Records], mode: Mode, embedder: EmbeddingClient | None
) -> tuple[dict[str, TableDelta], list[str]]:
    """The change that loading the records makes, and the vectors that could not be computed."""
    delta: dict[str, TableDelta] = {}
    unembedded: list[str] = []
    for table_key, found in records.items():
        entity = found.entity
        given = found.columns["id"]
        missing = given.count(None)
        fresh = iter(fresh_ids(missing))
        columns: dict[str, list[Any]] = dict(found.columns)
        columns["id"] = [next(fresh) if value is None else value for value in given]
        _refuse_repeats(table_key, found, columns["id"], mode)
        rows = rows_of(entity, columns, len(given))
        if isinstance(entity, NodeType):
            rows, skipped = fill_vectors(entity, rows, dict.fromkeys(entity.embeds, True), embedder)
            unembedded += skipped
        delta[table_key] = TableDelta(
            table_key,
            last_per_id(rows),
            pa.array([], pa.string()),
            replaces=mode is Mode.OVERWRITE,
            strict=mode is Mode.APPEND and missing < len(given),
            fresh=mode is not Mode.OVERWRITE and missing == len(given),
        )
    return delta, unembedded


def _refuse_repeats(table_key: str, records: Records, ids: list[str], mode: Mode) -> None:
    """A repeated id is an error, except in a merge, where the last record wins."""
    if mode is Mode.MERGE:
        return
    if len(set(ids)) == len(ids):
        return
    repeated = [(value, count) for value, count in Counter(ids).items() if count > 1]
    entity = records.entity
    if isinstance(entity, NodeType) and entity.key:
        where = entity.key[0] if len(entity.key) == 1 else f"({', '.join(entity.key)})"
        violations = [
            Violation(
                table_key,
                value,
                "unique",
                f"@unique violation on {entity.name}.{where}: value '{value}' is in {count} records",
            )
            for value, count in repeated[:_SHOWN]
        ]
        raise ConstraintViolation(violations, len(repeated))
    raise KeyConflict(table_key, [value for value, _ in repeated[:_SHOWN]], len(repeated))
