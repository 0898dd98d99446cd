"""The audit log: one row for each recovery, in `_graph_commit_recoveries.lance`."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from omnigraph.failpoints import hit
from omnigraph.records import dataclass
from omnigraph.storage import layout
from omnigraph.storage.stage.changes import stage_overwrite
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
        pa.field("transaction_ids", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True, slots=True)
class Recovery:
    """One completed recovery. ``transaction_ids`` are those of the interrupted write, by which a version that
    appears later is recognised as its work."""

    operation_id: str
    recovery_kind: str
    writer_kind: str
    recovery_for_actor: str | None
    branch: str
    graph_commit_id: str | None
    table_outcomes: Mapping[str, str]
    recovered_at: dt.datetime
    transaction_ids: tuple[str, ...] = ()

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
            "transaction_ids": list(self.transaction_ids),
        }


class AuditLog:
    """The recoveries of one graph, which are only ever added to."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def record(self, recovery: Recovery) -> None:
        """Add a recovery, unless its operation is recorded already."""
        if self.find(recovery.operation_id) is not None:
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
            "transaction_ids": list(recovery.transaction_ids),
        }
        self._widen()
        self._tables.append_to_log(layout.RECOVERIES, pa.Table.from_pylist([row], schema=AUDIT_SCHEMA))

    def _widen(self) -> None:
        """Give a log of an older release the columns it lacks."""
        version = self._tables.newest(layout.RECOVERIES)
        if version is None:
            return
        handle = self._tables.open(TableRef(layout.RECOVERIES, None, version))
        if set(AUDIT_SCHEMA.names) <= set(handle.schema.names):
            return
        rows = self._tables.scan(TableRef(layout.RECOVERIES, None, version)).read_all()
        for missing in AUDIT_SCHEMA.names[rows.num_columns :]:
            rows = rows.append_column(missing, pa.nulls(rows.num_rows, AUDIT_SCHEMA.field(missing).type))
        staged = stage_overwrite(handle, layout.RECOVERIES, None, rows.cast(AUDIT_SCHEMA), "audit")
        self._tables.commit_staged(staged)

    def find(self, operation_id: str) -> Recovery | None:
        """The recovery of an operation, if there was one."""
        return next(iter(self.read(f"operation_id = '{operation_id}'")), None)

    def of_transaction(self, transaction_id: str) -> Recovery | None:
        """The recovery of the write that a transaction belongs to."""
        return next((found for found in self.read() if transaction_id in found.transaction_ids), None)

    def read(self, where: str | None = None) -> list[Recovery]:
        """Recoveries, oldest first."""
        version = self._tables.newest(layout.RECOVERIES)
        if version is None:
            return []
        rows = self._tables.scan(TableRef(layout.RECOVERIES, None, version), where=where).read_all()
        return sorted(map(_recovery, rows.to_pylist()), key=lambda r: r.recovered_at)


def _recovery(row: Mapping[str, Any]) -> Recovery:
    outcomes, transactions = json.loads(row["table_outcomes"]), row.get("transaction_ids") or ()
    return Recovery(**{**row, "table_outcomes": outcomes, "transaction_ids": tuple(transactions)})
