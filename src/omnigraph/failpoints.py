"""Failpoints: named places at which a test can make this process fail or die. They cost one dictionary look-up.

`OMNIGRAPH_FAILPOINTS="branch_create.after_native=kill"` arms them in a child process; `armed` does so in this one.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

NAMES: Final = frozenset(
    {
        "init.after_claim",
        "init.after_table",
        "init.after_schema",
        "init.before_manifest",
        "init.after_manifest",
        "branch_create.before_native",
        "branch_create.after_native",
        "branch_create.before_ref",
        "branch_create.after_ref",
        "branch_delete.before_ref",
        "branch_delete.after_ref",
        "branch_delete.after_tree",
        "tag_create.before_ref",
        "tag_create.after_ref",
        "tag_delete.before_ref",
        "tag_delete.after_ref",
        "publish.before_stage",
        "publish.before_commit",
        "publish.after_commit",
        "publish.after_archive",
        "migrate.between_steps",
    }
)
"""The failpoints of init, publish, refs and migration; writes and recovery have theirs in WRITE_NAMES."""

WRITE_NAMES: Final = frozenset(
    {
        "recovery.sidecar_write",
        "recovery.sidecar_delete",
        "recovery.sidecar_list",
        "recovery.record_audit",
        "recovery.after_restore",
        "recovery.after_fence",
        "recovery.after_upkeep_fence",
        "recovery.after_publish",
        "recovery.after_audit",
        "write.after_stage",
        "write.after_lock",
        "write.after_sidecar",
        "write.before_fold",
        "write.after_fold",
        "write.between_tables",
        "write.between_writes",
        "write.after_tables",
        "write.after_publish",
        "write.after_sidecar_delete",
    }
)
"""The failpoints of writes and of recovery."""

STREAM_NAMES: Final = frozenset({"stream.after_commit"})
"""The failpoint of streams, between a micro-batch's commit and Spark's own record; the rest of one is a write."""

JOB_NAMES: Final = frozenset(
    {
        "job.after_record",
        "load.after_spool",
        "load.after_stage",
        "load.after_check",
        "merge.after_stage",
        "optimize.after_tasks",
    }
)
"""The failpoints of bulk jobs before their commit, which is a write."""

SCHEMA_NAMES: Final = frozenset(
    {
        "schema.after_store",
        "schema.after_table",
        "schema.after_piece",
        "schema.after_columns",
        "schema.after_intent",
        "schema.between_branches",
        "merge.after_check",
        "merge.after_schema",
    }
)
"""The failpoints of a change of the schema before its commit, which is a write, and between branches; and of a
merge that adopts a schema, before and behind the commit of the schema."""

COPY_NAMES: Final = frozenset(
    {
        "move.after_note",
        "move.after_version",
        "move.before_end",
        "copy.after_claim",
        "copy.after_content",
        "copy.after_versions",
        "copy.before_end",
        "backup.before_removal",
    }
)
"""The failpoints of copies and backups, and of the first opening of a graph that was moved."""

EXPORT_NAMES: Final = frozenset({"baseline.before_rename"})
"""The failpoint of baselines, between the last byte of the file and its name."""

CLEANUP_NAMES: Final = frozenset(
    {
        "cleanup.after_mark",
        "cleanup.after_states",
        "cleanup.after_versions",
        "cleanup.after_manifest",
        "cleanup.after_files",
        "cleanup.before_end",
        "cleanup.after_end",
    }
)
"""The failpoints of cleanups, after each step that writes or removes something."""

MAINTAIN_NAMES: Final = frozenset({"maintain.after_lock", "maintain.between_branches", "maintain.before_end"})
"""The failpoints of maintenance between its steps, each of which has its own."""

CLUSTER_NAMES: Final = frozenset(
    {
        "cluster_apply.before_graph_create",
        "cluster_apply.after_graph_create",
        "cluster_apply.before_schema_apply",
        "cluster_apply.after_schema_apply",
        "cluster_apply.after_payload_phase",
        "cluster_apply.before_graph_delete",
        "cluster_apply.within_graph_delete",
        "cluster_apply.after_graph_delete",
        "cluster_apply.before_state_write",
        "cluster_apply.after_state_write",
    }
)
"""The failpoints of a cluster's apply: on either side of each change of a graph, and of the ledger's write."""

_ALL: Final = frozenset().union(
    NAMES,
    WRITE_NAMES,
    STREAM_NAMES,
    JOB_NAMES,
    SCHEMA_NAMES,
    COPY_NAMES,
    EXPORT_NAMES,
    CLEANUP_NAMES,
    MAINTAIN_NAMES,
    CLUSTER_NAMES,
)

_armed: dict[str, Callable[[], None]] = {}


def hit(name: str) -> None:
    """Fail here if a test asked for it."""
    if _armed:
        action = _armed.get(name)
        if action is not None:
            action()


def die() -> None:
    """End this process at once, as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def armed(name: str, action: Callable[[], None]) -> Iterator[None]:
    """Run an action whenever a failpoint is hit, for the time being."""
    if name not in _ALL:
        raise ValueError(f"there is no failpoint {name}")
    _armed[name] = action
    try:
        yield
    finally:
        _armed.pop(name, None)


def _arm_from_environment() -> None:
    for entry in filter(None, os.environ.get("OMNIGRAPH_FAILPOINTS", "").split(",")):
        name, _, action = entry.partition("=")
        if name not in _ALL or action != "kill":
            raise ValueError(f"cannot arm failpoint {entry!r}")
        _armed[name] = die


_arm_from_environment()
