"""OmniGraph: a typed property-graph database over Lance tables.

`init` creates a graph and `open` opens one; both return a `Graph`, and `AsyncGraph` is the same for event loops.
The two languages are in `omnigraph.lang`, Spark in `omnigraph.spark`. Every error is a child of `OmniError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.errors import (
    BackupNotFound,
    BadValue,
    BatchDone,
    BatchOutcomeUnknown,
    BranchExists,
    BranchInUse,
    BranchNotFound,
    BranchOutcomeUnknown,
    BranchProtected,
    BranchTagged,
    ChangeFeedGap,
    Conflict,
    ConflictError,
    ConflictKind,
    ConstraintViolation,
    CopyRefused,
    CopyUnfinished,
    CountOverflow,
    CursorRejected,
    DataError,
    Diagnostic,
    EmbeddingUnavailable,
    ExportRefused,
    ForkedProcess,
    GraphClosed,
    GraphExists,
    GraphMoved,
    GraphNotFound,
    HistoryReclaimed,
    IncompleteFile,
    InvalidAddress,
    InvalidArgument,
    InvalidBranchName,
    InvalidTagName,
    JavaUnavailable,
    JobCancelled,
    JobFailed,
    KeyConflict,
    LanguageError,
    LockLost,
    LockTimeout,
    MaintenanceRunning,
    ManifestConflict,
    MergeConflicts,
    MigrationError,
    MissingExtra,
    NotAGraph,
    NotOnSpark,
    ObjectDamaged,
    OmniError,
    Outcome,
    OutcomeUnknown,
    ParameterError,
    ParentlessCommit,
    PipelineError,
    PreconditionFailed,
    PublishContention,
    QueryCancelled,
    QueryError,
    QueryMemoryExceeded,
    QueryStopped,
    QueryTimeout,
    ReadOnlyGraph,
    RecordError,
    RecordProblem,
    RecoveryBlocked,
    RequestError,
    ResourceLimit,
    SchemaError,
    SidecarUnreadable,
    SnapshotNotFound,
    SourceUnusable,
    SparkUnavailable,
    StorageError,
    StorageUnavailable,
    StoreUnsupported,
    StreamOutOfStep,
    SumOverflow,
    TableDrift,
    TagExists,
    TagNotFound,
    TagOutcomeUnknown,
    UpgradeRequired,
    Violation,
)

if TYPE_CHECKING:
    from omnigraph import lang
    from omnigraph.asynchronous import AsyncGraph
    from omnigraph.bulk.embed.requests import EmbedResult
    from omnigraph.bulk.export.baseline import Baseline
    from omnigraph.bulk.export.job import ExportResult
    from omnigraph.bulk.load.options import LoadResult
    from omnigraph.bulk.runner import JobEvent, Listener
    from omnigraph.embed.client import EmbeddingClient
    from omnigraph.graph import Graph
    from omnigraph.history.blame import Blame, PropertyBlame
    from omnigraph.history.diff import Change, Diff
    from omnigraph.history.feed.blocks import ChangeBlock
    from omnigraph.history.feed.pages import ChangePage, CommitChanges
    from omnigraph.history.log import LogEntry
    from omnigraph.history.merging.plans import MergeOutcome, MergePlan, MergeResult
    from omnigraph.history.merging.undo import UndoResult
    from omnigraph.history.schemas import SchemaVersion
    from omnigraph.keywords import (
        ApplyKeywords,
        At,
        ChangeKeywords,
        LoadKeywords,
        LogKeywords,
        MergeKeywords,
        UndoKeywords,
    )
    from omnigraph.lang.query.lint import LintReport
    from omnigraph.lang.schema.catalog import Catalog
    from omnigraph.maintenance.cleanup.report import CleanedBranch, CleanedTable, CleanupReport
    from omnigraph.maintenance.cleanup.retention import Retention
    from omnigraph.maintenance.copying.backup import Backup, BackupReport
    from omnigraph.maintenance.copying.clone import CopyReport
    from omnigraph.maintenance.copying.transfer import CopyEvent
    from omnigraph.maintenance.doctor.report import DoctorProgress, DoctorReport, Finding, Severity
    from omnigraph.maintenance.indices import IndexReport
    from omnigraph.maintenance.maintain import MaintenancePolicy, MaintenanceReport
    from omnigraph.maintenance.optimize import OptimizeReport
    from omnigraph.maintenance.repair.report import RepairReport
    from omnigraph.manifest.refs.branches import Branch
    from omnigraph.manifest.refs.tags import Tag
    from omnigraph.manifest.snapshot import Snapshot
    from omnigraph.manifest.state import Commit, TablePin
    from omnigraph.opening import backups, doctor, init, open, restore  # noqa: A004  the public name
    from omnigraph.read.limits import Cancellation
    from omnigraph.read.result.result import Result, Target
    from omnigraph.recovery.audit import Recovery
    from omnigraph.recovery.jobs import LeftJob
    from omnigraph.settings import BulkSettings, ReadSettings, Settings, WriteSettings
    from omnigraph.write.evolution.apply import SchemaResult
    from omnigraph.write.evolution.plan import SchemaPlan
    from omnigraph.write.mutations.requests import MutationResult

__version__ = "0.1.0"

__all__ = [
    "ApplyKeywords",
    "AsyncGraph",
    "At",
    "Backup",
    "BackupNotFound",
    "BackupReport",
    "BadValue",
    "Baseline",
    "BatchDone",
    "BatchOutcomeUnknown",
    "Blame",
    "Branch",
    "BranchExists",
    "BranchInUse",
    "BranchNotFound",
    "BranchOutcomeUnknown",
    "BranchProtected",
    "BranchTagged",
    "BulkSettings",
    "Cancellation",
    "Catalog",
    "Change",
    "ChangeBlock",
    "ChangeFeedGap",
    "ChangeKeywords",
    "ChangePage",
    "CleanedBranch",
    "CleanedTable",
    "CleanupReport",
    "Commit",
    "CommitChanges",
    "Conflict",
    "ConflictError",
    "ConflictKind",
    "ConstraintViolation",
    "CopyEvent",
    "CopyRefused",
    "CopyReport",
    "CopyUnfinished",
    "CountOverflow",
    "CursorRejected",
    "DataError",
    "Diagnostic",
    "Diff",
    "DoctorProgress",
    "DoctorReport",
    "EmbedResult",
    "EmbeddingClient",
    "EmbeddingUnavailable",
    "ExportRefused",
    "ExportResult",
    "Finding",
    "ForkedProcess",
    "Graph",
    "GraphClosed",
    "GraphExists",
    "GraphMoved",
    "GraphNotFound",
    "HistoryReclaimed",
    "IncompleteFile",
    "IndexReport",
    "InvalidAddress",
    "InvalidArgument",
    "InvalidBranchName",
    "InvalidTagName",
    "JavaUnavailable",
    "JobCancelled",
    "JobEvent",
    "JobFailed",
    "KeyConflict",
    "LanguageError",
    "LeftJob",
    "LintReport",
    "Listener",
    "LoadKeywords",
    "LoadResult",
    "LockLost",
    "LockTimeout",
    "LogEntry",
    "LogKeywords",
    "MaintenancePolicy",
    "MaintenanceReport",
    "MaintenanceRunning",
    "ManifestConflict",
    "MergeConflicts",
    "MergeKeywords",
    "MergeOutcome",
    "MergePlan",
    "MergeResult",
    "MigrationError",
    "MissingExtra",
    "MutationResult",
    "NotAGraph",
    "NotOnSpark",
    "ObjectDamaged",
    "OmniError",
    "OptimizeReport",
    "Outcome",
    "OutcomeUnknown",
    "ParameterError",
    "ParentlessCommit",
    "PipelineError",
    "PreconditionFailed",
    "PropertyBlame",
    "PublishContention",
    "QueryCancelled",
    "QueryError",
    "QueryMemoryExceeded",
    "QueryStopped",
    "QueryTimeout",
    "ReadOnlyGraph",
    "ReadSettings",
    "RecordError",
    "RecordProblem",
    "Recovery",
    "RecoveryBlocked",
    "RepairReport",
    "RequestError",
    "ResourceLimit",
    "Result",
    "Retention",
    "SchemaError",
    "SchemaPlan",
    "SchemaResult",
    "SchemaVersion",
    "Settings",
    "Severity",
    "SidecarUnreadable",
    "Snapshot",
    "SnapshotNotFound",
    "SourceUnusable",
    "SparkUnavailable",
    "StorageError",
    "StorageUnavailable",
    "StoreUnsupported",
    "StreamOutOfStep",
    "SumOverflow",
    "TableDrift",
    "TablePin",
    "Tag",
    "TagExists",
    "TagNotFound",
    "TagOutcomeUnknown",
    "Target",
    "UndoKeywords",
    "UndoResult",
    "UpgradeRequired",
    "Violation",
    "WriteSettings",
    "__version__",
    "backups",
    "doctor",
    "init",
    "lang",
    "open",
    "restore",
]

_LAZY = {
    "ApplyKeywords": "omnigraph.keywords",
    "AsyncGraph": "omnigraph.asynchronous",
    "At": "omnigraph.keywords",
    "Backup": "omnigraph.maintenance.copying.backup",
    "BackupReport": "omnigraph.maintenance.copying.backup",
    "Baseline": "omnigraph.bulk.export.baseline",
    "Blame": "omnigraph.history.blame",
    "Branch": "omnigraph.manifest.refs.branches",
    "BulkSettings": "omnigraph.settings",
    "Cancellation": "omnigraph.read.limits",
    "Catalog": "omnigraph.lang.schema.catalog",
    "Change": "omnigraph.history.diff",
    "ChangeBlock": "omnigraph.history.feed.blocks",
    "ChangeKeywords": "omnigraph.keywords",
    "ChangePage": "omnigraph.history.feed.pages",
    "CleanedBranch": "omnigraph.maintenance.cleanup.report",
    "CleanedTable": "omnigraph.maintenance.cleanup.report",
    "CleanupReport": "omnigraph.maintenance.cleanup.report",
    "Commit": "omnigraph.manifest.state",
    "CommitChanges": "omnigraph.history.feed.pages",
    "CopyEvent": "omnigraph.maintenance.copying.transfer",
    "CopyReport": "omnigraph.maintenance.copying.clone",
    "Diff": "omnigraph.history.diff",
    "DoctorProgress": "omnigraph.maintenance.doctor.report",
    "DoctorReport": "omnigraph.maintenance.doctor.report",
    "EmbedResult": "omnigraph.bulk.embed.requests",
    "EmbeddingClient": "omnigraph.embed.client",
    "ExportResult": "omnigraph.bulk.export.job",
    "Finding": "omnigraph.maintenance.doctor.report",
    "Graph": "omnigraph.graph",
    "IndexReport": "omnigraph.maintenance.indices",
    "JobEvent": "omnigraph.bulk.runner",
    "LeftJob": "omnigraph.recovery.jobs",
    "LintReport": "omnigraph.lang.query.lint",
    "Listener": "omnigraph.bulk.runner",
    "LoadKeywords": "omnigraph.keywords",
    "LoadResult": "omnigraph.bulk.load.options",
    "LogEntry": "omnigraph.history.log",
    "LogKeywords": "omnigraph.keywords",
    "MergeKeywords": "omnigraph.keywords",
    "MergeOutcome": "omnigraph.history.merging.plans",
    "MergePlan": "omnigraph.history.merging.plans",
    "MergeResult": "omnigraph.history.merging.plans",
    "MutationResult": "omnigraph.write.mutations.requests",
    "MaintenancePolicy": "omnigraph.maintenance.maintain",
    "MaintenanceReport": "omnigraph.maintenance.maintain",
    "OptimizeReport": "omnigraph.maintenance.optimize",
    "PropertyBlame": "omnigraph.history.blame",
    "ReadSettings": "omnigraph.settings",
    "Recovery": "omnigraph.recovery.audit",
    "RepairReport": "omnigraph.maintenance.repair.report",
    "Result": "omnigraph.read.result.result",
    "Retention": "omnigraph.maintenance.cleanup.retention",
    "SchemaPlan": "omnigraph.write.evolution.plan",
    "SchemaResult": "omnigraph.write.evolution.apply",
    "SchemaVersion": "omnigraph.history.schemas",
    "Settings": "omnigraph.settings",
    "Severity": "omnigraph.maintenance.doctor.report",
    "Snapshot": "omnigraph.manifest.snapshot",
    "TablePin": "omnigraph.manifest.state",
    "Tag": "omnigraph.manifest.refs.tags",
    "Target": "omnigraph.read.result.result",
    "UndoKeywords": "omnigraph.keywords",
    "UndoResult": "omnigraph.history.merging.undo",
    "WriteSettings": "omnigraph.settings",
    "backups": "omnigraph.opening",
    "doctor": "omnigraph.opening",
    "init": "omnigraph.opening",
    "open": "omnigraph.opening",
    "restore": "omnigraph.opening",
}


def __getattr__(name: str) -> Any:
    """Import what needs Lance and Arrow when it is first used, so that importing the package stays light."""
    import importlib

    if name == "lang":
        return importlib.import_module("omnigraph.lang")
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'omnigraph' has no attribute '{name}'")
    found = getattr(importlib.import_module(module), name)
    globals()[name] = found
    return found
