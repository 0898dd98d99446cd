"""The part of a graph that is about blobs: their bytes as files, and other bytes for them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from omnigraph.arguments import LONGEST_MESSAGE, described, optional_text, text_argument
from omnigraph.errors import InvalidArgument, RequestError
from omnigraph.handle import GraphHandle
from omnigraph.keywords import At, commit_id_argument
from omnigraph.policy.actions import Action

if TYPE_CHECKING:
    from omnigraph.read.blobs import Blob
    from omnigraph.write.mutations.requests import MutationResult

BlobData = bytes | bytearray | memoryview | BinaryIO | os.PathLike[str] | None
"""The bytes of a blob, a binary file with them, or the path of one; None for null."""


class GraphWithBlobs(GraphHandle):
    """A graph's blobs. `Graph` has these methods too."""

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

        BlobNotFound if there is no such node or edge, or its value is null. What the file reads stays the same
        when the graph is written to.
        """
        from omnigraph.read.blobs import blob_cell, open_blob

        state = self.snapshot(branch, at=at)
        cell = blob_cell(
            state, text_argument("type", type), text_argument("id", id), text_argument("property", property)
        )
        self._allow(Action.READ, state.branch, types=[cell.table_key])
        return open_blob(self._repository.tables, state, cell)

    def put_blob(
        self,
        type: str,  # noqa: A002
        id: str,  # noqa: A002
        property: str,  # noqa: A002
        data: BlobData,
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_match: str | None = None,
        if_commit: str | None = None,
        graph_commit_id: str | None = None,
    ) -> MutationResult:
        """Give a `Blob` property of a node or edge other bytes, as one commit; None makes it null.

        ``if_match`` is the ETag that it must have, as `blob` gives it, else BlobChanged is raised and nothing is
        written.
        """
        from omnigraph.read.blobs import blob_cell
        from omnigraph.write.blobs import put_blob
        from omnigraph.write.changes import WriteRequest
        from omnigraph.write.committing.entry import enter
        from omnigraph.write.protocol import repeated_if_schema_changed

        self._allow(Action.CHANGE, self._named(branch), actor=actor)
        content = blob_content(data)
        repository = self._repository
        repository.require_writable()

        def run() -> MutationResult:
            entry = enter(repository, repository.branches.find(self._named(branch)))
            cell = blob_cell(
                entry.snapshot,
                text_argument("type", type),
                text_argument("id", id),
                text_argument("property", property),
            )
            self._allow(Action.CHANGE, entry.branch.name, types=[cell.table_key], actor=actor)
            request = WriteRequest(
                "mutation",
                entry.branch,
                self._who(actor),
                optional_text("message", message, LONGEST_MESSAGE),
                optional_text("if_commit", if_commit),
                graph_commit_id=commit_id_argument(graph_commit_id),
                entry=entry,
                compiled_for=entry.snapshot,
            )
            return put_blob(repository, request, cell, content, optional_text("if_match", if_match))

        return repeated_if_schema_changed(run)


def blob_content(data: BlobData) -> bytes | None:
    """The bytes that a caller gave, in whichever form."""
    if data is None:
        return None
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    if isinstance(data, os.PathLike):
        try:
            return Path(data).read_bytes()
        except OSError as error:
            raise RequestError(f"the file {data} cannot be read: {error.strerror or error}") from None
    read = getattr(data, "read", None)
    content = None if read is None else read()
    if not isinstance(content, bytes):
        raise InvalidArgument("data", f"it is bytes, a binary file or the path of one, not {described(data)}")
    return content
