"""OmniGraph: a typed property-graph database over Lance tables.

`init` creates a graph and `open` opens one; both return a `Graph`. The two languages are in `omnigraph.lang`.
Every error is a child of `OmniError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.errors import (
    BranchExists,
    BranchInUse,
    BranchNotFound,
    BranchProtected,
    ConflictError,
    ConstraintViolation,
    CountOverflow,
    DataError,
    Diagnostic,
    EmbeddingUnavailable,
    ExportRefused,
    ForkedProcess,
    GraphExists,
    GraphNotFound,
    HistoryReclaimed,
    InvalidAddress,
    InvalidArgument,
    InvalidBranchName,
    JavaUnavailable,
    JobCancelled,
    JobFailed,
    KeyConflict,
    LanguageError,
    LockLost,
    LockTimeout,
    ManifestConflict,
    MigrationError,
    MissingExtra,
    NotAGraph,
    NotOnSpark,
    ObjectDamaged,
    OmniError,
    ParameterError,
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
    TableDrift,
    UpgradeRequired,
    Violation,
)

if TYPE_CHECKING:
    from omnigraph import lang
    from omnigraph.bulk.embed.requests import EmbedResult
    from omnigraph.bulk.export.job import ExportResult
    from omnigraph.bulk.load.options import LoadResult
    from omnigraph.graph import Graph, init, open  # noqa: A004  the public name
    from omnigraph.manifest.branches import Branch
    from omnigraph.manifest.snapshot import Snapshot
    from omnigraph.manifest.state import Commit
    from omnigraph.read.limits import Cancellation
    from omnigraph.read.result.result import Result
    from omnigraph.recovery.audit import Recovery
    from omnigraph.write.mutations.requests import MutationResult

__version__ = "0.1.0"

__all__ = [
    "Branch",
    "BranchExists",
    "BranchInUse",
    "BranchNotFound",
    "BranchProtected",
    "Cancellation",
    "Commit",
    "ConflictError",
    "ConstraintViolation",
    "CountOverflow",
    "DataError",
    "Diagnostic",
    "EmbedResult",
    "EmbeddingUnavailable",
    "ExportRefused",
    "ExportResult",
    "ForkedProcess",
    "Graph",
    "GraphExists",
    "GraphNotFound",
    "HistoryReclaimed",
    "InvalidAddress",
    "InvalidArgument",
    "InvalidBranchName",
    "JavaUnavailable",
    "JobCancelled",
    "JobFailed",
    "KeyConflict",
    "LanguageError",
    "LoadResult",
    "LockLost",
    "LockTimeout",
    "ManifestConflict",
    "MigrationError",
    "MissingExtra",
    "MutationResult",
    "NotAGraph",
    "NotOnSpark",
    "ObjectDamaged",
    "OmniError",
    "ParameterError",
    "PipelineError",
    "PreconditionFailed",
    "PublishContention",
    "QueryCancelled",
    "QueryError",
    "QueryMemoryExceeded",
    "QueryStopped",
    "QueryTimeout",
    "ReadOnlyGraph",
    "RecordError",
    "RecordProblem",
    "Recovery",
    "RecoveryBlocked",
    "RequestError",
    "ResourceLimit",
    "Result",
    "SchemaError",
    "SidecarUnreadable",
    "Snapshot",
    "SnapshotNotFound",
    "SourceUnusable",
    "SparkUnavailable",
    "StorageError",
    "StorageUnavailable",
    "StoreUnsupported",
    "TableDrift",
    "UpgradeRequired",
    "Violation",
    "__version__",
    "init",
    "lang",
    "open",
]

_LAZY = {
    "Branch": "omnigraph.manifest.branches",
    "Cancellation": "omnigraph.read.limits",
    "Commit": "omnigraph.manifest.state",
    "EmbedResult": "omnigraph.bulk.embed.requests",
    "ExportResult": "omnigraph.bulk.export.job",
    "Graph": "omnigraph.graph",
    "LoadResult": "omnigraph.bulk.load.options",
    "MutationResult": "omnigraph.write.mutations.requests",
    "Recovery": "omnigraph.recovery.audit",
    "Result": "omnigraph.read.result.result",
    "Snapshot": "omnigraph.manifest.snapshot",
    "init": "omnigraph.graph",
    "open": "omnigraph.graph",
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
