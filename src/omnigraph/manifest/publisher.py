"""Reading and publishing the manifest. `publish` is the compare-and-swap that makes a change visible.

The whole state of a branch is one small Lance table, rewritten at every publish as the next version. Lance lets
only one writer create a version, so there is one winner; a loser reads the new state, checks it and retries.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from lance import LanceDataset

from omnigraph.errors import (
    BranchNotFound,
    HistoryReclaimed,
    ManifestConflict,
    ObjectDamaged,
    PublishContention,
    SnapshotNotFound,
    StorageUnavailable,
    TableMoved,
    UpgradeRequired,
)
from omnigraph.failpoints import hit
from omnigraph.manifest.drafts import BranchName as BranchName
from omnigraph.manifest.drafts import Change as Change
from omnigraph.manifest.drafts import CommitDraft as CommitDraft
from omnigraph.manifest.drafts import branch_of
from omnigraph.manifest.drafts import initial_state as initial_state
from omnigraph.manifest.lineage import Archive
from omnigraph.manifest.retained import KeptStates, read_retained
from omnigraph.manifest.stamp import EVOLVED_SCHEMA_VERSION
from omnigraph.manifest.state import Commit, ManifestState, decode, encode
from omnigraph.records import dataclass
from omnigraph.storage import layout
from omnigraph.storage.control.sealed import number, seal, unseal
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables import TableRef, Tables
from omnigraph.storage.together import side_by_side

if TYPE_CHECKING:
    from omnigraph.manifest.streams import Batch
    from omnigraph.storage.locks import CommitLock
    from omnigraph.storage.stage.changes import Staged
    from omnigraph.storage.tables import NextVersion

PUBLISHER_RETRY_BUDGET: Final = 5
COMMIT_TAIL: Final = 32
"""How many commits the manifest keeps; older ones live in the archive."""

_ARCHIVE_BATCH: Final = 16
_STATES: Final = 64
_LONGEST_WALK: Final = 16
_PAUSE: Final = 0.01
_LAST_VERSION: Final = 2**63 - 1
_AT_ONCE: Final = 0.5

TRUSTED: Final = 600.0
"""For how many seconds the newest version that this process has seen is a place to start searching from."""


@dataclass(frozen=True, slots=True)
class Following:
    """The newest state of a branch under its lock, and what will be published after it, if that is ready."""

    current: ManifestState
    successor: ManifestState | None = None
    staged: Staged | None = None
    version: NextVersion | None = None
    """The version that it makes, if that is known as well."""


class Manifest:
    """The manifest of one graph: all its branches, all its versions."""

    def __init__(self, tables: Tables, objects: ObjectStore) -> None:
        self._tables = tables
        self._objects = objects
        self.archive = Archive(tables)
        self.kept = KeptStates(objects)
        self._states: OrderedDict[tuple[str | None, int], ManifestState] = OrderedDict()
        self._changes: OrderedDict[tuple[str | None, int], object] = OrderedDict()
        self._newest: dict[str | None, int] = {}
        self._confirmed: dict[str | None, float] = {}
        self._staging: dict[str | None, LanceDataset] = {}
        self._lock = threading.Lock()

    def latest(self, native: str | None) -> ManifestState:
        """The newest state of a branch, found without reading older ones; BranchNotFound if it was deleted."""
        try:
            return self.at(native, self._newest_version(native))
        except (HistoryReclaimed, SnapshotNotFound):
            if native is None or self._tables.newest(layout.MANIFEST, native) is not None:
                raise
        raise BranchNotFound(branch_of(native))

    def at(self, native: str | None, version: int) -> ManifestState:
        """The state of one version. HistoryReclaimed if it was removed, SnapshotNotFound if there was none."""
        with self._lock:
            state = self._states.get((native, version))
            if state is not None:
                self._states.move_to_end((native, version))
                return state
        if not 0 < version <= _LAST_VERSION:
            raise SnapshotNotFound(f"manifest version {version}")
        rows = self.rows_at(native, version)
        try:
            state = decode(rows, version)
        except (ValueError, KeyError, TypeError) as error:
            where = layout.version_file(layout.MANIFEST, native, version)
            raise ObjectDamaged(self._tables.shown(where), str(error)) from error
        if state.stamp > EVOLVED_SCHEMA_VERSION:
            raise UpgradeRequired(str(self._tables.address), state.stamp, EVOLVED_SCHEMA_VERSION)
        self._remember(native, state)
        return state

    def has(self, native: str | None, version: int) -> bool:
        """Is the state of a version on the store? It may be gone though this process remembers it."""
        ref = TableRef(layout.MANIFEST, native, version)
        return self._tables.exists(ref) or self.kept.has(native, version)

    def forget_states(self) -> None:
        """Drop the states that are remembered; some of them are not on the store any more."""
        with self._lock:
            self._states.clear()

    def rows_at(self, native: str | None, version: int) -> pa.Table:
        """The rows of one version, as they were published; HistoryReclaimed or SnapshotNotFound as for `at`."""
        try:
            return self._tables.scan(TableRef(layout.MANIFEST, native, version)).read_all()
        except HistoryReclaimed:
            kept = self.kept.get(native, version)
            if kept is not None:
                return kept
            newest = self._tables.newest(layout.MANIFEST, native)
            if newest is None or version > newest:
                raise SnapshotNotFound(f"manifest version {version}") from None
            raise HistoryReclaimed(f"manifest version {version}", self.remedy(native)) from None

    def remedy(self, native: str | None) -> str:
        """What a caller can do who asked for a state that is gone."""
        left = read_retained(self._objects).of(native)
        if left.oldest_commit is None:
            return "choose a newer one"
        name = branch_of(native) if native else "main"
        oldest = f"the oldest of branch '{name}' that can be read is commit {left.oldest_commit}"
        return f"{oldest}; choose that or a newer one"

    def publish(
        self,
        branch: BranchName,
        change: Change,
        expected: Mapping[str, int],
        draft: CommitDraft,
        lock: CommitLock | None = None,
    ) -> ManifestState:
        """Make a change visible as one commit.

        ``expected`` has the version that each table must be at; ManifestConflict if one has moved, and nothing is
        published. A draft that is published already (by recovery, which took the writer for dead) is a success.
        """
        done = self.swap_in(branch, change, expected, draft, lock)
        self.note_newest(branch.native, done.version)
        return done

    def swap_in(
        self,
        branch: BranchName,
        change: Change,
        expected: Mapping[str, int],
        draft: CommitDraft,
        lock: CommitLock | None,
        following: Following | None = None,
    ) -> ManifestState:
        """Publish without leaving a hint. ``following`` is the state that was the newest when the lock was taken:
        it is not looked for again, unless another writer has made the next version meanwhile."""
        from omnigraph.manifest.drafts import apply, check_expected

        def successor(current: ManifestState) -> ManifestState | None:
            if any(c.graph_commit_id == draft.graph_commit_id for c in current.commits):
                return None
            try:
                check_expected(current, expected)
            except ManifestConflict:
                if self.archive.find(draft.graph_commit_id) is not None:
                    return None
                raise
            return self._archived(apply(current, branch, change, draft))

        return self._swap(branch, successor, lock, following)

    def make_room(self, state: ManifestState, coming: int) -> int:
        """Archive the oldest commits of a state before the first of several commits that follow it, so that all of
        these can be foreseen. So many of the states to come may leave out one commit each."""
        if coming == 1 or len(state.commits) + coming <= COMMIT_TAIL:
            return 0
        leaving = state.commits[:coming]
        self.archive.append(leaving)
        hit("publish.after_archive")
        return len(leaving)

    def foresee(
        self,
        branch: BranchName,
        current: ManifestState,
        change: Change,
        draft: CommitDraft,
        is_leaving: bool = False,
    ) -> ManifestState | None:
        """The state after a change of one that cannot change before; None if commits are archived in between. With
        ``is_leaving`` the oldest commit is left out: it is in the archive already."""
        from omnigraph.manifest.drafts import apply

        if len(current.commits) - is_leaving >= COMMIT_TAIL:
            return None
        after = apply(current, branch, change, draft)
        return replace(after, commits=after.commits[1:]) if is_leaving else after

    def follow(self, branch: BranchName, current: ManifestState, successor: ManifestState | None) -> Following:
        """Prepare what will be published after a state, if it is foreseen: the rows of the next state are written
        already; nothing refers to them yet."""
        if successor is None:
            return Following(current)
        try:
            staged = self._stage(branch.native, encode(successor, branch.name), successor.version)
        except StorageUnavailable:
            return Following(current)
        return Following(current, successor, staged)

    def follow_each(
        self, branch: BranchName, states: Sequence[tuple[ManifestState, ManifestState]]
    ) -> list[Following]:
        """Prepare states on a disk that will be published one after the other: the rows of all of them, and the
        files of their versions, are written together. Each is given with the one before."""
        from omnigraph.storage.stage.changes import at_version, stage_overwrites

        following = [Following(current, successor) for current, successor in states]
        try:
            rows = [encode(successor, branch.name) for _, successor in states]
            handle = self._staging_handle(branch.native, states[0][0].version)
            staged = stage_overwrites(handle, layout.MANIFEST, branch.native, rows, "publish")
        except StorageUnavailable:
            return following
        versions: list[NextVersion] = []
        for place, (one, each) in enumerate(zip(staged, following, strict=True)):
            placed = at_version(one, rows[place].schema, each.current.version)
            following[place] = replace(each, staged=placed)
            if len(versions) == place:
                made = self._tables.foresee(placed, versions[-1] if versions else None)
                versions += [] if made is None else [made]
        for place, version in enumerate(self._tables.write_ahead(versions)):
            following[place] = replace(following[place], version=version)
        return following

    def find_commit(self, native: str | None, graph_commit_id: str) -> Commit | None:
        """A commit of a branch, from its newest state or the archive; None if there is none.

        Its writer may have failed before it synced what it published, so that is done here.
        """
        state = self.latest(native)
        for commit in state.commits:
            if commit.graph_commit_id == graph_commit_id:
                self._tables.sync_version(TableRef(layout.MANIFEST, native, state.version))
                return commit
        return self.archive.find(graph_commit_id)

    def note_batch(self, branch: BranchName, batch: Batch, lock: CommitLock) -> ManifestState:
        """Make a version without a commit, which marks a stream's batch without rows as done."""
        from omnigraph.manifest.streams import is_done, marked

        def successor(current: ManifestState) -> ManifestState | None:
            if is_done(current.streams, branch.native, batch):
                return None
            streams = marked(current.streams, branch.native, batch, None)
            return replace(current, version=current.version + 1, streams=streams)

        done = self._swap(branch, successor, lock)
        self.note_newest(branch.native, done.version)
        return done

    def has_batch(self, native: str | None, batch: Batch) -> bool:
        """Is a stream's batch marked as done in the newest state of a branch?

        The writer of the mark may have failed before it synced what it published, so that is done here.
        """
        from omnigraph.manifest.streams import is_done

        state = self.latest(native)
        if not is_done(state.streams, native, batch):
            return False
        self._tables.sync_version(TableRef(layout.MANIFEST, native, state.version))
        return True

    def _swap(
        self,
        branch: BranchName,
        next_state: Callable[[ManifestState], ManifestState | None],
        lock: CommitLock | None,
        following: Following | None = None,
    ) -> ManifestState:
        """Replace the newest state by its successor, with retries; ``next_state`` gives None to leave it as is."""
        if following is None:
            self.require_branch(branch)
        for attempt in range(PUBLISHER_RETRY_BUDGET + 1):
            if attempt:
                time.sleep(random.uniform(0, _PAUSE * 2**attempt))  # noqa: S311  jitter, not a secret
            current = self.latest(branch.native) if following is None else following.current
            ready = Following(current) if following is None else following
            successor = next_state(current) if ready.successor is None else ready.successor
            following = None
            if successor is None:
                return current
            if lock is not None:
                lock.verify()
                lock.settled = None
            try:
                return self.write(branch, successor, ready.staged, ready.version)
            except TableMoved:
                continue
        raise PublishContention(branch.name, PUBLISHER_RETRY_BUDGET + 1)

    def require_branch(self, branch: BranchName) -> None:
        """Raise BranchNotFound if the branch was deleted; its files may still exist and could be written to."""
        if branch.native is None:
            return
        key = layout.branch_ref(branch.name)
        ref = self._objects.get(key)
        if ref is None or unseal(key, ref.content).get("native") != branch.native:
            raise BranchNotFound(branch.name)

    def write(
        self,
        branch: BranchName,
        successor: ManifestState,
        staged: Staged | None = None,
        foreseen: NextVersion | None = None,
    ) -> ManifestState:
        """Write a state as the next version; TableMoved if another writer has made that version. Its rows may be
        staged already, and the version known."""
        hit("publish.before_stage")
        if staged is None:
            staged = self._stage(branch.native, encode(successor, branch.name), successor.version)
        self._commit(branch.native, staged, foreseen)
        self._remember(branch.native, successor)
        return successor

    def write_rows(self, native: str | None, rows: pa.Table, version: int) -> None:
        """Write rows as one version of the manifest, on top of the version before."""
        self._commit(native, self._stage(native, rows, version))

    def _stage(self, native: str | None, rows: pa.Table, version: int) -> Staged:
        """Stage rows as one version. That takes no more than any open version of the branch, and the one before
        may not be there yet."""
        from omnigraph.storage.stage.changes import at_version, stage_overwrite

        handle = self._staging_handle(native, version - 1)
        staged = stage_overwrite(handle, layout.MANIFEST, native, rows, "publish")
        return at_version(staged, rows.schema, version - 1)

    def _staging_handle(self, native: str | None, version: int) -> LanceDataset:
        """An open version of the branch, for staging: that version, or an older one."""
        with self._lock:
            handle, newest = self._staging.get(native), self._newest.get(native, version)
        if handle is None:
            handle = self._tables.open(TableRef(layout.MANIFEST, native, min(version, newest)))
            with self._lock:
                self._staging[native] = handle
        return handle

    def _commit(self, native: str | None, staged: Staged, foreseen: NextVersion | None = None) -> None:
        hit("publish.before_commit")
        done = self._tables.commit_staged(staged, foreseen)
        hit("publish.after_commit")
        self._note(native, done.version)

    def note_newest(self, native: str | None, version: int) -> None:
        """Remember the newest version of a branch, here and in a hint for other processes."""
        self._note(native, version)
        with contextlib.suppress(StorageUnavailable):  # the version is found without the hint, only slower
            self._objects.hint(layout.head_hint(native), seal({"version": version}))

    def forget(self, native: str) -> None:
        """Drop what is remembered of a deleted branch."""
        with self._lock:
            self._newest.pop(native, None)
            self._staging.pop(native, None)
            self._confirmed.pop(native, None)
        self._objects.delete(layout.head_hint(native))

    def _newest_version(self, native: str | None) -> int:
        """The newest version, searched from the last one that is known or hinted at.

        What was known a while ago is not trusted: cleanup may be removing the versions around it.
        """
        with self._lock:
            is_fresh = time.monotonic() - self._confirmed.get(native, 0.0) < TRUSTED
            version = self._newest.get(native) if is_fresh else None
        if version is None:
            version = self._hinted(native)
        found = None if version is None else self._walk(native, version)
        if found is not None:
            return self._note(native, found)
        if version is not None and self._tables.is_torn(TableRef(layout.MANIFEST, native, version)):
            where = layout.version_file(layout.MANIFEST, native, version)
            raise ObjectDamaged(self._tables.shown(where), "its end is missing, and it was published")
        listed = self._tables.newest(layout.MANIFEST, native)
        if listed is None:
            raise HistoryReclaimed(f"branch {native or 'main'}")
        return self._note(native, listed)

    def _walk(self, native: str | None, version: int) -> int | None:
        """The newest version, searched one by one from an older one, or from the hint if others have published
        since; None if it is too far away.

        None also if the older one was removed: then versions after it may be missing as well. Cleanup removes
        older versions first, so the older one has to be looked for behind a newer one, unless both take no longer
        than a cleanup needs for two.
        """
        began = time.monotonic()
        is_next, is_there = side_by_side(
            self._tables.address,
            lambda: self._tables.exists(TableRef(layout.MANIFEST, native, version + 1)),
            lambda: self._tables.exists(TableRef(layout.MANIFEST, native, version)),
        )
        if not is_next and time.monotonic() - began < _AT_ONCE:
            return version if is_there else None
        hinted = self._hinted(native) if is_next else None
        first = version if hinted is None else max(version, hinted)
        for known in range(first, first + _LONGEST_WALK):
            if not self._tables.exists(TableRef(layout.MANIFEST, native, known + 1)):
                return known if self._tables.exists(TableRef(layout.MANIFEST, native, first)) else None
        return None

    def _note(self, native: str | None, version: int) -> int:
        with self._lock:
            self._newest[native] = max(version, self._newest.get(native, 0))
            self._confirmed[native] = time.monotonic()
            return self._newest[native]

    def _hinted(self, native: str | None) -> int | None:
        """The version a hint names, if the hint can be read."""
        key = layout.head_hint(native)
        hint = self._objects.get(key)
        if hint is None:
            return None
        try:
            return number(unseal(key, hint.content)["version"])
        except (ObjectDamaged, ValueError, KeyError):
            return None

    def _remember(self, native: str | None, state: ManifestState) -> None:
        with self._lock:
            self._states[native, state.version] = state
            self._states.move_to_end((native, state.version))
            while len(self._states) > _STATES:
                self._states.popitem(last=False)

    def remember_change(self, native: str | None, version: int, change: object) -> None:
        """Keep what a writer of this process says of a version that it made."""
        with self._lock:
            self._changes[native, version] = change
            while len(self._changes) > _STATES:
                self._changes.popitem(last=False)

    def change_of(self, native: str | None, version: int) -> object:
        """What the writer of a version has said of it; None if it was another process, or long ago."""
        with self._lock:
            return self._changes.get((native, version))

    def _archived(self, state: ManifestState) -> ManifestState:
        """The state with at most `COMMIT_TAIL` commits; the oldest are moved to the archive first."""
        if len(state.commits) <= COMMIT_TAIL:
            return state
        self.archive.append(state.commits[:_ARCHIVE_BATCH])
        hit("publish.after_archive")
        return replace(state, commits=state.commits[_ARCHIVE_BATCH:])
