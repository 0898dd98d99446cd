"""Polls: the commits of a branch after a position, as pages of bounded size.

Each poll goes up to the head as it was when the poll began, or as far as it may walk. Only its last page has a
cursor, which stands behind complete commits; pages before it have a token for the next page. Nothing of a consumer
is kept here: a consumer that stores its cursor after it has dealt with what came before it gets every commit at
least once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.arguments import optional_text
from omnigraph.errors import CursorRejected, HistoryReclaimed, InvalidArgument, ParentlessCommit
from omnigraph.history.diff import ChangeFilter
from omnigraph.history.feed.blocks import (
    ChangeBlock,
    PageLimits,
    Place,
    Room,
    cut_changes,
    ordered_types,
)
from omnigraph.history.feed.line import BranchLine, Step
from omnigraph.history.feed.positions import cursor_behind, position, verified, version_at, version_behind
from omnigraph.history.feed.tokens import (
    Scope,
    TokenKind,
    branch_scope,
    commit_scope,
    count_in,
    decode_token,
    encode_token,
)
from omnigraph.history.feed.windows import HeldWindows
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Some commits of a branch, in order.

    ``next_page_token`` is for the rest of the poll. The last page of a poll has a ``cursor`` instead, for the next
    poll, and is ``caught_up`` if the poll reached the newest commit.
    """

    branch: str
    blocks: tuple[ChangeBlock, ...]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "blocks": [block.as_json() for block in self.blocks],
            "next_page_token": self.next_page_token,
            "cursor": self.cursor,
            "caught_up": self.caught_up,
        }


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """What one commit has changed, or a piece of it; ``next_page_token`` is for the rest."""

    block: ChangeBlock
    next_page_token: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {**self.block.as_json(), "next_page_token": self.next_page_token}


@dataclass(frozen=True, slots=True)
class PollRequest:
    """Which changes of a branch are wanted, and where to begin: at a page token, at a cursor, or at a start."""

    branch: Branch
    wanted: ChangeFilter = field(default_factory=ChangeFilter)
    start: str | None = None
    cursor: str | None = None
    page_token: str | None = None
    limits: PageLimits = field(default_factory=PageLimits)

    def __post_init__(self) -> None:
        given = {"start": self.start, "cursor": self.cursor, "page_token": self.page_token}
        named = [name for name, value in given.items() if optional_text(name, value) is not None]
        if len(named) > 1:
            raise InvalidArgument(named[1], f"a poll begins in one place; give it or {named[0]}, not both")


@dataclass(frozen=True, slots=True)
class _Poll:
    """A poll under way: behind which version it is, at which place inside the next commit, and where it ends."""

    version: int
    place: Place | None
    cut: int
    reaches_head: bool


def poll(repository: Repository, held: HeldWindows, request: PollRequest) -> ChangePage:
    """One page of a branch's changes. Reads the head, and what the commits of the page have touched."""
    line = BranchLine(repository, request.branch, request.cursor)
    scope = branch_scope(repository.catalog(request.branch.name), request.branch, request.wanted)
    begun = _begun(line, scope, request)
    room, blocks = Room(request.limits), list[ChangeBlock]()
    version, place = begun.version, begun.place
    while version < begun.cut and not room.is_full:
        step = line.step(version + 1)
        if step is not None:
            block, place = _block(repository, held, line, step, request.wanted, place, room)
            if block.changes or block.complete:
                blocks.append(block)
            if place is not None:
                break
        version += 1
    if place is None and version >= begun.cut:
        cursor = cursor_behind(line, scope, version)
        return ChangePage(request.branch.name, tuple(blocks), cursor=cursor, caught_up=begun.reaches_head)
    rest = {
        "cut": begun.cut,
        "reaches_head": begun.reaches_head,
        "type": None if place is None else place.type_id,
        "offset": 0 if place is None else place.offset,
    }
    token = encode_token(TokenKind.FEED_PAGE, scope, {**position(line, version), **rest})
    return ChangePage(request.branch.name, tuple(blocks), next_page_token=token)


def commit_changes(
    repository: Repository,
    held: HeldWindows,
    commit: Commit,
    wanted: ChangeFilter,
    limits: PageLimits,
    page_token: str | None = None,
) -> CommitChanges:
    """One page of what a commit has changed against its first parent."""
    if not commit.parents:
        raise ParentlessCommit(commit.graph_commit_id)
    owner, state = repository.commits.state_at(commit)
    before = repository.commits.state_of(owner, commit.manifest_version - 1)
    states = (repository.snapshot(owner, before), repository.snapshot(owner, state))
    scope, place = commit_scope(states[1].catalog, commit.graph_commit_id, wanted), None
    if page_token is not None:
        place = _place(decode_token(TokenKind.COMMIT_PAGE, scope, page_token))
    changes, rest = cut_changes(repository.tables, held, states, wanted, place, Room(limits))
    block = ChangeBlock(commit, tuple(changes), rest is None, ordered_types(states[1].catalog))
    if rest is None:
        return CommitChanges(block)
    fields = {"type": rest.type_id, "offset": rest.offset}
    return CommitChanges(block, encode_token(TokenKind.COMMIT_PAGE, scope, fields))


def _block(
    repository: Repository,
    held: HeldWindows,
    line: BranchLine,
    step: Step,
    wanted: ChangeFilter,
    place: Place | None,
    room: Room,
) -> tuple[ChangeBlock, Place | None]:
    """The changes of one commit, as far as there is room. The commit that created the graph has none."""
    types = ordered_types(step.after.catalog)
    if step.before is None:
        return ChangeBlock(step.commit, (), True, types), None
    states = (step.before, step.after)
    try:
        changes, rest = cut_changes(repository.tables, held, states, wanted, place, room)
    except HistoryReclaimed:
        raise line.reclaimed(step.commit) from None
    return ChangeBlock(step.commit, tuple(changes), rest is None, types), rest


def _begun(line: BranchLine, scope: Scope, request: PollRequest) -> _Poll:
    """Where a poll begins and ends."""
    if request.page_token is not None:
        fields = decode_token(TokenKind.FEED_PAGE, scope, request.page_token)
        version, cut = verified(line, fields), count_in(fields, "cut")
        if cut > line.head().version:
            raise CursorRejected(f"'{line.branch.name}' does not reach as far as when the poll began")
        return _Poll(version, _place(fields), cut, fields.get("reaches_head") is True)
    head = line.head().version
    if request.cursor is not None:
        version = version_behind(line, scope, request.cursor)
    else:
        version = version_at(line, request.start or "now")
    cut = min(head, version + request.limits.commits)
    return _Poll(version, None, cut, cut == head)


def _place(fields: Mapping[str, Any]) -> Place | None:
    return None if fields.get("type") is None else Place(count_in(fields, "type"), count_in(fields, "offset"))
