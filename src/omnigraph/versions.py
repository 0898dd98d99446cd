"""The part of a graph that is about its versions: branches, tags, commits, changes, merges and undoing."""

from __future__ import annotations

import datetime as dt
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, Unpack

from omnigraph.arguments import LONGEST_MESSAGE, described, number_argument, optional_text, text_argument
from omnigraph.errors import BranchNotFound, BranchProtected, InvalidArgument, ObjectDamaged, RequestError
from omnigraph.handle import GraphHandle
from omnigraph.keywords import (
    ApplyKeywords,
    At,
    ChangeKeywords,
    ChangeKind,
    ChangeOp,
    LogKeywords,
    MergeKeywords,
    UndoKeywords,
    commit_id_argument,
    engine_named,
)
from omnigraph.lang.schema.lookup import table_keys
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.refs.tags import Tag
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit
from omnigraph.policy.actions import Action
from omnigraph.settings import PAGE_BYTES, PAGE_CHANGES, WALKED_COMMITS

if TYPE_CHECKING:
    from omnigraph.bulk.export.baseline import Baseline
    from omnigraph.bulk.merge.job import MergeJob
    from omnigraph.bulk.runner import RunnerChoice
    from omnigraph.history.blame import Blame
    from omnigraph.history.diff import ChangeFilter, Diff
    from omnigraph.history.feed.pages import ChangePage, CommitChanges
    from omnigraph.history.feed.windows import HeldWindows
    from omnigraph.history.log import LogEntry, LogFilter
    from omnigraph.history.merging.comparison import MergeRequest
    from omnigraph.history.merging.plans import MergePlan, MergeResult
    from omnigraph.history.merging.undo import UndoRequest, UndoResult
    from omnigraph.history.schemas import SchemaVersion
    from omnigraph.lang.schema.catalog import Catalog


