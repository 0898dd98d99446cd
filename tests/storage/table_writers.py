"""What child processes do with tables. Kept apart so that they start without the test tools."""

from __future__ import annotations

import pyarrow as pa
from tests.processes import ready, say
from tests.storage.rows import people
from tests.stores import Store

from omnigraph.errors import TableMoved
from omnigraph.storage.stage.changes import stage_overwrite
from omnigraph.storage.tables import TableRef


def append_lines(store: Store, name: str, times: int) -> None:
    """In a child: add lines to a log that may not exist yet."""
    schema = pa.schema([pa.field("line", pa.string(), nullable=False)])
    tables = store.tables()
    ready()
    for number in range(times):
        tables.append_to_log("log", pa.Table.from_pylist([{"line": f"{name}.{number}"}], schema=schema))


def overwrite_once(store: Store, ref: TableRef, name: str) -> None:
    """In a child: overwrite a table without any lock; say what came of it."""
    tables = store.tables()
    staged = stage_overwrite(tables.open(ref), ref.location, ref.branch, people({name: 1}), name)
    ready()
    try:
        tables.commit_staged(staged)
    except TableMoved:
        say("moved")
    else:
        say("won")
