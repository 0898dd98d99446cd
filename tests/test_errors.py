"""Errors are fields first: they can be shown, sent as JSON, and carried across processes."""

from __future__ import annotations

import ast
import copy
import inspect
import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph import errors
from omnigraph.errors import (
    ActorRequired,
    BackupNotFound,
    BadValue,
    BatchDone,
    BatchOutcomeUnknown,
    BlobChanged,
    BlobNotFound,
    BlobSourceUnavailable,
    BranchExists,
    BranchInUse,
    BranchNotFound,
    BranchOutcomeUnknown,
    BranchProtected,
    BranchTagged,
    ChangeFeedGap,
    ClusterManaged,
    ClusterProblem,
    ClusterRefused,
    CommitDone,
    ComputationFailed,
    ConfigInvalid,
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
    DivisionByZero,
    EmbeddingUnavailable,
    ExportRefused,
    ForkedProcess,
    GraphClosed,
    GraphExists,
    GraphMoved,
    GraphNotFound,
    GraphNotServed,
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
    KeyReused,
    LanguageError,
    LockLost,
    LockTimeout,
    MaintenanceRunning,
    ManifestConflict,
    MediaUnsupported,
    MergeConflicts,
    MergeUnfinished,
    MigrationError,
    MissingExtra,
    NotAGraph,
    NotOnSpark,
    NumberOverflow,
    ObjectDamaged,
    OmniError,
    OutcomeUnknown,
    ParameterError,
    ParentlessCommit,
    PipelineError,
    PolicyDenied,
    PolicyInvalid,
    PreconditionFailed,
    PublishContention,
    QueryCancelled,
    QueryError,
    QueryMemoryExceeded,
    QueryNotFound,
    QueryStopped,
    QueryTimeout,
    RangeUnsatisfiable,
    ReadOnlyGraph,
    RecordError,
    RecordProblem,
    RecoveryBlocked,
    RequestError,
    RequestIncomplete,
    ResourceLimit,
    SchemaChanged,
    SchemaError,
    SchemaRefused,
    SchemaUnfinished,
    ServerFailed,
    ServerUnavailable,
    SharedRows,
    SidecarUnreadable,
    SnapshotNotFound,
    SourceUnusable,
    SparkUnavailable,
    StagedFilesRemoved,
    StorageError,
    StorageUnavailable,
    StoreUnsupported,
    StreamOutOfStep,
    SumOverflow,
    TableDrift,
    TableMoved,
    TagExists,
    TagNotFound,
    TagOutcomeUnknown,
    TooManyRequests,
    Unauthorized,
    UpgradeRequired,
    Violation,
)
from omnigraph.lang.schema.resolve import compile_schema
from omnigraph.lang.source import decode

SOURCES = Path(errors.__file__).parent.parent


def problem(code: str = "P001", line: int = 1) -> Diagnostic:
    return Diagnostic(code, "parse error", "wrong", "s.pg", line, 3, "a bad thing", (2, 5), "do better")


