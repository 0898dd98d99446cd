"""The codes of findings, by the check that finds them. A code never changes its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CODES: Final[Mapping[str, Mapping[str, str]]] = {
    "every check": {
        "manifest_unreadable": "the newest state of a branch cannot be read",
        "moved_directory": "the graph was moved, and its branches look for their files at its old place",
        "newer_release": "a newer release of OmniGraph wrote it",
        "ref_damaged": "the ref of a branch cannot be read",
        "ref_dangling": "a branch has a ref and no manifest",
        "tag_damaged": "the ref of a tag cannot be read",
        "tag_dangling": "a tag names a commit whose state is not there",
        "check_failed": "a check could not be completed",
    },
    "control": {
        "schema_damaged": "an accepted schema cannot be read, or is not the one that it is named by",
        "ref_foreign": "the ref of a branch names a parent or a version that does not exist",
        "hint_damaged": "the hint to a newest manifest cannot be read",
        "hint_stale": "the hint to a newest manifest names a version that does not exist",
        "intent_damaged": "the record of a schema change of all branches cannot be read",
        "intent_pending": "a schema change of all branches is under way, or was interrupted",
        "place_damaged": "the object that says where the graph lies cannot be read",
        "place_unfinished": "a copy or a move of the graph is under way, or was interrupted",
        "creation_unfinished": "the process that created the graph died before its last step",
    },
    "sidecars": {
        "write_in_flight": "a writer commits at this moment",
        "write_interrupted": "a write was interrupted; the next one resolves it",
        "sidecar_damaged": "what an interrupted write left cannot be read, and writes are refused",
        "sidecar_orphaned": "an interrupted write was to a branch that is deleted",
        "recovery_blocked": "an interrupted write can be neither finished nor undone",
    },
    "locks": {
        "lock_held": "a process holds a lock",
        "lock_expired": "a dead process holds a lock, which the next writer takes over",
        "lock_damaged": "a lease cannot be read",
    },
    "jobs": {
        "job_running": "a bulk job runs",
        "job_killed": "a bulk job was killed, and may have left files",
        "job_damaged": "the record of a bulk job cannot be read",
        "job_leftover": "a bulk job has left notes and no record",
    },
    "drift": {
        "table_drift": "a table was moved with Lance itself, and writes to it are refused",
        "unpublished_write": "a table has a version of a dead writer; the next write undoes it",
    },
    "counts": {
        "version_missing": "a version that the graph names is not there",
        "version_damaged": "a version that the graph names cannot be read",
        "row_count": "a table has another number of rows than the graph says",
        "columns": "a table has other columns than the schema says",
    },
    "files": {
        "file_missing": "a file of a table is not there",
        "file_size": "a file of a table has another size than it was written with",
        "file_damaged": "a file of a table does not fit its checksum",
        "index_damaged": "a file of an index does not fit its checksum",
    },
    "fragments": {
        "small_files": "a table has many files with few rows",
        "deleted_rows": "a large part of the rows in a table's files are deleted",
    },
    "indexes": {
        "index_missing": "a large table lacks an index that the schema asks for",
        "index_lagging": "many rows of a table are not in an index",
        "index_wrong": "an index gives another answer than a scan, or none",
    },
    "lineage": {
        "parent_missing": "a commit names a parent that is not there",
        "head_foreign": "a branch is at a commit that was not made on it",
        "archive_damaged": "the archive of commits cannot be read",
    },
    "audit": {
        "audit_damaged": "the record of recoveries cannot be read",
        "audit_commit_missing": "the record of recoveries names a commit that is not there",
    },
    "orphans": {
        "orphaned_files": "files that no state needs and no writer has staged just now",
    },
    "rules": {
        "value_rule": "rows break a rule of single values: required, enum, finite, `@range`, `@check`",
        "key_mismatch": "nodes have another id than their key gives",
        "duplicate_id": "several rows have the same id",
        "duplicate_value": "several rows share values that are `@unique`",
        "dangling_edge": "edges lead to or from nodes that do not exist",
        "cardinality": "nodes have more or fewer edges than `@card` allows",
        "table_unreadable": "the rows of a table cannot be read",
    },
}
