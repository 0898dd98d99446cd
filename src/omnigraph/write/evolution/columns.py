"""Staging the new columns of one table; a bulk job may do it in another way than the default."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from omnigraph.manifest.repository import Repository
from omnigraph.storage.stage.columns import Column, ComputedColumn, stage_columns
from omnigraph.storage.tables import TableRef
from omnigraph.write.protocol import StagedTable

ChangeColumns: TypeAlias = Callable[[Repository, tuple[Column, ...], int, TableRef, str], StagedTable]
"""Stages the columns that a table is to have, given how many rows it has, where it is, and the operation's id."""


def change_in_process(
    repository: Repository, columns: tuple[Column, ...], rows: int, ref: TableRef, operation_id: str
) -> StagedTable:
    """Compute new columns one fragment after the other, in the calling thread. Other changes read no files."""
    reads_rows = any(isinstance(column, ComputedColumn) for column in columns)
    handle = repository.tables.verified(ref) if reads_rows else repository.tables.open(ref)
    return StagedTable(stage_columns(handle, ref.location, ref.branch, columns, operation_id), rows)
