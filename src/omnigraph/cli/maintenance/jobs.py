"""`omnigraph jobs`: bulk jobs that run, and the files that killed ones left."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.output import Json, print_json, print_table, print_text, reports_errors
from omnigraph.cli.stores import Address, Store, open_graph


@reports_errors
def jobs(
    uri: Address = None,
    store: Store = None,
    clean: Annotated[bool, typer.Option("--clean", help="Remove the files that killed jobs left.")] = False,
    as_json: Json = False,
) -> None:
    """List jobs that are running or were killed, with the files they staged that no table refers to."""
    graph = open_graph(uri, store, read_only=not clean)
    found = graph.clean_jobs() if clean else graph.jobs()
    if as_json:
        print_json({"cleaned" if clean else "jobs": [job.as_json() for job in found]})
        return
    if not found:
        print_text("nothing to clean" if clean else "no job is running, and none was killed")
        return
    print_table(
        ("job", "kind", "branch", "actor", "started", "state", "files"),
        [
            (
                job.record.job,
                job.record.kind,
                job.record.branch,
                job.record.actor or "",
                f"{job.record.started_at:%Y-%m-%d %H:%M:%S}",
                "cleaned" if clean else "running" if job.is_running else "killed",
                str(len(job.files)),
            )
            for job in found
        ],
    )
