"""The record of recoveries: one row for each, in `_graph_commit_recoveries.lance`."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from omnigraph.failpoints import hit
from omnigraph.storage import layout
from omnigraph.storage.tables import TableRef, Tables

AUDIT_SCHEMA: Final = pa.schema(
    [
        pa.field("operation_id", pa.string(), nullable=False),
        pa.field("recovery_kind", pa.string(), nullable=False),
        pa.field("writer_kind", pa.string(), nullable=False),
        pa.field("recovery_for_actor", pa.string()),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("graph_commit_id", pa.string()),
        pa.field("table_outcomes", pa.string(), nullable=False),
        pa.field("recovered_at", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Recovery:
    """One completed recovery."""

    operation_id: str
    recovery_kind: str
    writer_kind: str
    recovery_for_actor: str | None
    branch: str
    graph_commit_id: str | None
    table_outcomes: Mapping[str, str]
    recovered_at: dt.datetime

    def as_json(self) -> dict[str, Any]:
        return {
            "operation_id": self.operation_id,
            "recovery_kind": self.recovery_kind,
            "writer_kind": self.writer_kind,
            "recovery_for_actor": self.recovery_for_actor,
            "branch": self.branch,
            "graph_commit_id": self.graph_commit_id,
            "table_outcomes": dict(self.table_outcomes),
            "recovered_at": self.recovered_at.isoformat().replace("+00:00", "Z"),
        }


class AuditLog:
    """The recoveries of one graph."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def record(self, recovery: Recovery) -> None:
        """Add a recovery, once: one that is recorded already is not recorded again."""
        if any(True for _ in self.read(f"operation_id = '{recovery.operation_id}'")):
            return
        hit("recovery.record_audit")
        row = {
            "operation_id": recovery.operation_id,
            "recovery_kind": recovery.recovery_kind,
            "writer_kind": recovery.writer_kind,
            "recovery_for_actor": recovery.recovery_for_actor,
            "branch": recovery.branch,
            "graph_commit_id": recovery.graph_commit_id,
            "table_outcomes": json.dumps(dict(recovery.table_outcomes)),
            "recovered_at": recovery.recovered_at,
        }
        self._tables.append_to_log(layout.RECOVERIES, pa.Table.from_pylist([row], schema=AUDIT_SCHEMA))

    def read(self, where: str | None = None) -> list[Recovery]:
        """Recoveries, oldest first."""
        version = self._tables.newest(layout.RECOVERIES)
        if version is None:
            return []
        rows = self._tables.scan(TableRef(layout.RECOVERIES, None, version), where=where).read_all()
        found = [
            Recovery(**{**row, "table_outcomes": json.loads(row["table_outcomes"])}) for row in rows.to_pylist()
        ]
        return sorted(found, key=lambda r: r.recovered_at)
