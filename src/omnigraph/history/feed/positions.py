"""Positions: behind which version of a branch a consumer is, and the cursors that say so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.errors import CursorRejected, InvalidArgument
from omnigraph.history.diff import ChangeFilter
from omnigraph.history.feed.line import BranchLine
from omnigraph.history.feed.tokens import Scope, TokenKind, branch_scope, count_in, decode_token, encode_token
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.snapshot import Snapshot


def commit_in(start: str) -> str | None:
    """The commit that a start names, `after:COMMIT`; None for `now` and `beginning`."""
    if start in ("now", "beginning"):
        return None
    kind, colon, commit = start.partition(":")
    if kind != "after" or not colon or not commit.strip():
        raise InvalidArgument("start", f"it is now, beginning or after:COMMIT, not '{start}'")
    return commit


def version_at(line: BranchLine, start: str) -> int:
    """The version behind which a consumer begins that names a start."""
    commit = commit_in(start)
    if commit is not None:
        return line.position_of(commit)
    return line.head().version if start == "now" else 0


def version_behind(line: BranchLine, scope: Scope, cursor: str) -> int:
    """The version that a cursor stands behind; CursorRejected if it is not one of this branch and this filter."""
    return verified(line, decode_token(TokenKind.FEED_CURSOR, scope, cursor))


def verified(line: BranchLine, fields: Mapping[str, Any]) -> int:
    """The version that a token stands behind; CursorRejected if that version holds another commit."""
    version, commit = count_in(fields, "at"), fields.get("commit")
    if version == 0:
        return 0
    if version <= line.head().version:
        head = line.state(version).head
        if head is not None and head.graph_commit_id == commit:
            return version
    raise CursorRejected(f"'{line.branch.name}' has no commit {commit} where it had one")


def position(line: BranchLine, version: int) -> dict[str, Any]:
    """The fields of a token that stands behind a version."""
    head = line.state(version).head if version else None
    return {"at": version, "commit": None if head is None else head.graph_commit_id}


def cursor_behind(line: BranchLine, scope: Scope, version: int) -> str:
    """The cursor of a consumer that has read everything up to a version."""
    return encode_token(TokenKind.FEED_CURSOR, scope, position(line, version))


def cursor_at(branch: Branch, wanted: ChangeFilter, snapshot: Snapshot) -> str:
    """The cursor behind a state of a branch, from which a consumer goes on that has the state itself."""
    fields = {"at": snapshot.manifest_version, "commit": snapshot.graph_commit_id}
    return encode_token(TokenKind.FEED_CURSOR, branch_scope(snapshot.catalog, branch, wanted), fields)
