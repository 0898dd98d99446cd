"""Tokens: where a consumer of changes is, as an opaque text that only fits what it was given for.

A token is JSON with its SHA-256, in base64 for addresses. It names the graph, the branch and its incarnation, and
the filter, so that one that is damaged, or is used for something else, is refused.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from omnigraph.errors import CursorRejected
from omnigraph.history.diff import ChangeFilter
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.state import MAIN

_VERSION: Final = 1
_LONGEST: Final = 4_096
_DIGEST_BYTES: Final = 32
_BRANCH_SCOPE: Final = b"omnigraph/change-feed-branch-scope/v1\0"


class TokenKind(StrEnum):
    """What a token is for."""

    COMMIT_PAGE = "commit-page"
    FEED_CURSOR = "feed-cursor"
    FEED_PAGE = "feed-page"


@dataclass(frozen=True, slots=True)
class Scope:
    """What a token is bound to. ``subject`` is a branch, or the commit whose changes are paged through."""

    graph: str
    subject: str
    incarnation: str | None
    filter: str


def branch_scope(catalog: Catalog, branch: Branch, wanted: ChangeFilter) -> Scope:
    """The scope of a feed: one incarnation of a branch, and a filter."""
    named = b"main\0" if branch.name == MAIN else b"named\0" + branch.name.encode()
    subject = hashlib.sha256(_BRANCH_SCOPE + named).hexdigest()
    return Scope(catalog.ir.domain, subject, branch.incarnation, _filter_scope(catalog, wanted))


def commit_scope(catalog: Catalog, graph_commit_id: str, wanted: ChangeFilter) -> Scope:
    """The scope of the pages of one commit's changes."""
    return Scope(catalog.ir.domain, graph_commit_id, None, _filter_scope(catalog, wanted))


def _filter_scope(catalog: Catalog, wanted: ChangeFilter) -> str:
    types = None if wanted.tables is None else sorted(catalog.entity(key).id for key in wanted.tables)
    kinds = None if wanted.kinds is None else sorted(wanted.kinds)
    ops = None if wanted.ops is None else sorted(op.value for op in wanted.ops)
    return hashlib.sha256(json.dumps([kinds, types, ops]).encode()).hexdigest()


def encode_token(kind: TokenKind, scope: Scope, fields: Mapping[str, Any]) -> str:
    """A token with some fields of its own."""
    bound = {
        "version": _VERSION,
        "kind": kind.value,
        "graph": scope.graph,
        "subject": scope.subject,
        "incarnation": scope.incarnation,
        "filter": scope.filter,
    }
    content = json.dumps({**bound, "fields": dict(fields)}, separators=(",", ":")).encode()
    return _text(content + hashlib.sha256(content).digest())


def decode_token(kind: TokenKind, scope: Scope, token: str) -> dict[str, Any]:
    """The fields of a token; CursorRejected if it is damaged or was not given for this."""
    content = _content(token)
    if content.get("version") != _VERSION:
        raise CursorRejected("a newer release made it", "upgrade omnigraph first")
    if content.get("kind") != kind:
        raise CursorRejected(f"it is a {content.get('kind')}, and a {kind.value} is needed", _USE[kind])
    if content.get("graph") != scope.graph:
        raise CursorRejected("it belongs to another graph")
    if content.get("subject") != scope.subject:
        other = "commit" if kind is TokenKind.COMMIT_PAGE else "branch"
        raise CursorRejected(f"it belongs to another {other}")
    if content.get("incarnation") != scope.incarnation:
        raise CursorRejected("its branch was deleted, and the one of that name was created later")
    if content.get("filter") != scope.filter:
        raise CursorRejected("it was made with another filter", "give the same kinds, types and ops again")
    fields = content.get("fields")
    if not isinstance(fields, dict):
        raise damaged()
    return fields


_USE: Final = {
    TokenKind.COMMIT_PAGE: "give the next_page_token of this commit's changes",
    TokenKind.FEED_CURSOR: "give the cursor that the last page of a poll, or a baseline, has",
    TokenKind.FEED_PAGE: "give the next_page_token of a page that is not the last",
}


def _content(token: str) -> dict[str, Any]:
    if len(token) > _LONGEST:
        raise damaged()
    try:
        raw = b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise damaged() from None
    content, digest = raw[:-_DIGEST_BYTES], raw[-_DIGEST_BYTES:]
    # Unused bits at the end of base64 would be ignored, so that the text is compared as well.
    if hashlib.sha256(content).digest() != digest or _text(raw) != token:
        raise damaged()
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise damaged() from None
    if not isinstance(found, dict):
        raise damaged()
    return found


def damaged() -> CursorRejected:
    """The error for a token that cannot be read."""
    return CursorRejected("it is damaged, or no cursor at all")


def count_in(fields: Mapping[str, Any], name: str) -> int:
    """A field that is a count."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise damaged()
    return value


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")
