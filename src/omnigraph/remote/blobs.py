"""The blobs of a graph behind a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from omnigraph.arguments import optional_text, text_argument
from omnigraph.blobs import BlobData, blob_content
from omnigraph.errors import RangeUnsatisfiable, ServerFailed
from omnigraph.keywords import At
from omnigraph.messages.values import MEDIA_TYPE as VALUES
from omnigraph.read.blobs import Blob, BlobCell
from omnigraph.remote.handle import RemoteHandle, refuse_direct
from omnigraph.remote.transport import Transport, request_headers
from omnigraph.write.mutations.requests import MutationResult

_FIRST: Final = 1 << 18
"""How many bytes are asked for when a blob is opened; a smaller one is there whole."""
_BYTES: Final = "application/octet-stream"
_PATH: Final = "/blob"


class RemoteBlobs(RemoteHandle):
    """A remote graph's blobs. `RemoteGraph` has these methods too."""

    def blob(
        self,
        type: str,  # noqa: A002  what it is called
        id: str,  # noqa: A002
        property: str,  # noqa: A002
        *,
        branch: str | None = None,
        at: At = None,
    ) -> Blob:
        """The bytes of a `Blob` property as a binary file, with `size` and `etag`, of which any part can be read.

        Parts are fetched as they are read, all of them from the state that the graph is in now.
        """
        asked = {**_cell(type, id, property), **self._state(branch, at)}
        return _opened(self._open, asked)

    def put_blob(
        self,
        type: str,  # noqa: A002
        id: str,  # noqa: A002
        property: str,  # noqa: A002
        data: BlobData,
        *,
        branch: str | None = None,
        message: str | None = None,
        if_match: str | None = None,
        if_commit: str | None = None,
        graph_commit_id: str | None = None,
        idempotency_key: str | None = None,
        **direct: Any,
    ) -> MutationResult:
        """Give a `Blob` property of a node or edge other bytes, as one commit; None makes it null."""
        refuse_direct(direct)
        content = blob_content(data)
        query = {
            **_cell(type, id, property),
            "branch": self._named(branch),
            "message": optional_text("message", message),
        }
        headers = {"Accept": VALUES, **request_headers(if_commit, graph_commit_id, idempotency_key)}
        if content is not None:
            headers["Content-Type"] = _BYTES
        if if_match is not None:
            headers["If-Match"] = f'"{optional_text("if_match", if_match)}"'
        method = "DELETE" if content is None else "PUT"
        done: MutationResult = self._open.sent(method, _PATH, content, query=query, headers=headers, is_write=True)
        return done


def _cell(type_name: str, entity_id: str, name: str) -> dict[str, str]:
    return {
        "type": text_argument("type", type_name),
        "id": text_argument("id", entity_id),
        "property": text_argument("property", name),
    }


def _opened(transport: Transport, asked: Mapping[str, Any]) -> Blob:
    """A blob whose first bytes were fetched together with its size and its ETag."""
    try:
        first, headers = _fetched(transport, "GET", asked, {"Range": f"bytes=0-{_FIRST - 1}"})
        size = int(headers["Content-Range"].rpartition("/")[2])
    except RangeUnsatisfiable as error:
        if error.length:
            raise
        first, headers = _fetched(transport, "HEAD", asked, {})
        size = 0
    except (KeyError, ValueError):
        raise ServerFailed(200, "its answer about a blob has no range", None) from None
    etag, commit = headers["ETag"].strip('"'), headers["Omnigraph-Snapshot-Id"] or None
    pinned = {**asked, "branch": None, "snapshot": commit} if commit else asked

    def read_range(start: int, length: int) -> bytes:
        if start + length <= len(first):
            return first[start : start + length]
        wanted = {"Range": f"bytes={start}-{start + length - 1}", "If-Match": f'"{etag}"'}
        return _fetched(transport, "GET", pinned, wanted)[0]

    kind = headers["Omnigraph-Table-Key"]
    return Blob(BlobCell(kind, asked["id"], asked["property"]), size, etag, commit, read_range)


def _fetched(
    transport: Transport, method: str, asked: Mapping[str, Any], headers: Mapping[str, str]
) -> tuple[bytes, Mapping[str, str]]:
    with transport.answered(method, _PATH, None, query=asked, headers={"Accept": _BYTES, **headers}) as answer:
        return answer.read(), answer.headers
