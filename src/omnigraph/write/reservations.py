"""Reservations: which commit a write with an idempotency key makes.

Before such a write begins, an object under its key says which id its commit will have. Any process that gets the
same write again finds the object and uses the same id. The write protocol makes no commit whose id the branch has,
which it knows under the branch's lock, so the write is done once: also if two processes do it at the same time, or
if one of them is killed. When the write is done its result is kept in the object too, so that a repetition gets
the same answer; without it, the commit says what was done. What makes no commit but a branch or a tag writes the
reserved id into that.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Any

from ulid import ULID

from omnigraph.errors import BranchNotFound, CommitDone
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.refs.tags import Tag
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit
from omnigraph.storage import layout
from omnigraph.storage.control.sealed import damaged, seal, text, unseal


@dataclass(frozen=True, slots=True)
class Reservation:
    """The commit of a write. ``digest`` tells the write from others, ``result`` is what was answered, as JSON, or
    None if that is not known."""

    name: str
    digest: str
    graph_commit_id: str
    result: Any = None


class Reservations:
    """The reservations of one graph."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def reserve(self, name: str, digest: str) -> Reservation:
        """The reservation of a name: the one there is, or else a new one, without a result."""
        self._repository.require_writable()
        objects, key = self._repository.objects, layout.request_record(name)
        found = objects.get(key)
        if found is None:
            made = Reservation(name, digest, str(ULID()))
            if objects.put_if_absent(key, _encoded(made)) is not None:
                return made
            found = objects.get(key)
            if found is None:  # removed again in between, for it was old
                return self.reserve(name, digest)
        return _decoded(name, key, found.content)

    def finish(self, reservation: Reservation, result: Any) -> None:
        """Keep what was answered. A repetition can do without it, so a failure to write it does no harm."""
        content = _encoded(replace(reservation, result=result))
        self._repository.objects.hint(layout.request_record(reservation.name), content)

    def commit(self, reservation: Reservation, branch: str) -> Commit | None:
        """The commit of a reservation, if it was made on that branch."""
        try:
            found = self._repository.branches.find(branch)
        except BranchNotFound:
            return None
        return self._repository.manifest.find_commit(found.native, reservation.graph_commit_id)

    def branch(self, reservation: Reservation, name: str) -> Branch | None:
        """The branch of that name, if it was made for a reservation."""
        try:
            found = self._repository.branches.find(name)
        except BranchNotFound:
            return None
        return found if found.request == reservation.graph_commit_id else None

    def tag(self, reservation: Reservation, name: str) -> Tag | None:
        """The tag of that name, if it was made for a reservation."""
        found = self._repository.tags.get(name)
        return found if found is not None and found.incarnation == reservation.graph_commit_id else None

    def remove_older(self, than: dt.timedelta) -> int:
        """Remove reservations that are older, by the store's clock; how many. Their keys can be used anew."""
        objects = self._repository.objects
        entries = list(objects.entries(layout.REQUESTS))
        newest = max((each.modified for each in entries), default=None)
        old = [each.key for each in entries if newest is not None and newest - each.modified > than]
        objects.delete_all(sorted(old))
        return len(old)


def require_new(
    repository: Repository, branch: Branch, graph_commit_id: str | None, current: Snapshot, captured: Snapshot
) -> None:
    """CommitDone if the commit that the caller named was made meanwhile, by the same write in another process.

    ``captured`` is the state that the write was prepared for. The archive is read only if so many commits were
    made since then that its own may be in there.
    """
    if graph_commit_id is None:
        return
    state = repository.manifest.at(branch.native, current.manifest_version)
    recent = {commit.graph_commit_id for commit in state.commits}
    if graph_commit_id in recent:
        raise CommitDone(branch.name, graph_commit_id)
    is_far = captured.graph_commit_id is not None and captured.graph_commit_id not in recent
    if is_far and repository.manifest.archive.find(graph_commit_id) is not None:
        raise CommitDone(branch.name, graph_commit_id)


def _encoded(reservation: Reservation) -> bytes:
    return seal(
        {
            "digest": reservation.digest,
            "graph_commit_id": reservation.graph_commit_id,
            "result": reservation.result,
        }
    )


def _decoded(name: str, key: str, content: bytes) -> Reservation:
    found = unseal(key, content)
    try:
        return Reservation(name, text(found["digest"]), text(found["graph_commit_id"]), found["result"])
    except (KeyError, ValueError) as error:
        raise damaged(key, error) from error