class VersionedGraph(GraphHandle):
    """A graph's branches, tags and history. `Graph` adds reading, writing and maintenance."""

    def branches(self) -> list[Branch]:
        """All branches that can be read, main first; a RuntimeWarning names those that cannot."""
        self._allow(Action.READ, self._branch)
        found, unreadable = self._repository.branches.listed()
        for problem in unreadable:
            warnings.warn(str(problem), RuntimeWarning, stacklevel=2)
        return found

    def damaged_branches(self) -> list[ObjectDamaged]:
        """What is wrong with the branches that cannot be read. `delete_branch` removes such a branch."""
        self._allow(Action.READ, self._branch)
        return self._repository.branches.damaged()

    def create_branch(self, name: str, from_: str | None = None, *, actor: str | None = None) -> Branch:
        """Create a branch at the newest state of another one. It costs the same for one table or a thousand."""
        return self._create_branch(name, from_, actor, None)

    def _create_branch(self, name: str, from_: str | None, actor: str | None, request: str | None) -> Branch:
        """Create a branch, which keeps the ``request`` that a server has reserved for it."""
        text_argument("name", name)
        branches, parent = self._repository.branches, self._named(from_, "from_")
        self._allow(Action.BRANCH_CREATE, parent, name, actor=actor)
        self._allow(Action.READ, parent, actor=actor)
        self._repository.require_writable()
        branches.check_create(name, parent)
        with self._repository.locks.control() as lock:
            return branches.create(name, parent, lock, self._who(actor), request=request)

    def delete_branch(self, name: str) -> Branch:
        """Delete a branch that no other descends from. Its commits stay in the histories they were merged into."""
        self._allow(Action.BRANCH_DELETE, None, text_argument("name", name))
        self._repository.require_writable()
        branches = self._repository.branches
        branch = branches.check_delete(name)
        if branch.name == self._branch:
            raise BranchProtected(branch.name, "this handle works on it; delete it through another one")
        with self._repository.locks.control() as lock:
            return branches.delete(name, lock)

    def tags(self) -> list[Tag]:
        """All tags that can be read, by name; a RuntimeWarning names those that cannot."""
        self._allow(Action.READ, self._branch)
        found, unreadable = self._repository.tags.listed()
        for problem in unreadable:
            warnings.warn(str(problem), RuntimeWarning, stacklevel=2)
        return found

    def damaged_tags(self) -> list[ObjectDamaged]:
        """What is wrong with the tags that cannot be read. `delete_tag` removes such a tag."""
        self._allow(Action.READ, self._branch)
        return self._repository.tags.listed()[1]

    def tag(self, name: str, at: At = None, *, actor: str | None = None) -> Tag:
        """Give a name to a commit, by default to the newest one of this handle's branch.

        ``at`` is a commit, another tag, a branch, a manifest version, a moment or a snapshot. A tag can be given
        wherever a commit can, it does not move, and the branch that holds its commit cannot be deleted.
        """
        return self._tag(name, at, actor, None)

    def _tag(self, name: str, at: At, actor: str | None, incarnation: str | None) -> Tag:
        """Create a tag, of the ``incarnation`` that a server has reserved for it, if any."""
        from omnigraph.history.refs import resolve

        repository, creator = self._repository, self._who(actor)
        self._allow(Action.CHANGE, actor=actor)
        repository.require_writable()
        text_argument("name", name)
        repository.tags.check_create(name, repository.branches.names())
        with repository.locks.control() as lock:
            found = repository.branches.find(self._branch)
            commit = resolve(repository, found, self._branch if at is None else at).commit
            if commit is None:
                raise RequestError(f"branch '{found.name}' has no commit that a tag could name")
            self._allow(Action.CHANGE, commit.branch, actor=actor)
            repository.commits.require_kept(commit)
            return repository.tags.create(name, commit, repository.branches.names(), lock, creator, incarnation)

    def delete_tag(self, name: str) -> str:
        """Delete a tag; its name. The commit stays, as long as its branch does."""
        self._allow(Action.CHANGE)
        self._repository.require_writable()
        tags = self._repository.tags
        if self._guard is not None:
            for known in tags.listed()[0]:
                if known.name == text_argument("name", name).strip():
                    self._allow(Action.CHANGE, known.branch)
        tags.check_delete(text_argument("name", name))
        with self._repository.locks.control() as lock:
            return tags.delete(name, lock)

    def diff(
        self,
        before: str | int | dt.datetime | Snapshot,
        after: At = None,
        *,
        kinds: Sequence[ChangeKind] | None = None,
        types: Iterable[str] | None = None,
        ops: Sequence[ChangeOp] | None = None,
    ) -> Diff:
        """What changed from one state to another, at the cost of what differs.

        Each state is a branch, a commit, a tag, a manifest version, a moment or a snapshot; the later one is by
        default the newest state of this handle's branch.
        """
        from omnigraph.history.diff import diff
        from omnigraph.history.refs import resolve

        self._allow(Action.READ)
        found = self._repository.branches.find(self._branch)
        old = resolve(self._repository, found, before)
        new = resolve(self._repository, found, self._branch if after is None else after)
        wanted = self._filter(kinds, types, ops)
        for state in (old, new):
            self._allow_changes(Action.READ, state.branch, wanted, state.catalog)
        return diff(self._repository.tables, old, new, wanted)

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
        from omnigraph.history.feed.blocks import PageLimits
        from omnigraph.history.feed.pages import commit_changes

        found = self.commit(commit)
        limits, wanted = PageLimits(limit, limit_bytes), self._filter(kinds, types, ops)
        self._allow_changes(Action.READ, found.branch, wanted)
        token = optional_text("page_token", page_token)
        return commit_changes(self._repository, self._held_windows, found, wanted, limits, token)

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
        from omnigraph.history.feed.blocks import PageLimits
        from omnigraph.history.feed.pages import PollRequest, poll

        self._allow(Action.READ, self._named(branch))
        limits, wanted = PageLimits(limit, limit_bytes, limit_commits), self._filter(kinds, types, ops)
        self._allow_changes(Action.READ, self._named(branch), wanted)
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
        from omnigraph.history.feed.positions import cursor_at
        from omnigraph.spark.choice import SparkChoice

        self._allow(Action.EXPORT, self._named(branch))
        wanted = self._filter(kinds, types, ops)
        found = self._repository.branches.find(self._named(branch))
        state = self._repository.snapshot(found)
        self._allow_changes(Action.EXPORT, found.name, wanted, state.catalog)
        keys = [key for key in table_keys(self._catalog()) if key in state.tables and wanted.takes(key)]
        runners = SparkChoice().or_local(Engine.LOCAL)
        request = ExportRequest(state, keys, Format.JSONL, False, runners, force, settings=self._settings.bulk)
        return write_baseline(request, target, cursor_at(found, wanted, state))

    @cached_property
    def _held_windows(self) -> HeldWindows:
        """What the pages of one commit's changes share."""
        from omnigraph.history.feed.windows import HeldWindows

        return HeldWindows()

    def _filter(
        self,
        kinds: Sequence[ChangeKind] | None,
        types: Iterable[str] | None,
        ops: Sequence[ChangeOp] | None,
    ) -> ChangeFilter:
        from omnigraph.history.diff import filtered

        catalog = self._catalog()
        return filtered(kinds, None if types is None else table_keys(catalog, types), ops, catalog)

    def _allow_changes(
        self, action: Action, branch: str, wanted: ChangeFilter, catalog: Catalog | None = None
    ) -> None:
        """Ask the policy about the types whose changes are wanted: all of them, if they are not chosen."""
        if self._guard is not None:
            keys = table_keys(self._catalog() if catalog is None else catalog)
            self._allow(action, branch, types=[key for key in keys if wanted.takes(key)])

    def _allow_merge(self, source: str, target: str, actor: str | None) -> None:
        """Ask the policy about a merge: which types it changes is known when the branches are compared."""
        self._allow(Action.BRANCH_MERGE, source, target, actor=actor)
        self._allow(Action.READ, source, actor=actor)

    def merge(self, source: str, into: str | None = None, **options: Unpack[MergeKeywords]) -> MergeResult:
        """Merge a branch into another one, by default into this handle's, as one commit with two parents.

        Two branches may have changed different properties of one entity, unless the merge is ``strict``. Conflicts
        are raised together, as MergeConflicts, and nothing is written; ``resolve`` decides all of them for one
        side, ``choices`` decides single ones by table key and id. ``squash`` leaves out the second parent, and
        ``if_commit`` names the commit that the target must be at.

        A change of up to 128 MiB is merged in the memory of this process, a larger one by tasks, on Spark if there
        is one; ``engine`` overrides that.
        """
        from omnigraph.history.merging.merge import merge

        self._allow_merge(text_argument("source", source), self._named(into, "into"), options.get("actor"))
        self._repository.require_writable()
        request = self._merge_request(source, into, options)
        with self._merge_job("merge", request.target, options) as job:
            return merge(self._repository, replace(request, combine=job, job_lock=job))

    def preview_merge(self, source: str, into: str | None = None, **options: Unpack[MergeKeywords]) -> MergePlan:
        """What `merge` would do now: its outcome, its changes and its conflicts.

        Nothing is written, unless it runs on Spark: then workers stage rows in the graph, which are removed.
        """
        from omnigraph.bulk.merge.job import MergeJob
        from omnigraph.bulk.merge.workspaces import aside, in_graph
        from omnigraph.bulk.runner import Engine
        from omnigraph.history.merging.merge import preview_merge

        for name in (text_argument("source", source), self._named(into, "into")):
            self._allow(Action.READ, name)
        request, runners = self._merge_request(source, into, options), self._runners(options)
        if self._guard is not None:
            for each in (request.source, request.target):
                keys = table_keys(self._repository.snapshot(each).catalog)
                self._allow(Action.READ, each.name, types=keys)
        if runners.engine is Engine.SPARK or (runners.engine is Engine.AUTO and runners.is_spark_given):
            self._repository.require_writable()
            workspace = in_graph(self._repository, request.target, "preview", request.actor)
        else:
            runners, workspace = replace(runners, engine=Engine.LOCAL), aside(request.target)
        with MergeJob(request.target, workspace, runners, self._settings.bulk) as job:
            return preview_merge(self._repository, replace(request, combine=job))

    def apply_merge(self, plan: MergePlan, **options: Unpack[ApplyKeywords]) -> MergeResult:
        """Do exactly what a preview has planned, or nothing.

        PreconditionFailed if either branch has moved since the preview, MergeConflicts if the plan has conflicts
        that its decisions leave open. The plan may come from another process, by `MergePlan.from_json`.
        """
        from omnigraph.history.merging.merge import apply_request, merge
        from omnigraph.history.merging.plans import MergePlan

        self._repository.require_writable()
        if not isinstance(plan, MergePlan):
            raise InvalidArgument("plan", f"it is a MergePlan, not {described(plan)}; use MergePlan.from_json")
        self._allow_merge(plan.source, plan.target, options.get("actor"))
        source, target = self._merged_branch("plan", plan.source), self._merged_branch("plan", plan.target)
        message = optional_text("message", options.get("message"), LONGEST_MESSAGE)
        request = replace(
            apply_request(plan, source, target), actor=self._who(options.get("actor")), message=message
        )
        with self._merge_job("merge", target, options) as job:
            return merge(self._repository, replace(request, combine=job, job_lock=job))

    def revert(
        self, commit: str | Sequence[str], branch: str | None = None, **options: Unpack[UndoKeywords]
    ) -> UndoResult:
        """Undo a commit, or several of them, by one new commit; of several the newest is undone first.

        They must be in the branch's history. What was changed again since is a conflict, as in a merge.
        """
        from omnigraph.history.merging.undo import revert

        request = self._undo_request(branch, options)
        names = commit if isinstance(commit, Sequence) and not isinstance(commit, str) else [commit]
        found = [self._commit(name) for name in names]
        with self._merge_job("revert", request.branch, options) as job:
            return revert(self._repository, replace(request, combine=job, job_lock=job), found)

    def cherry_pick(self, commit: str, branch: str | None = None, **options: Unpack[UndoKeywords]) -> UndoResult:
        """Do on a branch, as a new commit, what a commit of any branch did."""
        from omnigraph.history.merging.undo import cherry_pick

        return self._undone(cherry_pick, commit, branch, options)

    def reset(self, commit: str, branch: str | None = None, **options: Unpack[UndoKeywords]) -> UndoResult:
        """Bring a branch back to its content at a commit, as a new commit: the history stays."""
        from omnigraph.history.merging.undo import reset

        return self._undone(reset, commit, branch, options)

    def _undone(
        self,
        undo: Callable[[Repository, UndoRequest, Commit], UndoResult],
        commit: str,
        branch: str | None,
        options: UndoKeywords,
    ) -> UndoResult:
        request, found = self._undo_request(branch, options), self._commit(commit)
        self._allow(Action.READ, found.branch, actor=options.get("actor"))
        with self._merge_job(undo.__name__, request.branch, options) as job:
            return undo(self._repository, replace(request, combine=job, job_lock=job), found)

    def _merge_job(self, kind: str, branch: Branch, options: ApplyKeywords) -> MergeJob:
        """The job of a merge or an undo, which runs tasks only if the change is large."""
        from omnigraph.bulk.merge.job import MergeJob
        from omnigraph.bulk.merge.workspaces import in_graph

        workspace = in_graph(self._repository, branch, kind, self._who(options.get("actor")))
        return MergeJob(branch, workspace, self._runners(options), self._settings.bulk)

    def _runners(self, options: ApplyKeywords) -> RunnerChoice:
        from omnigraph.spark.choice import SparkChoice

        choice = SparkChoice(options.get("spark"), options.get("listener"), options.get("cancellation"))
        return choice.or_local(engine_named(options.get("engine", "auto")))

    def _undo_request(self, branch: str | None, options: UndoKeywords) -> UndoRequest:
        from omnigraph.history.merging.sides import Decisions
        from omnigraph.history.merging.undo import UndoRequest

        self._allow(Action.CHANGE, self._named(branch), actor=options.get("actor"))
        self._repository.require_writable()
        return UndoRequest(
            self._repository.branches.find(self._named(branch)),
            self._who(options.get("actor")),
            optional_text("message", options.get("message"), LONGEST_MESSAGE),
            Decisions(options.get("strict", False), options.get("resolve"), options.get("choices") or {}),
            optional_text("if_commit", options.get("if_commit")),
            graph_commit_id=commit_id_argument(options.get("graph_commit_id")),
        )

    def _merge_request(self, source: str, into: str | None, options: MergeKeywords) -> MergeRequest:
        from omnigraph.history.merging.comparison import MergeRequest
        from omnigraph.history.merging.sides import Decisions

        return MergeRequest(
            self._merged_branch("source", text_argument("source", source)),
            self._merged_branch("into", self._named(into, "into")),
            self._who(options.get("actor")),
            optional_text("message", options.get("message"), LONGEST_MESSAGE),
            Decisions(options.get("strict", False), options.get("resolve"), options.get("choices") or {}),
            options.get("squash", False),
            optional_text("if_commit", options.get("if_commit")),
            graph_commit_id=commit_id_argument(options.get("graph_commit_id")),
        )

    def _merged_branch(self, argument: str, name: str) -> Branch:
        """A branch of a merge; a tag is refused by name."""
        try:
            return self._repository.branches.find(name)
        except BranchNotFound:
            if self._repository.tags.has(name.strip()):
                raise InvalidArgument(argument, f"'{name}' is a tag, and branches are merged; name one") from None
            raise

    def commits(self, branch: str | None = None, **options: Unpack[LogKeywords]) -> list[Commit]:
        """The commits that led to a branch, newest first.

        ``actor``, ``kind``, ``since`` and ``until`` choose among them, ``limit`` is how many there are at most
        (50), and ``after`` goes on behind a commit of an earlier page.
        """
        from omnigraph.history.log import wanted_commits

        found, wanted, most = self._log_request(branch, options)
        return list(islice(wanted_commits(self._repository, found, wanted, options.get("after")), most))

    def log(
        self,
        branch: str | None = None,
        *,
        type: str | None = None,  # noqa: A002  what it is called
        id: str | None = None,  # noqa: A002
        stat: bool = False,
        **options: Unpack[LogKeywords],
    ) -> list[LogEntry]:
        """The commits that `commits` gives, with the branches and tags that lead to each.

        With ``type`` and ``id`` only those that changed one entity since it was inserted, found as `blame` finds
        them. With ``stat`` the entities that each commit changed are counted, at the cost of the changes.
        """
        from omnigraph.history.blame import commits_of
        from omnigraph.history.log import chosen_commits, entries, wanted_commits
        from omnigraph.read.entities import entity_key

        found, wanted, most = self._log_request(branch, options)
        after = options.get("after")
        if type is None and id is None:
            commits = wanted_commits(self._repository, found, wanted, after)
        else:
            key = entity_key(self._catalog(), text_argument("type", type))
            self._allow(Action.READ, found.name, types=[key])
            entity_id = text_argument("id", id)
            history = iter(commits_of(self._repository, self._repository.snapshot(found), key, entity_id))
            commits = chosen_commits(self._repository, history, f"history of {key} '{entity_id}'", wanted, after)
        return entries(self._repository, islice(commits, most), stat=stat)

    def _log_request(self, branch: str | None, options: LogKeywords) -> tuple[Branch, LogFilter, int]:
        """The branch of a log, which commits are wanted, and how many."""
        from omnigraph.history.log import LogFilter, instant

        actor, kind, _ = (optional_text(name, options.get(name)) for name in ("actor", "kind", "after"))
        times = (instant("since", options.get("since")), instant("until", options.get("until")))
        most = max(number_argument("limit", options.get("limit", 50)), 0)
        self._allow(Action.READ, self._named(branch))
        return self._repository.branches.find(self._named(branch)), LogFilter(actor, kind, *times), most

    def blame(
        self,
        type: str,  # noqa: A002  what it is called
        id: str,  # noqa: A002
        *,
        branch: str | None = None,
        at: At = None,
    ) -> Blame:
        """For each property of one node or edge, and the ends of an edge, the commit that gave it its value.

        A value that a merge brought is the merged branch's, as long as that branch exists. An entity that was
        deleted and inserted again begins anew. It costs as much as the row was written, however long the history.
        """
        from omnigraph.history.blame import blame
        from omnigraph.read.entities import entity_key

        state = self.snapshot(branch, at=at)
        table_key = entity_key(self._catalog(), text_argument("type", type))
        self._allow(Action.READ, state.branch, types=[table_key])
        return blame(self._repository, state, table_key, text_argument("id", id))

    def schema_source(self, branch: str | None = None, *, at: At = None) -> str:
        """The accepted schema of a branch or of an older state, as its author wrote it."""
        return self._repository.schemas.source(self.snapshot(branch, at=at).schema_digest)

    def schema_history(self, branch: str | None = None) -> list[SchemaVersion]:
        """The schemas that a branch has had, newest first, with the commits that brought them."""
        from omnigraph.history.schemas import schema_history

        self._allow(Action.READ, self._named(branch))
        return schema_history(self._repository, self._repository.branches.find(self._named(branch)))

    def commit(self, graph_commit_id: str) -> Commit:
        """One commit by its id or by a tag, on whatever branch it was made."""
        self._allow(Action.READ)
        found = self._commit(graph_commit_id)
        self._allow(Action.READ, found.branch)
        return found

    def _commit(self, graph_commit_id: str) -> Commit:
        wanted = text_argument("graph_commit_id", graph_commit_id)
        return self._repository.commits.find(wanted, self._repository.branches.find(self._branch))
