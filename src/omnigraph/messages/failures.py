"""Errors on the wire: the status and the body of each, and the same error again on the other side."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Final

from omnigraph import errors
from omnigraph.errors import OmniError, RequestError, ServerFailed
from omnigraph.messages.values import decode_value, encode_value

STATUSES: Final[Mapping[type[OmniError], int]] = {
    errors.OmniError: 500,
    errors.LanguageError: 400,
    errors.ParameterError: 400,
    errors.MigrationError: 400,
    errors.SchemaRefused: 400,
    errors.RequestError: 400,
    errors.Unauthorized: 401,
    errors.ReadOnlyGraph: 403,
    errors.PolicyDenied: 403,
    errors.ActorRequired: 403,
    errors.GraphNotFound: 404,
    errors.GraphNotServed: 404,
    errors.QueryNotFound: 404,
    errors.BranchNotFound: 404,
    errors.TagNotFound: 404,
    errors.SnapshotNotFound: 404,
    errors.BackupNotFound: 404,
    errors.BlobNotFound: 404,
    errors.RequestIncomplete: 408,
    errors.GraphExists: 409,
    errors.BranchExists: 409,
    errors.BranchInUse: 409,
    errors.BranchProtected: 409,
    errors.BranchTagged: 409,
    errors.SharedRows: 409,
    errors.TagExists: 409,
    errors.ParentlessCommit: 409,
    errors.ClusterManaged: 409,
    errors.HistoryReclaimed: 410,
    errors.ChangeFeedGap: 410,
    errors.MediaUnsupported: 415,
    errors.RangeUnsatisfiable: 416,
    errors.KeyReused: 422,
    errors.MissingExtra: 501,
    errors.GraphClosed: 503,
    errors.DataError: 400,
    errors.KeyConflict: 409,
    errors.ResourceLimit: 413,
    errors.EmbeddingUnavailable: 503,
    errors.BlobSourceUnavailable: 424,
    errors.QueryStopped: 400,
    errors.QueryTimeout: 413,
    errors.QueryMemoryExceeded: 413,
    errors.QueryCancelled: 503,
    errors.PipelineError: 400,
    errors.JobFailed: 500,
    errors.ConflictError: 409,
    errors.PreconditionFailed: 412,
    errors.BlobChanged: 412,
    errors.TooManyRequests: 429,
    errors.OutcomeUnknown: 503,
    errors.BatchOutcomeUnknown: 503,
    errors.BranchOutcomeUnknown: 503,
    errors.TagOutcomeUnknown: 503,
    errors.MergeUnfinished: 503,
    errors.SchemaUnfinished: 503,
    errors.ServerUnavailable: 503,
    errors.StorageError: 500,
    errors.RecoveryBlocked: 503,
    errors.SidecarUnreadable: 503,
    errors.StorageUnavailable: 503,
}
"""The status of an error is that of its class, or else of the nearest class above it."""

CODES: Final[Mapping[int, str]] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "conflict",
    410: "gone",
    412: "precondition_failed",
    413: "too_large",
    415: "unsupported_media_type",
    416: "range_not_satisfiable",
    422: "key_reused",
    424: "failed_dependency",
    429: "too_many_requests",
    500: "internal",
    501: "not_implemented",
    503: "unavailable",
}


def status_of(error: OmniError) -> int:
    """The status with which a server answers an error."""
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def failure_body(error: OmniError, request_id: str | None = None) -> dict[str, Any]:
    """The body of an answer with an error: its message and its code, its own fields, and what rebuilds it."""
    return {
        **error.as_json(),
        "code": CODES[status_of(error)],
        "outcome": error.outcome.value,
        "request_id": request_id,
        "exception": encode_value(error),
    }


def raised_from(status: int, body: object) -> OmniError:
    """The error that a server answered with, of the class and with the fields that it had there."""
    if not isinstance(body, dict):
        return ServerFailed(status, "its answer is not JSON; is it an OmniGraph server?", None)
    request_id = body.get("request_id")
    with contextlib.suppress(ValueError):
        known = decode_value(body.get("exception"))
        if isinstance(known, OmniError):
            return known
    message = str(body.get("error", "no reason is given"))
    return ServerFailed(status, message, request_id) if status >= 500 else RequestError(message)