ERRORS: list[OmniError] = [
    OmniError("plain"),
    LanguageError([problem()]),
    SchemaError([problem(), problem("S101", 2)], omitted=4),
    QueryError((problem(),)),
    ParameterError("find", {"age": "is missing", "name": "is null"}),
    MigrationError([{"entity": "node:A.x", "reason": "no", "code": "OG-MF-106"}, {"entity": "e", "reason": "r"}]),
    RequestError("there is no type 'Persn'"),
    BlobNotFound("node:Doc", "a", "body", True),
    BlobChanged("node:Doc", "a", "body", "1f", None),
    RangeUnsatisfiable("bytes=9-", 5, 9, 5),
    BlobSourceUnavailable("s3://bucket/key", "there is no such object"),
    InvalidArgument("limit", "it is a whole number, not a text"),
    InvalidAddress("ftp://x", "graphs live on local paths"),
    GraphExists("g.omni"),
    GraphNotFound("g.omni"),
    NotAGraph("g.omni", "it has no manifest", "check the address"),
    GraphMoved("/new/g.omni", "/old/g.omni"),
    CopyUnfinished("copy.omni", "g.omni"),
    CopyRefused("copy.omni", "there is another graph", "choose another place"),
    BackupNotFound("backups", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    ReadOnlyGraph("g.omni"),
    Unauthorized("the token is unknown"),
    GraphNotServed("other"),
    QueryNotFound("triage"),
    MediaUnsupported("text/csv", ["application/json", "application/x-ndjson"]),
    RequestIncomplete(1_024, 60.0),
    KeyReused("order-17"),
    PolicyDenied("act-a", "change", "main", None, "node:Person"),
    ActorRequired("read"),
    PolicyInvalid("policy.yaml", ["rules[0] has no id"]),
    ConfigInvalid("config.yaml", "it is not YAML"),
    ClusterRefused("folder", [ClusterProblem("unknown_key", "error", "graphs.g", "line 3: 'x' means nothing")]),
    ClusterManaged("its schema", "folder/graphs/g.omni"),
    CommitDone("main", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    TooManyRequests("writes of one actor", 16, 1),
    ServerUnavailable("http://localhost:8080", "connection refused", True),
    ServerFailed(500, "internal error", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    GraphClosed("g.omni"),
    ForkedProcess("g.omni", 11, 12),
    InvalidBranchName("a b", "it has a space"),
    BranchExists("dev"),
    BranchNotFound("dve", "dev"),
    BranchInUse("dev", ["dev/1", "dev/2"]),
    BranchProtected("main", "every graph has its main branch"),
    BranchTagged("dev", ["v1", "v2"]),
    InvalidTagName("12", "a number is a manifest version"),
    TagExists("v1"),
    TagNotFound("v11", "v1"),
    SnapshotNotFound("commit 01A"),
    HistoryReclaimed("manifest version 3"),
    ParentlessCommit("01A"),
    CursorRejected("it belongs to another graph"),
    ChangeFeedGap("main", "eyJ2", "01A"),
    MissingExtra("polars", "polars", "converting a result to polars"),
    DataError("plain"),
    RecordError([RecordProblem("a.jsonl", 3, 7, "not JSON")], 2),
    ConstraintViolation([Violation("node:A", "x", "unique", "twice", "a.jsonl", 3)], 5),
    BadValue("age is I32 and cannot hold 1e99"),
    KeyConflict("node:Person", ["ada", "bob"], 3),
    EmbeddingUnavailable("no provider is configured"),
    ResourceLimit("bytes changed by one mutation", 10, 11),
    QueryStopped("plain"),
    QueryTimeout("find", 1.0, 1.25, 100),
    QueryMemoryExceeded("find", 1000, 2000, 100),
    CountOverflow("find"),
    SumOverflow("find", "sum($p.age)"),
    ComputationFailed("find", "sqrt($p.age)", "-1 has no square root"),
    DivisionByZero("find", "1 / $p.age", "a number is divided by zero"),
    NumberOverflow("find", "$p.age * 2", "the result has no room in 64 bits"),
    QueryCancelled("find", 1.25, 100),
    PipelineError("plain"),
    JavaUnavailable("there is no java on the path"),
    SparkUnavailable("spark://host", "it does not answer", "start it"),
    SourceUnusable("a.jsonl", "there is no such file"),
    ExportRefused("to a.jsonl", "it exists"),
    JobFailed("01J", "staging", "a task failed"),
    JobCancelled("01J"),
    StreamOutOfStep("events", "main", 3, "batch 2 is missing"),
    NotOnSpark("a memory limit", "leave it out"),
    ConflictError("plain"),
    ManifestConflict("node:Person", 7, 8),
    PreconditionFailed("main", "01A", None),
    SchemaChanged("main"),
    StagedFilesRemoved("nodes/1/data/2.lance"),
    MergeConflicts("dev", "main", [Conflict(ConflictKind.ORPHAN_EDGE, "edge:Knows", "e1", "no node 'Ada'")]),
    BatchDone("events", "main", 3),
    PublishContention("main", 5),
    LockTimeout("main", 60.0, "process 12"),
    MaintenanceRunning("/data/g.omni"),
    LockLost("main"),
    OutcomeUnknown("main", "01A", "the store does not answer"),
    BatchOutcomeUnknown("orders", "main", 7, "the store does not answer"),
    BranchOutcomeUnknown("dev", "created", "the store does not answer"),
    MergeUnfinished("dev", "main", "01A", "the store does not answer"),
    SchemaUnfinished(["main"], ["dev"], "the store does not answer"),
    SchemaRefused("dev", "node:A.x: its type cannot change", {"unsupported_changes": []}),
    SharedRows("node:A", "dev"),
    TagOutcomeUnknown("v1", "created", "the store does not answer"),
    StorageError("plain"),
    IncompleteFile("a.lance", 100, 50),
    ObjectDamaged("a.json", "it is not JSON", "remove it"),
    RecoveryBlocked("01W", "node:Person was moved"),
    SidecarUnreadable("a.json", "it is damaged"),
    TableDrift("node:Person", 7, "run `omnigraph repair`"),
    TableMoved("nodes/1", 7),
    StorageUnavailable("s3://bucket", "403"),
    StoreUnsupported("s3://bucket", "minio"),
    UpgradeRequired("g.omni", 9, 4),
]
each_error = pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)


def descendants(error: type[OmniError]) -> Iterator[type[OmniError]]:
    """A class and all classes below it; names with an underscore only share code between their children."""
    if not error.__name__.startswith("_"):
        yield error
    for child in error.__subclasses__():
        if child.__module__.startswith("omnigraph."):
            yield from descendants(child)


def public_parent(error: type[OmniError]) -> str:
    return next(base.__name__ for base in error.__mro__[1:] if not base.__name__.startswith("_"))


class TestTheTree:
    def test_every_class_is_among_the_examples_of_this_test(self) -> None:
        assert [type(error).__name__ for error in ERRORS] == list(dict.fromkeys(type(e).__name__ for e in ERRORS))
        assert {type(error) for error in ERRORS} == set(descendants(OmniError))

    def test_every_class_is_exported(self) -> None:
        names = {error.__name__ for error in descendants(OmniError)}
        assert names <= set(errors.__all__)
        assert all(getattr(errors, error.__name__) is error for error in descendants(OmniError))

    def test_no_class_is_defined_elsewhere(self) -> None:
        names = {error.__name__ for error in descendants(OmniError)}
        for path in SOURCES.rglob("*.py"):
            if path.parent.name == "errors":
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                bases = node.bases if isinstance(node, ast.ClassDef) else []
                found = names & {base.id for base in bases if isinstance(base, ast.Name)}
                assert not found, f"{path.name} has a child of {found}; errors are defined in omnigraph.errors"

    def test_it_is_drawn_as_it_is(self) -> None:
        drawn: dict[str, str] = {}
        above: list[str] = []
        for line in inspect.getdoc(errors).split("::")[1].splitlines():  # type: ignore[union-attr]
            match = re.match(r"    ([│├└─ ]*)([A-Z]\w+)(?: +(\S.*))?$", line)
            if match is not None:
                depth = len(match[1]) // 4
                above[depth:] = [match[2]]
                drawn[match[2]] = above[depth - 1] if depth else "Exception"
                assert match[3] or depth == 0, f"{match[2]} is not explained"
        assert drawn == {error.__name__: public_parent(error) for error in descendants(OmniError)}


@each_error
def test_what_an_error_is_made_of_are_its_fields(error: OmniError) -> None:
    given = inspect.signature(type(error).__init__).parameters.keys() - {"self", "args", "kwargs"}
    assert given <= vars(error).keys()


@each_error
def test_an_error_has_a_message_and_is_json(error: OmniError) -> None:
    assert str(error)
    assert json.loads(json.dumps(error.as_json()))["error"]


@each_error
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_survive_pickling(error: OmniError, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error)
    assert again.as_json() == error.as_json()
    assert again.outcome is error.outcome


@each_error
def test_errors_survive_copying(error: OmniError) -> None:
    assert str(copy.deepcopy(error)) == str(error)


def test_a_real_schema_error_survives_pickling() -> None:
    with pytest.raises(SchemaError) as raised:
        compile_schema("node A { x: Strin }\nedge E: A -> B")
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_every_error_is_an_omnigraph_error() -> None:
    with pytest.raises(OmniError):
        decode(b"\xff", "s.pg")


def test_a_language_error_shows_every_problem() -> None:
    error = SchemaError([problem(), problem("S101", 2)], omitted=4)
    assert (error.code, error.line, error.column) == ("P001", 1, 3)
    first, second, rest = str(error).split("\n\n")
    assert first.startswith("parse error: P001: wrong\n --> s.pg:1:3\n")
    assert second.startswith("parse error: S101: wrong\n --> s.pg:2:3\n")
    assert rest == "… and 4 more"


def test_a_language_error_as_json() -> None:
    assert SchemaError([problem()]).as_json() == {
        "error": "parse error: P001: wrong",
        "diagnostics": [
            {
                "code": "P001",
                "stage": "parse error",
                "message": "wrong",
                "source": "s.pg",
                "line": 1,
                "column": 3,
                "help": "do better",
            }
        ],
        "omitted": 0,
    }


def test_a_parameter_error_names_the_query_and_each_parameter() -> None:
    error = ParameterError("find", {"age": "is missing", "name": "is null"})
    assert str(error) == "cannot run query 'find': parameter 'age' is missing; parameter 'name' is null"
    assert error.as_json()["parameters"] == {"age": "is missing", "name": "is null"}


def test_a_failed_precondition_names_both_commits() -> None:
    for actual, shown in (("01B", "is at commit 01B, not at 01A;"), (None, "has no commit, and is not at 01A;")):
        assert str(PreconditionFailed("main", "01A", actual)).startswith(f"branch 'main' {shown}")


def test_a_key_conflict_counts_the_ids_it_does_not_show() -> None:
    assert str(KeyConflict("node:Person", ["ada"], 1)).startswith("node Person already has this id: 'ada';")
    assert str(KeyConflict("node:Person", ["a", "b"], 5)).startswith(
        "node Person already has these ids: 'a', 'b' and 3 more;"
    )
    assert str(KeyConflict("node:Person", ["ada"], 1, repeated=True)) == (
        "several records of node Person have this id: 'ada'; keep one record of each, or load with mode merge, "
        "where the last one wins"
    )


def test_a_migration_error_leads_with_the_first_code_and_counts_the_rest() -> None:
    coded = {"entity": "node:A.x", "reason": "no", "code": "OG-MF-106"}
    plain = {"entity": "edge:E", "reason": "its endpoints cannot change"}
    assert str(MigrationError([coded, plain])) == "[OG-MF-106] node:A.x: no (and 1 more)"
    assert str(MigrationError([plain])) == "edge:E: its endpoints cannot change"
    assert MigrationError([coded, plain]).as_json()["unsupported_changes"] == [coded, plain]
