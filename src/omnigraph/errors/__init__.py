"""Every error OmniGraph raises, in one tree.

::

    OmniError
    ├── LanguageError          fix the text: each problem has a code, a place and a remedy
    │   ├── SchemaError        a .pg schema does not parse or does not make sense
    │   └── QueryError         a .gq query does not parse, does not type-check or names nothing
    ├── ParameterError         fix the values given for a query's parameters
    ├── MigrationError         the schema change cannot be applied to existing data
    ├── RequestError           ask for something that is there
    │   ├── InvalidArgument    a value of the wrong type, or a text that cannot be stored
    │   ├── InvalidAddress     that is no place a graph can live
    │   ├── GraphExists        init: there is a graph already
    │   ├── GraphNotFound      open: there is nothing
    │   ├── NotAGraph          open: there is something else, or half a graph
    │   ├── ReadOnlyGraph      the graph was opened for reading
    │   ├── GraphClosed        the graph was closed
    │   ├── ForkedProcess      a forked child cannot use what its parent opened
    │   ├── InvalidBranchName  a name that breaks the rules, or clashes with another
    │   ├── BranchExists       create: the name is taken
    │   ├── BranchNotFound     no branch of that name
    │   ├── BranchInUse        delete: other branches descend from it
    │   ├── BranchProtected    delete: this one must stay
    │   ├── SnapshotNotFound   no commit or manifest version like that
    │   ├── HistoryReclaimed   there was one, and maintenance has removed it
    │   └── MissingExtra       a package that this needs is not installed
    ├── DataError              fix the data
    │   ├── RecordError        records of a load that cannot be read
    │   ├── ConstraintViolation rows that break a rule of the schema
    │   ├── KeyConflict        an id that exists already
    │   ├── EmbeddingUnavailable vectors that cannot be computed
    │   └── ResourceLimit      more than one write may carry
    ├── QueryStopped           ask for less, or allow more
    │   ├── QueryTimeout       the query took longer than it was allowed
    │   ├── QueryMemoryExceeded the query needed more memory than it was allowed
    │   ├── CountOverflow      the query counts more matches than a number can say
    │   └── QueryCancelled     the caller stopped it
    ├── PipelineError          a Spark job that could not be run
    │   ├── JavaUnavailable    there is no Java, or one that is too old
    │   ├── SparkUnavailable   no session: the cluster does not answer, or Spark did not start
    │   ├── SourceUnusable     what was to be loaded is not there, or nothing that can be loaded
    │   ├── ExportRefused      the target is taken, or a value has no form there
    │   ├── JobFailed          a task failed again and again
    │   ├── JobCancelled       the caller stopped it
    │   ├── StreamOutOfStep    a micro-batch that is not the next one of its stream
    │   └── NotOnSpark         only the embedded engine does that
    ├── ConflictError          try again
    │   ├── ManifestConflict   a table moved while the write was prepared
    │   ├── PreconditionFailed the branch is not at the commit the caller named
    │   ├── BatchDone          a stream's micro-batch of which nothing is left to commit
    │   ├── PublishContention  too many others published at the same time
    │   ├── LockTimeout        another writer held the lock too long
    │   └── LockLost           this writer stalled and its lock was given away
    ├── OutcomeUnknown         ask for the commit before you try again
    ├── BranchOutcomeUnknown   look at the list of branches before you try again
    └── StorageError           ask an operator
        ├── IncompleteFile     the store did not keep all bytes of a file
        ├── ObjectDamaged      something of the graph is missing, truncated or changed
        ├── RecoveryBlocked    what a dead writer left cannot be resolved safely
        ├── SidecarUnreadable  what a dead writer left cannot be read
        ├── TableDrift         a table moved without the graph knowing
        ├── StorageUnavailable the store refused or failed
        ├── StoreUnsupported   the store cannot promise one winner
        └── UpgradeRequired    the graph was written by a newer release

Errors are made of fields first and words second: programs read the fields (``as_json``), people read the
message. All of them survive pickling, because they cross process and Spark worker boundaries.
"""

from __future__ import annotations

