"""Every error OmniGraph raises, in one tree, grouped by what the caller can do about it.

::

    OmniError
    ├── LanguageError            fix the text: each problem has a code, a place and a remedy
    │   ├── SchemaError          a .pg schema that does not parse, or contradicts itself
    │   └── QueryError           a .gq query that does not parse, or does not fit the schema
    ├── ParameterError           fix the values of the query's parameters
    ├── MigrationError           a schema change that the existing data does not allow
    ├── RequestError             ask for something that exists and can be done
    │   ├── InvalidArgument      a value of the wrong type, or a text that cannot be stored
    │   ├── InvalidAddress       an address at which no graph can be
    │   ├── GraphExists          init: there is a graph already
    │   ├── GraphNotFound        open: there is nothing
    │   ├── NotAGraph            open: there is something else, or half a graph
    │   ├── GraphMoved           a branch of a graph that was moved, before it is opened for writing
    │   ├── CopyUnfinished       open: there is only a part of a copy
    │   ├── CopyRefused          clone, backup, restore: something else is at the target
    │   ├── BackupNotFound       restore: there is no such backup
    │   ├── ReadOnlyGraph        a write to a graph that was opened read-only
    │   ├── GraphClosed          a graph that is used after it was closed
    │   ├── ForkedProcess        a forked child cannot use what its parent opened
    │   ├── InvalidBranchName    a name that breaks the rules, or clashes with another
    │   ├── BranchExists         create: the name is taken
    │   ├── BranchNotFound       no branch has that name
    │   ├── BranchInUse          delete: other branches were forked from it
    │   ├── BranchProtected      delete: this branch must stay
    │   ├── BranchTagged         delete: tags name commits of the branch
    │   ├── SharedRows           rows that a drop would purge are on another branch too
    │   ├── InvalidTagName       a name that breaks the rules, or is a branch's
    │   ├── TagExists            tag: the name is taken
    │   ├── TagNotFound          no tag has that name
    │   ├── BlobNotFound         a blob of no node or edge, or one that is null
    │   ├── RangeUnsatisfiable   bytes behind the end of a blob
    │   ├── SnapshotNotFound     no commit or manifest version like that
    │   ├── HistoryReclaimed     a commit or manifest version whose files are gone from the store
    │   ├── ParentlessCommit     the first commit, which changed nothing that was there before
    │   ├── CursorRejected       a change cursor that is damaged, or belongs to something else
    │   ├── ChangeFeedGap        changes that are gone from the store before they were read
    │   ├── MissingExtra         an optional package that is not installed
    │   ├── Unauthorized         server: no token, or one that it does not know
    │   ├── GraphNotServed       server: it has no graph of that name
    │   ├── QueryNotFound        server: it has no stored query of that name
    │   ├── MediaUnsupported     server: a form of request or answer that a route does not have
    │   ├── RequestIncomplete    server: a body that did not arrive in time
    │   ├── KeyReused            server: an idempotency key that was used for another write
    │   ├── PolicyDenied         something that no rule of the graph's policy allows
    │   ├── ActorRequired        a graph with a policy that is used without an actor
    │   ├── PolicyInvalid        a policy, or its tests, with mistakes
    │   ├── ConfigInvalid        a file of the operator's configuration that cannot be used
    │   ├── ClusterRefused       a cluster that cannot be worked on, with all that is wrong
    │   └── ClusterManaged       what a cluster does for its graphs, asked of one of them
    ├── DataError                fix the data
    │   ├── RecordError          records of a load that cannot be read
    │   ├── ConstraintViolation  rows that break a constraint of the schema
    │   ├── BadValue             a value that its property cannot hold
    │   ├── KeyConflict          ids that exist already
    │   ├── EmbeddingUnavailable vectors that cannot be computed
    │   ├── BlobSourceUnavailable bytes elsewhere that cannot be read
    │   └── ResourceLimit        a write that is larger than the engine takes at once
    ├── QueryStopped             narrow the query, or raise its limit
    │   ├── QueryTimeout         the query took longer than its timeout
    │   ├── QueryMemoryExceeded  the query needs more memory than its limit
    │   ├── CountOverflow        the query counts more matches than an integer can hold
    │   ├── SumOverflow          a sum over integers that a 64-bit integer cannot hold
    │   ├── ComputationFailed    a value that cannot be computed, such as a date of a text that is none
    │   │   ├── DivisionByZero   a number divided by zero
    │   │   └── NumberOverflow   a number beyond 64 bits, or a moment beyond the calendar
    │   └── QueryCancelled       the caller cancelled the query
    ├── PipelineError            a bulk job, an export or a stream that did not finish
    │   ├── JavaUnavailable      Spark needs Java, and there is none, or one that is too old
    │   ├── SparkUnavailable     a Spark session that cannot be started or reached
    │   ├── SourceUnusable       a source that does not exist, or cannot be loaded
    │   ├── ExportRefused        a target that is taken, or a value that the format cannot write
    │   ├── JobFailed            a task failed at every attempt
    │   ├── JobCancelled         the caller cancelled the job
    │   ├── StreamOutOfStep      a micro-batch that does not follow the last one of its stream
    │   └── NotOnSpark           an operation that only the embedded engine can do
    ├── ConflictError            read again and retry
    │   ├── ManifestConflict     a table moved while the write was prepared
    │   ├── MergeConflicts       two branches changed the graph in ways that cannot both hold
    │   ├── BlobChanged          a blob that does not have the ETag that the caller named
    │   ├── PreconditionFailed   the branch is not at the commit that the caller named
    │   ├── SchemaChanged        the schema was changed while the write was prepared
    │   ├── StagedFilesRemoved   a cleanup removed what the write had prepared long before
    │   ├── BatchDone            a micro-batch of a stream with nothing to commit
    │   ├── CommitDone           a write whose commit is there already
    │   ├── PublishContention    other writers published at every attempt
    │   ├── LockTimeout          another writer held the lock too long
    │   ├── MaintenanceRunning   another process maintains the graph
    │   ├── TooManyRequests      a server with as many requests as it admits
    │   └── LockLost             this writer paused, and its lock was given to another
    ├── OutcomeUnknown           look for the commit before you retry
    ├── BatchOutcomeUnknown      write the stream's micro-batch again; it is not written twice
    ├── BranchOutcomeUnknown     look at the list of branches before you retry
    ├── MergeUnfinished          the target has the source's schema, not yet its rows; merge again
    ├── SchemaUnfinished         some branches have the new schema; opening the graph for writing finishes it
    ├── SchemaRefused            one of several branches cannot get the schema; no branch did
    ├── TagOutcomeUnknown        look at the list of tags before you retry
    ├── ServerUnavailable        a server that cannot be reached, or went away before it answered
    └── StorageError             ask an operator
        ├── IncompleteFile       the store did not keep all bytes of a file
        ├── ObjectDamaged        an object of the graph is missing, truncated or changed
        ├── ServerFailed         a server's answer that is no answer to the request
        ├── RecoveryBlocked      an interrupted write that can be neither finished nor undone
        ├── SidecarUnreadable    the sidecar of an interrupted write cannot be read
        ├── TableDrift           a table at a version that the graph cannot explain
        ├── TableMoved           a table moved below a writer; callers turn it into a conflict
        ├── StorageUnavailable   the store refused or failed
        ├── StoreUnsupported     a store without conditional puts
        └── UpgradeRequired      the graph was written by a newer release

Programs read the fields of an error, or ``as_json``; people read the message, which names the thing, the reason
and the remedy. Errors can be pickled with all their fields, because they cross processes and Spark workers.
"""

