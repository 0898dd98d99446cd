"""The part of a graph that is about its versions: branches, commits, differences, changes, merges and undoing."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, Unpack

from omnigraph.arguments import LONGEST_MESSAGE, number_argument, optional_text, text_argument
from omnigraph.bulk.merge.job import MergeJob
from omnigraph.errors import BranchProtected, ObjectDamaged, SnapshotNotFound
from omnigraph.handle import GraphHandle
from omnigraph.history.diff import ChangeFilter, Diff, diff, filtered
from omnigraph.history.feed.blocks import PAGE_BYTES, PAGE_CHANGES, WALKED_COMMITS, PageLimits
from omnigraph.history.feed.pages import ChangePage, CommitChanges, PollRequest, commit_changes, poll
from omnigraph.history.feed.positions import cursor_at
from omnigraph.history.feed.windows import HeldWindows
from omnigraph.history.merge import MergePlan, MergeRequest, MergeResult, merge, preview_merge
from omnigraph.history.refs import resolve
from omnigraph.history.sides import Decisions
from omnigraph.history.undo import UndoRequest, UndoResult, cherry_pick, reset, revert
from omnigraph.keywords import ChangeKeywords, ChangeKind, ChangeOp, MergeKeywords, UndoKeywords, engine_named
from omnigraph.lang.schema.lookup import table_keys
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit

if TYPE_CHECKING:
    from omnigraph.bulk.export.baseline import Baseline


class VersionedGraph(GraphHandle):
    """A graph's branches and history. `Graph` adds reading, writing and maintenance."""

    def branches(self) -> list[Branch]:
        """All branches that can be read, main first; a RuntimeWarning names those that cannot."""
        found, unreadable = self._repository.branches.listed()
        for problem in unreadable:
            warnings.warn(str(problem), RuntimeWarning, stacklevel=2)
        return found

    def damaged_branches(self) -> list[ObjectDamaged]:
        """What is wrong with the branches that cannot be read. `delete_branch` removes such a branch."""
        return self._repository.branches.damaged()

    def create_branch(self, name: str, from_: str | None = None, *, actor: str | None = None) -> Branch:
        """Create a branch at the newest state of another one. It costs the same for one table or a thousand."""
        self._repository.require_writable()
        text_argument("name", name)
        branches, parent = self._repository.branches, self._named(from_, "from_")
        branches.check_create(name, parent)
        with self._repository.locks.control() as lock:
            return branches.create(name, parent, lock, self._who(actor))

    def delete_branch(self, name: str) -> Branch:
        """Delete a branch that no other descends from. Its commits stay in the histories they were merged into."""
        self._repository.require_writable()
        branches = self._repository.branches
        branch = branches.check_delete(text_argument("name", name))
        if branch.name == self._branch:
            raise BranchProtected(branch.name, "this handle works on it; delete it through another one")
        with self._repository.locks.control() as lock:
            return branches.delete(name, lock)

    def diff(
        self,
        before: str | int | Snapshot,
        after: str | int | Snapshot | None = None,
        *,
        kinds: Sequence[ChangeKind] | None = None,
        types: Iterable[str] | None = None,
        ops: Sequence[ChangeOp] | None = None,
    ) -> Diff:
        """What changed from one state to another, at the cost of what differs.

        Each state is a branch, a commit, a manifest version or a snapshot; the later one is by default the newest
        state of this handle's branch.
        """
        found = self._repository.branches.find(self._branch)
        old = resolve(self._repository, found, before)
        new = resolve(self._repository, found, self._branch if after is None else after)
        return diff(self._repository.tables, old, new, self._filter(kinds, types, ops))

    def commit_changes(
        self,
        commit: str,
        *,
        kinds: Sequence[ChangeKind] | None = None,
        types: Iterable[str] | None = None,
        ops: Sequence[ChangeOp] | None = None,
        limit: int = PAGE_CHANGES,
        limit_bytes: int = PAGE_BYTES,
        page_token: str | None = None,
    ) -> CommitChanges:
        """What a commit has changed against its first parent: a page of up to ``limit`` changes.

        ``page_token`` is the `next_page_token` of the page before, which was asked for with the same filters.
        """
        limits, wanted = PageLimits(limit, limit_bytes), self._filter(kinds, types, ops)
        token = optional_text("page_token", page_token)
        return commit_changes(self._repository, self._held_windows, self.commit(commit), wanted, limits, token)

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
        limit: int = PAGE_CHANGES,
        limit_bytes: int = PAGE_BYTES,
        limit_commits: int = WALKED_COMMITS,
    ) -> ChangePage:
        """The commits of a branch in order, each with what it changed: one page of them.

        A poll begins behind a ``cursor`` of an earlier one, or at a ``start``: `now` (the default), `beginning` or
        `after:COMMIT`; and its other pages at the ``page_token`` of the page before. It goes up to the head at its
        first page, through up to ``limit_commits`` commits. Its last page has the cursor for the next poll, which
        any process can go on with; a page that is not the last has a `next_page_token` instead.
        """
        limits, wanted = PageLimits(limit, limit_bytes, limit_commits), self._filter(kinds, types, ops)
        found = self._repository.branches.find(self._named(branch))
        request = PollRequest(found, wanted, start, cursor, page_token, limits)
        return poll(self._repository, self._held_windows, request)

    def change_pages(self, branch: str | None = None, **options: Unpack[ChangeKeywords]) -> Iterator[ChangePage]:
        """All pages of a branch's changes, poll by poll, up to the newest commit; the last page has caught up.

        Takes the keywords of `changes` but for the page token, and holds one page at a time. A consumer stores the
        `cursor` of each page that has one, after it has dealt with the blocks up to there.
        """
        types = options.get("types")
        kept: ChangeKeywords = {**options, "types": None if types is None else list(types)}
        return self._pages_after(self.changes(branch, **kept), branch, kept)

    def _pages_after(self, page: ChangePage, branch: str | None, options: ChangeKeywords) -> Iterator[ChangePage]:
        following: ChangeKeywords = {**options, "start": None, "cursor": None}
        while True:
            yield page
            if page.next_page_token is not None:
                page = self.changes(branch, page_token=page.next_page_token, **following)
            elif not page.caught_up:
                following["cursor"] = page.cursor
                page = self.changes(branch, **following)
                following["cursor"] = None
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
        """Write the newest state of a branch as records, and give the cursor from which `changes` goes on.

        The target is a local file or a binary stream; ``force`` replaces a file. The cursor is given when the file
        is safely on the disk. It is for polls with the same filters.
        """
        from omnigraph.bulk.export.baseline import write_baseline
        from omnigraph.bulk.export.job import ExportRequest
        from omnigraph.bulk.runner import Engine
        from omnigraph.formats.format import Format
        from omnigraph.spark.choice import SparkChoice

        wanted = self._filter(kinds, types, ops)
        found = self._repository.branches.find(self._named(branch))
        state = self._repository.snapshot(found)
        keys = [key for key in table_keys(self.catalog) if key in state.tables and wanted.takes(key)]
        runners = SparkChoice().or_local(Engine.LOCAL)
        request = ExportRequest(state, keys, Format.JSONL, False, runners, force, settings=self._settings.bulk)
        return write_baseline(request, target, cursor_at(self._repository, found, wanted, state))

    @cached_property
    def _held_windows(self) -> HeldWindows:
        """What the pages of one commit's changes share."""
        return HeldWindows()

    def _filter(
        self,
        kinds: Sequence[ChangeKind] | None,
        types: Iterable[str] | None,
        ops: Sequence[ChangeOp] | None,
    ) -> ChangeFilter:
        return filtered(kinds, None if types is None else table_keys(self.catalog, types), ops)

    def merge(self, source: str, into: str | None = None, **options: Unpack[MergeKeywords]) -> MergeResult:
        """Merge a branch into another one, by default into this handle's, as one commit with two parents.

        Two branches may have changed different properties of one entity, unless the merge is ``strict``. Conflicts
        are raised together, as MergeConflicts, and nothing is written; ``resolve`` decides all of them for one
        side, ``choices`` decides single ones by table key and id. ``squash`` leaves out the second parent, and
        ``if_commit`` names the commit that the target must be at.

        A change of up to 256 MiB is merged in the memory of this process, a larger one by tasks, on Spark if there
        is one; ``engine`` overrides that.
        """
        self._repository.require_writable()
        request = self._merge_request(source, into, options)
        with self._merge_job("merge", request.target, options) as job:
            return merge(self._repository, replace(request, combine=job, job_lock=job))

    def preview_merge(self, source: str, into: str | None = None, **options: Unpack[MergeKeywords]) -> MergePlan:
        """What `merge` would do now: its outcome, its changes and its conflicts. Nothing is committed.

        A graph that is opened for reading only holds all changed rows in memory for it.
        """
        request = self._merge_request(source, into, options)
        if self._repository.read_only:
            return preview_merge(self._repository, request)
        with self._merge_job("merge", request.target, options) as job:
            return preview_merge(self._repository, replace(request, combine=job))

    def revert(self, commit: str, branch: str | None = None, **options: Unpack[UndoKeywords]) -> UndoResult:
        """Undo a commit by a new one. What was changed again since is a conflict, as in a merge."""
        return self._undone(revert, commit, branch, options)

    def cherry_pick(self, commit: str, branch: str | None = None, **options: Unpack[UndoKeywords]) -> UndoResult:
        """Do on a branch, as a new commit, what a commit of any branch did."""
        return self._undone(cherry_pick, commit, branch, options)

    def reset(self, commit: str, branch: str | None = None, **options: Unpack[UndoKeywords]) -> UndoResult:
        """Bring a branch back to its content at a commit, as a new commit: the history stays."""
        return self._undone(reset, commit, branch, options)

    def _undone(
        self,
        undo: Callable[[Repository, UndoRequest, Commit], UndoResult],
        commit: str,
        branch: str | None,
        options: UndoKeywords,
    ) -> UndoResult:
        request, found = self._undo_request(branch, options), self.commit(commit)
        with self._merge_job(undo.__name__, request.branch, options) as job:
            return undo(self._repository, replace(request, combine=job, job_lock=job), found)

    def _merge_job(self, kind: str, branch: Branch, options: UndoKeywords) -> MergeJob:
        """The job of a merge or an undo, which runs tasks only if the change is large."""
        from omnigraph.spark.choice import SparkChoice

        choice = SparkChoice(options.get("spark"), options.get("listener"), options.get("cancellation"))
        runners = choice.or_local(engine_named(options.get("engine", "auto")))
        actor = self._who(options.get("actor"))
        return MergeJob(self._repository, branch, kind, actor, runners, self._settings.bulk)

    def _undo_request(self, branch: str | None, options: UndoKeywords) -> UndoRequest:
        self._repository.require_writable()
        return UndoRequest(
            self._repository.branches.find(self._named(branch)),
            self._who(options.get("actor")),
            optional_text("message", options.get("message"), LONGEST_MESSAGE),
            Decisions(options.get("strict", False), options.get("resolve"), options.get("choices") or {}),
            optional_text("if_commit", options.get("if_commit")),
        )

    def _merge_request(self, source: str, into: str | None, options: MergeKeywords) -> MergeRequest:
        branches = self._repository.branches
        return MergeRequest(
            branches.find(text_argument("source", source)),
            branches.find(self._named(into, "into")),
            self._who(options.get("actor")),
            optional_text("message", options.get("message"), LONGEST_MESSAGE),
            Decisions(options.get("strict", False), options.get("resolve"), options.get("choices") or {}),
            options.get("squash", False),
            optional_text("if_commit", options.get("if_commit")),
        )

    def commits(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        kind: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> list[Commit]:
        """The history of a branch, newest first; ``after`` goes on behind a commit of an earlier page."""
        for name, value in (("actor", actor), ("kind", kind), ("after", after)):
            optional_text(name, value)
        most = max(number_argument("limit", limit), 0)
        found = self._repository.branches.find(self._named(branch))
        history = self._repository.commits.of(found)
        if after is not None and not any(commit.graph_commit_id == after for commit in history):
            raise SnapshotNotFound(f"commit {after} in the history of '{found.name}'")
        wanted = (c for c in history if actor in (None, c.actor_id) and kind in (None, c.kind))
        return list(islice(wanted, most))

    def commit(self, graph_commit_id: str) -> Commit:
        """One commit, on whatever branch it was made."""
        wanted = text_argument("graph_commit_id", graph_commit_id)
        return self._repository.commits.find(wanted, self._repository.branches.find(self._branch))
