"""The part of a remote graph that is about its versions: branches, tags, commits and changes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, Unpack
from urllib.parse import quote

from omnigraph.arguments import text_argument
from omnigraph.bulk.export.baseline import Baseline
from omnigraph.errors import ObjectDamaged, ServerFailed
from omnigraph.history.blame import Blame
from omnigraph.history.diff import check_filter_names
from omnigraph.history.feed.pages import ChangePage, CommitChanges
from omnigraph.history.log import LogEntry
from omnigraph.keywords import At, ChangeKeywords, ChangeKind, ChangeOp, LogKeywords, shown_state
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.refs.tags import Tag
from omnigraph.manifest.state import Commit
from omnigraph.recovery.audit import Recovery
from omnigraph.remote.files import destination
from omnigraph.remote.handle import RemoteHandle, refuse_direct
from omnigraph.remote.transport import NDJSON, encoded, pieces, request_headers


class RemoteVersions(RemoteHandle):
    """A remote graph's branches, tags and history."""

    def branches(self) -> list[Branch]:
        """All branches that can be read, main first."""
        found: list[Branch] = self._open.value("GET", "/branches")
        return found

    def damaged_branches(self) -> list[ObjectDamaged]:
        """What is wrong with the branches that cannot be read."""
        found: list[ObjectDamaged] = self._open.value("GET", "/damaged")["branches"]
        return found

    def damaged_tags(self) -> list[ObjectDamaged]:
        """What is wrong with the tags that cannot be read."""
        found: list[ObjectDamaged] = self._open.value("GET", "/damaged")["tags"]
        return found

    def create_branch(
        self, name: str, from_: str | None = None, *, idempotency_key: str | None = None, **direct: Any
    ) -> Branch:
        """Create a branch at the newest state of another one."""
        refuse_direct(direct)
        body = {"name": text_argument("name", name), "from": self._named(from_, "from_")}
        headers = request_headers(idempotency_key=idempotency_key)
        made: Branch = self._open.value("POST", "/branches", body, headers=headers, is_write=True)
        return made

    def delete_branch(self, name: str) -> Branch:
        """Delete a branch that no other descends from."""
        path = f"/branches/{quote(text_argument('name', name), safe='')}"
        gone: Branch = self._open.value("DELETE", path, is_write=True)
        return gone

    def tags(self) -> list[Tag]:
        """All tags that can be read, by name."""
        found: list[Tag] = self._open.value("GET", "/tags")
        return found

    def tag(self, name: str, at: At = None, *, idempotency_key: str | None = None, **direct: Any) -> Tag:
        """Give a name to a commit, by default to the newest one of this handle's branch."""
        refuse_direct(direct)
        state = self._branch if at is None else shown_state(at)
        body = {"name": text_argument("name", name), "at": state}
        headers = request_headers(idempotency_key=idempotency_key)
        made: Tag = self._open.value("POST", "/tags", body, headers=headers, is_write=True)
        return made

    def delete_tag(self, name: str) -> str:
        """Delete a tag; its name. The commit stays."""
        path = f"/tags/{quote(text_argument('name', name), safe='')}"
        return str(self._open.value("DELETE", path, is_write=True))

    def commits(self, branch: str | None = None, **options: Unpack[LogKeywords]) -> list[Commit]:
        """The commits that led to a branch, newest first."""
        query = {"branch": self._named(branch), **options}
        found: list[Commit] = self._open.value("GET", "/commits", query=query)
        return found

    def log(
        self,
        branch: str | None = None,
        *,
        type: str | None = None,  # noqa: A002  what it is called
        id: str | None = None,  # noqa: A002
        stat: bool = False,
        **options: Unpack[LogKeywords],
    ) -> list[LogEntry]:
        """The commits that `commits` gives, with the branches and tags that lead to each."""
        query = {"branch": self._named(branch), "type": type, "id": id, "stat": stat, **options}
        found: list[LogEntry] = self._open.value("GET", "/log", query=query)
        return found

    def commit(self, graph_commit_id: str) -> Commit:
        """One commit by its id or by a tag, on whatever branch it was made."""
        found: Commit = self._open.value("GET", f"/commits/{_named_commit(graph_commit_id)}")
        return found

    def blame(
        self,
        type: str,  # noqa: A002  what it is called
        id: str,  # noqa: A002
        *,
        branch: str | None = None,
        at: At = None,
    ) -> Blame:
        """For each property of one node or edge, and the ends of an edge, the commit that gave it its value."""
        query = {"type": type, "id": id, **self._state(branch, at)}
        found: Blame = self._open.value("GET", "/blame", query=query)
        return found

    def recoveries(self) -> list[Recovery]:
        """What became of interrupted writes, oldest first."""
        found: list[Recovery] = self._open.value("GET", "/recoveries")
        return found

    def commit_changes(
        self,
        commit: str,
        *,
        kinds: Sequence[ChangeKind] | None = None,
        types: Iterable[str] | None = None,
        ops: Sequence[ChangeOp] | None = None,
        limit: int | None = None,
        limit_bytes: int | None = None,
        page_token: str | None = None,
    ) -> CommitChanges:
        """What a commit has changed against its first parent: a page of up to ``limit`` changes."""
        query = {
            **_filters(kinds, types, ops),
            "limit": limit,
            "limit_bytes": limit_bytes,
            "page_token": page_token,
        }
        path = f"/commits/{_named_commit(commit)}/changes"
        found: CommitChanges = self._open.value("GET", path, query=query)
        return found

    def changes(
        self,
        branch: str | None = None,
        *,
        start: str | None = None,
        cursor: str | None = None,
        page_token: str | None = None,
        kinds: Sequence[ChangeKind] | None = None,
        types: Iterable[str] | None = None,
        ops: Sequence[ChangeOp] | None = None,
        limit: int | None = None,
        limit_bytes: int | None = None,
        limit_commits: int | None = None,
    ) -> ChangePage:
        """The commits of a branch in order, each with what it changed: one page of them."""
        query = {
            "branch": self._named(branch),
            "start": start,
            "cursor": cursor,
            "page_token": page_token,
            **_filters(kinds, types, ops),
            "limit": limit,
            "limit_bytes": limit_bytes,
            "limit_commits": limit_commits,
        }
        found: ChangePage = self._open.value("GET", "/changes", query=query)
        return found

    def change_pages(self, branch: str | None = None, **options: Unpack[ChangeKeywords]) -> Iterator[ChangePage]:
        """All pages of a branch's changes, poll by poll, up to the newest commit; the last page has caught up."""
        types = options.get("types")
        kept: ChangeKeywords = {**options, "types": None if types is None else list(types)}
        page = self.changes(branch, **kept)
        kept = {**kept, "start": None, "cursor": None}
        while True:
            yield page
            if page.next_page_token is not None:
                page = self.changes(branch, page_token=page.next_page_token, **kept)
            elif not page.caught_up:
                following: ChangeKeywords = {**kept, "cursor": page.cursor}
                page = self.changes(branch, **following)
            else:
                return

    def baseline(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        branch: str | None = None,
        *,
        kinds: Sequence[ChangeKind] | None = None,
        types: Iterable[str] | None = None,
        ops: Sequence[ChangeOp] | None = None,
        force: bool = False,
    ) -> Baseline:
        """Write the newest state of a branch as records to a file or a stream, and give the cursor for what
        follows. ``force`` replaces a file."""
        body = {"branch": self._named(branch), **_filters(kinds, types, ops)}
        headers = {"Accept": NDJSON, "Content-Type": "application/json"}
        held = bytearray()
        asked = self._open.answered("POST", "/changes/baseline", encoded(body), headers=headers)
        with asked as answer, destination(target, force=force) as (path, stream):
            for piece in pieces(answer):
                held += piece
                last_line = held.rfind(b"\n", 0, len(held) - 1) + 1
                stream.write(held[:last_line])
                del held[:last_line]
            done = _baseline(bytes(held))
        return replace(done, target=path)


def _named_commit(commit: str) -> str:
    return quote(text_argument("graph_commit_id", commit).strip(), safe="")


def _filters(
    kinds: Sequence[ChangeKind] | None, types: Iterable[str] | None, ops: Sequence[ChangeOp] | None
) -> dict[str, list[str] | None]:
    check_filter_names(kinds, ops)
    given: dict[str, Iterable[str] | None] = {"kind": kinds, "type": types, "op": ops}
    return {name: None if values is None else list(values) for name, values in given.items()}


def _baseline(last: bytes) -> Baseline:
    """What the last line of a baseline says; ServerFailed if the answer has ended before it."""
    try:
        return Baseline(**json.loads(last)["baseline"])
    except (ValueError, KeyError, TypeError):
        raise ServerFailed(200, "the baseline was cut off; write it again", None) from None