from omnigraph.errors.base import OmniError as OmniError
from omnigraph.errors.base import Outcome as Outcome
from omnigraph.errors.conflicts import BatchDone as BatchDone
from omnigraph.errors.conflicts import ConflictError as ConflictError
from omnigraph.errors.conflicts import LockLost as LockLost
from omnigraph.errors.conflicts import LockTimeout as LockTimeout
from omnigraph.errors.conflicts import ManifestConflict as ManifestConflict
from omnigraph.errors.conflicts import PreconditionFailed as PreconditionFailed
from omnigraph.errors.conflicts import PublishContention as PublishContention
from omnigraph.errors.data import ConstraintViolation as ConstraintViolation
from omnigraph.errors.data import DataError as DataError
from omnigraph.errors.data import EmbeddingUnavailable as EmbeddingUnavailable
from omnigraph.errors.data import KeyConflict as KeyConflict
from omnigraph.errors.data import RecordError as RecordError
from omnigraph.errors.data import ResourceLimit as ResourceLimit
from omnigraph.errors.language import LanguageError as LanguageError
from omnigraph.errors.language import MigrationError as MigrationError
from omnigraph.errors.language import ParameterError as ParameterError
from omnigraph.errors.language import QueryError as QueryError
from omnigraph.errors.language import SchemaError as SchemaError
from omnigraph.errors.outcomes import BranchOutcomeUnknown as BranchOutcomeUnknown
from omnigraph.errors.outcomes import OutcomeUnknown as OutcomeUnknown
from omnigraph.errors.pipeline import ExportRefused as ExportRefused
from omnigraph.errors.pipeline import JavaUnavailable as JavaUnavailable
from omnigraph.errors.pipeline import JobCancelled as JobCancelled
from omnigraph.errors.pipeline import JobFailed as JobFailed
from omnigraph.errors.pipeline import NotOnSpark as NotOnSpark
from omnigraph.errors.pipeline import PipelineError as PipelineError
from omnigraph.errors.pipeline import SourceUnusable as SourceUnusable
from omnigraph.errors.pipeline import SparkUnavailable as SparkUnavailable
from omnigraph.errors.pipeline import StreamOutOfStep as StreamOutOfStep
from omnigraph.errors.queries import CountOverflow as CountOverflow
from omnigraph.errors.queries import QueryCancelled as QueryCancelled
from omnigraph.errors.queries import QueryMemoryExceeded as QueryMemoryExceeded
from omnigraph.errors.queries import QueryStopped as QueryStopped
from omnigraph.errors.queries import QueryTimeout as QueryTimeout
from omnigraph.errors.requests import BranchExists as BranchExists
from omnigraph.errors.requests import BranchInUse as BranchInUse
from omnigraph.errors.requests import BranchNotFound as BranchNotFound
from omnigraph.errors.requests import BranchProtected as BranchProtected
from omnigraph.errors.requests import ForkedProcess as ForkedProcess
from omnigraph.errors.requests import GraphClosed as GraphClosed
from omnigraph.errors.requests import GraphExists as GraphExists
from omnigraph.errors.requests import GraphNotFound as GraphNotFound
from omnigraph.errors.requests import HistoryReclaimed as HistoryReclaimed
from omnigraph.errors.requests import InvalidAddress as InvalidAddress
from omnigraph.errors.requests import InvalidArgument as InvalidArgument
from omnigraph.errors.requests import InvalidBranchName as InvalidBranchName
from omnigraph.errors.requests import MissingExtra as MissingExtra
from omnigraph.errors.requests import NotAGraph as NotAGraph
from omnigraph.errors.requests import ReadOnlyGraph as ReadOnlyGraph
from omnigraph.errors.requests import RequestError as RequestError
from omnigraph.errors.requests import SnapshotNotFound as SnapshotNotFound
from omnigraph.errors.storage import IncompleteFile as IncompleteFile
from omnigraph.errors.storage import ObjectDamaged as ObjectDamaged
from omnigraph.errors.storage import RecoveryBlocked as RecoveryBlocked
from omnigraph.errors.storage import SidecarUnreadable as SidecarUnreadable
from omnigraph.errors.storage import StorageError as StorageError
from omnigraph.errors.storage import StorageUnavailable as StorageUnavailable
from omnigraph.errors.storage import StoreUnsupported as StoreUnsupported
from omnigraph.errors.storage import TableDrift as TableDrift
from omnigraph.errors.storage import UpgradeRequired as UpgradeRequired
from omnigraph.problems import Diagnostic as Diagnostic
from omnigraph.problems import RecordProblem as RecordProblem
from omnigraph.problems import Violation as Violation