from __future__ import annotations

from omnigraph.errors.base import (
    OmniError,
    Outcome,
)
from omnigraph.errors.blobs import (
    BlobChanged,
    BlobNotFound,
    BlobSourceUnavailable,
    RangeUnsatisfiable,
)
from omnigraph.errors.clusters import (
    ClusterManaged,
    ClusterRefused,
)
from omnigraph.errors.conflicts import (
    BatchDone,
    CommitDone,
    ConflictError,
    LockLost,
    LockTimeout,
    MaintenanceRunning,
    ManifestConflict,
    PreconditionFailed,
    PublishContention,
    SchemaChanged,
    StagedFilesRemoved,
)
from omnigraph.errors.data import (
    BadValue,
    ConstraintViolation,
    DataError,
    EmbeddingUnavailable,
    KeyConflict,
    RecordError,
    ResourceLimit,
)
from omnigraph.errors.language import (
    LanguageError,
    MigrationError,
    ParameterError,
    QueryError,
    SchemaError,
    SchemaRefused,
)
from omnigraph.errors.merges import (
    Conflict,
    ConflictKind,
    MergeConflicts,
)
from omnigraph.errors.outcomes import (
    BatchOutcomeUnknown,
    BranchOutcomeUnknown,
    MergeUnfinished,
    OutcomeUnknown,
    SchemaUnfinished,
    TagOutcomeUnknown,
)
from omnigraph.errors.pipeline import (
    ExportRefused,
    JavaUnavailable,
    JobCancelled,
    JobFailed,
    NotOnSpark,
    PipelineError,
    SourceUnusable,
    SparkUnavailable,
    StreamOutOfStep,
)
from omnigraph.errors.policy import (
    ActorRequired,
    ConfigInvalid,
    PolicyDenied,
    PolicyInvalid,
)
from omnigraph.errors.queries import (
    ComputationFailed,
    CountOverflow,
    DivisionByZero,
    NumberOverflow,
    QueryCancelled,
    QueryMemoryExceeded,
    QueryStopped,
    QueryTimeout,
    SumOverflow,
)
from omnigraph.errors.requests import (
    BackupNotFound,
    BranchExists,
    BranchInUse,
    BranchNotFound,
    BranchProtected,
    BranchTagged,
    ChangeFeedGap,
    CopyRefused,
    CopyUnfinished,
    CursorRejected,
    ForkedProcess,
    GraphClosed,
    GraphExists,
    GraphMoved,
    GraphNotFound,
    HistoryReclaimed,
    InvalidAddress,
    InvalidArgument,
    InvalidBranchName,
    InvalidTagName,
    MissingExtra,
    NotAGraph,
    ParentlessCommit,
    ReadOnlyGraph,
    RequestError,
    SharedRows,
    SnapshotNotFound,
    TagExists,
    TagNotFound,
)
from omnigraph.errors.serving import (
    GraphNotServed,
    KeyReused,
    MediaUnsupported,
    QueryNotFound,
    RequestIncomplete,
    ServerFailed,
    ServerUnavailable,
    TooManyRequests,
    Unauthorized,
)
from omnigraph.errors.storage import (
    IncompleteFile,
    ObjectDamaged,
    RecoveryBlocked,
    SidecarUnreadable,
    StorageError,
    StorageUnavailable,
    StoreUnsupported,
    TableDrift,
    TableMoved,
    UpgradeRequired,
)
from omnigraph.problems import (
    ClusterProblem,
    Diagnostic,
    ErrorGroup,
    RecordProblem,
    Violation,
)

