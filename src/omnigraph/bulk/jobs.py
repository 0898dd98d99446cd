"""Jobs that stage files: their records, and where the files of each table go."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from omnigraph.manifest.refs.branches import Branch
from omnigraph.recovery.jobs import JobRecord
from omnigraph.storage import layout
from omnigraph.storage.files.datafiles import Destination
from omnigraph.write.base import Base


def job_record(job: str, kind: str, branch: Branch, locations: Iterable[str], actor: str | None) -> JobRecord:
    """The record of a job that begins now and stages files for tables at these locations."""
    return JobRecord(
        job, kind, branch.name, branch.native, tuple(sorted(locations)), actor, dt.datetime.now(dt.UTC)
    )


def destination(base: Base, branch: Branch, table_key: str) -> Destination:
    """Where a table's files go that are to be committed to a branch, which may be one that is yet to be forked."""
    pin, address = base.pin(table_key), base.repository.address
    folder = f"{address.lance_root}/{layout.native_prefix(pin.location, branch.native)}"
    version = str(base.open(table_key).data_storage_version)
    return Destination(table_key, address, folder, base.schema(table_key), version)


def destinations(base: Base, branch: Branch) -> dict[str, Destination]:
    """Where the files of every table go."""
    return {table_key: destination(base, branch, table_key) for table_key in base.snapshot.tables}
