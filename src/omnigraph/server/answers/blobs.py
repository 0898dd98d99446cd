"""The routes of blobs: their bytes, whole or in part, and other bytes for them."""

from __future__ import annotations

from typing import BinaryIO, Final

from omnigraph.errors import BlobChanged, BlobNotFound, InvalidArgument
from omnigraph.graph import with_instead
from omnigraph.manifest.state import MAIN, Commit
from omnigraph.policy.actions import Action
from omnigraph.read.blobs import PIECE, Blob
from omnigraph.read.entities import entity_key
from omnigraph.server.answers.calls import BYTES, Answer, Call, Found, Rendered, Streamed
from omnigraph.server.answers.once import done_once
from omnigraph.server.transfer.conditions import Span, is_known, matches, quoted, single_tag, wanted_span
from omnigraph.write.mutations.requests import MutationResult

TABLE_KEY: Final = "Omnigraph-Table-Key"
SNAPSHOT: Final = "Omnigraph-Snapshot-Id"
"""The header that names the commit of the state that the bytes were read from."""


def stat_blob(call: Call) -> Answer:
    """The size and the ETag of a blob, as headers."""
    blob = _opened(call)
    headers = _headers(blob)
    if _is_known(call, blob):
        return Rendered(b"", BYTES, 304, headers, as_is=True)
    return Rendered(b"", BYTES, 200, {**headers, "Content-Length": str(blob.size)}, as_is=True)


def get_blob(call: Call) -> Answer:
    """The bytes of a blob, or one range of them."""
    blob = _opened(call)
    headers = _headers(blob)
    if _is_known(call, blob):
        return Rendered(b"", BYTES, 304, headers, as_is=True)
    span = wanted_span(call.get("range"), call.get("if_range"), blob.etag, blob.size)
    status, part = (200, Span(0, blob.size, blob.size)) if span is None else (206, span)
    if span is not None:
        headers["Content-Range"] = span.header
    if part.length <= PIECE:
        return Rendered(blob.read_range(part.start, part.length), BYTES, status, headers, as_is=True)

    def write(target: BinaryIO) -> None:
        target.writelines(
            blob.read_range(start, min(PIECE, part.end - start)) for start in range(part.start, part.end, PIECE)
        )

    headers["Content-Length"] = str(part.length)
    return Streamed(write, BYTES, headers, status, as_is=True)


def put_blob(call: Call) -> Answer:
    """Give a blob the bytes of the body, as one commit."""
    return _put(call, bytes(call.content))


def clear_blob(call: Call) -> Answer:
    """Make a blob null, as one commit."""
    return _put(call, None)


def _put(call: Call, content: bytes | None) -> Answer:
    branch = call.get("branch", MAIN)
    expected = call.get("if_match")
    tag = None if expected is None else single_tag(expected)
    if expected is not None and tag is None:
        raise InvalidArgument("If-Match", "give the one ETag that the blob must have")

    def run(graph_commit_id: str | None) -> MutationResult:
        return call.graph.put_blob(
            _type(call),
            call.values["id"],
            call.values["property"],
            content,
            branch=branch,
            actor=call.actor,
            message=call.get("message"),
            if_match=tag,
            if_commit=call.get("omnigraph_if_graph_commit"),
            graph_commit_id=graph_commit_id,
        )

    def rebuilt(commit: Commit) -> MutationResult:
        graph = with_instead(call.graph, {Action.READ: None})
        catalog = graph.snapshot(at=commit.graph_commit_id).catalog
        is_edge = entity_key(catalog, _type(call)).startswith("edge:")
        return MutationResult(commit.branch, "put_blob", int(not is_edge), int(is_edge), commit, call.actor)

    done = done_once(call, branch, run, rebuilt)
    return Found(done.result, done.result.as_json, headers=done.headers)


def _type(call: Call) -> str:
    """The type that a request names, with its kind if the request says it."""
    kind = call.get("entity")
    return call.values["type"] if kind is None else f"{kind}:{call.values['type']}"


def _opened(call: Call) -> Blob:
    """The blob that a request names, if it fulfils the request's `If-Match`."""
    expected = call.get("if_match")
    try:
        blob = call.graph.blob(
            _type(call),
            call.values["id"],
            call.values["property"],
            branch=call.get("branch"),
            at=call.get("snapshot"),
        )
    except BlobNotFound as error:
        if expected is not None:
            raise BlobChanged(error.table_key, error.id, error.property, expected, None) from None
        raise
    if expected is not None and not matches(expected, blob.etag):
        cell = blob.cell
        raise BlobChanged(cell.table_key, cell.id, cell.property, expected, blob.etag)
    return blob


def _is_known(call: Call, blob: Blob) -> bool:
    known = call.get("if_none_match")
    return known is not None and is_known(known, blob.etag)


def _headers(blob: Blob) -> dict[str, str]:
    """What every answer about a blob has. What its bytes are is for the caller to know, and not to be guessed."""
    return {
        "ETag": quoted(blob.etag),
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "X-Content-Type-Options": "nosniff",
        TABLE_KEY: blob.cell.table_key,
        SNAPSHOT: blob.graph_commit_id or "",
    }