__all__ = [
    "ActorRequired",
    "BackupNotFound",
    "BadValue",
    "BatchDone",
    "BatchOutcomeUnknown",
    "BlobChanged",
    "BlobNotFound",
    "BlobSourceUnavailable",
    "BranchExists",
    "BranchInUse",
    "BranchNotFound",
    "BranchOutcomeUnknown",
    "BranchProtected",
    "BranchTagged",
    "ChangeFeedGap",
    "ClusterManaged",
    "ClusterProblem",
    "ClusterRefused",
    "CommitDone",
    "ComputationFailed",
    "ConfigInvalid",
    "Conflict",
    "ConflictError",
    "ConflictKind",
    "ConstraintViolation",
    "CopyRefused",
    "CopyUnfinished",
    "CountOverflow",
    "CursorRejected",
    "DataError",
    "Diagnostic",
    "DivisionByZero",
    "EmbeddingUnavailable",
    "ErrorGroup",
    "ExportRefused",
    "ForkedProcess",
    "GraphClosed",
    "GraphExists",
    "GraphMoved",
    "GraphNotFound",
    "GraphNotServed",
    "HistoryReclaimed",
    "IncompleteFile",
    "InvalidAddress",
    "InvalidArgument",
    "InvalidBranchName",
    "InvalidTagName",
    "JavaUnavailable",
    "JobCancelled",
    "JobFailed",
    "KeyConflict",
    "KeyReused",
    "LanguageError",
    "LockLost",
    "LockTimeout",
    "MaintenanceRunning",
    "ManifestConflict",
    "MediaUnsupported",
    "MergeConflicts",
    "MergeUnfinished",
    "MigrationError",
    "MissingExtra",
    "NotAGraph",
    "NotOnSpark",
    "NumberOverflow",
    "ObjectDamaged",
    "OmniError",
    "Outcome",
    "OutcomeUnknown",
    "ParameterError",
    "ParentlessCommit",
    "PipelineError",
    "PolicyDenied",
    "PolicyInvalid",
    "PreconditionFailed",
    "PublishContention",
    "QueryCancelled",
    "QueryError",
    "QueryMemoryExceeded",
    "QueryNotFound",
    "QueryStopped",
    "QueryTimeout",
    "RangeUnsatisfiable",
    "ReadOnlyGraph",
    "RecordError",
    "RecordProblem",
    "RecoveryBlocked",
    "RequestError",
    "RequestIncomplete",
    "ResourceLimit",
    "SchemaChanged",
    "SchemaError",
    "SchemaRefused",
    "SchemaUnfinished",
    "ServerFailed",
    "ServerUnavailable",
    "SharedRows",
    "SidecarUnreadable",
    "SnapshotNotFound",
    "SourceUnusable",
    "SparkUnavailable",
    "StagedFilesRemoved",
    "StorageError",
    "StorageUnavailable",
    "StoreUnsupported",
    "StreamOutOfStep",
    "SumOverflow",
    "TableDrift",
    "TableMoved",
    "TagExists",
    "TagNotFound",
    "TagOutcomeUnknown",
    "TooManyRequests",
    "Unauthorized",
    "UpgradeRequired",
    "Violation",
]
