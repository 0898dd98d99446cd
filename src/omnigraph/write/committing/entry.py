"""What a writer looks at before it begins and again under its lock: sidecars of dead writers, the newest state.

All of it is asked for at the same time. Only if there are sidecars does one thing come after the other: they are
healed, and the state is looked for again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from omnigraph.manifest.drafts import BranchName
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import ManifestState
from omnigraph.recovery.heal import heal, heal_branch
from omnigraph.recovery.sidecar import list_sidecars
from omnigraph.storage.locks import CommitLock
from omnigraph.storage.tables import TableRef
from omnigraph.storage.together import side_by_side


@dataclass(frozen=True, slots=True)
class Entry:
    """A branch as a writer finds it: its newest state, and whether any branch has writes in flight or interrupted.

    ``cleanups`` is the newest mark of a cleanup before anything of the write was staged.
    """

    branch: Branch
    snapshot: Snapshot
    is_quiet: bool = False
    cleanups: int = 0


def enter(repository: Repository, branch: Branch) -> Entry:
    """Look at a branch, to write to it. If the graph cannot be written to, only its state is looked up."""
    if repository.read_only:
        return Entry(branch, repository.snapshot(branch))
    sidecars, state = side_by_side(
        repository.address,
        lambda: list_sidecars(repository.objects, repository.cleanups),
        lambda: repository.manifest.latest(branch.native),
    )
    return Entry(branch, repository.snapshot(branch, state), not sidecars, repository.cleanups.latest)


def heal_dead(repository: Repository, entry: Entry) -> bool:
    """Resolve the writes of dead writers on a branch, if it looks as if there were any; were there some?

    While another writer holds the branch's lock the sidecars may be its own. If they are not, they are found again
    under the lock.
    """
    if entry.is_quiet or repository.locks.seems_held(entry.branch.name):
        return False
    return bool(heal(repository, entry.branch.name))


@dataclass(frozen=True, slots=True)
class Settled:
    """What is certain about a branch as long as its lock is held: it is healed, and this is its newest state.

    ``own`` are the tables, by location and native branch, whose newest versions were published under this lock.
    """

    branch: BranchName
    state: ManifestState
    own: frozenset[tuple[str, str | None]] = frozenset()

    def followed_by(self, state: ManifestState, moved: Sequence[TableRef]) -> Settled:
        """What is certain after a publish under the same lock."""
        return replace(self, state=state, own=self.own | {(ref.location, ref.branch) for ref in moved})


def settle(
    repository: Repository, branch: Branch, lock: CommitLock, tables: Sequence[TableRef] = ()
) -> tuple[ManifestState, list[TableRef], bool]:
    """Under the lock: heal the branch. Its newest state, which of some tables have moved past these versions, and
    whether a write of a dead writer was resolved.

    What an earlier holder of the same lock has found out is not looked up again.
    """
    known = lock.settled
    if isinstance(known, Settled) and known.branch == branch.ref:
        others = [ref for ref in tables if (ref.location, ref.branch) not in known.own]
        return known.state, moved_tables(repository, others), False
    sidecars, state, _, *moved = side_by_side(
        repository.address,
        lambda: list_sidecars(repository.objects, repository.cleanups),
        lambda: repository.manifest.latest(branch.native),
        lambda: repository.manifest.require_branch(branch.ref),
        *(partial(repository.tables.moved, ref) for ref in tables),
    )
    found = [ref for ref, is_moved in zip(tables, moved, strict=True) if is_moved]
    healed = heal_branch(repository, branch.name, lock) if sidecars else []
    if sidecars:
        state = repository.manifest.latest(branch.native)
        found = moved_tables(repository, tables)
    lock.settled = Settled(branch.ref, state)
    return state, found, bool(healed)


def moved_tables(repository: Repository, tables: Sequence[TableRef]) -> list[TableRef]:
    """The tables that have moved past these versions."""
    moved = side_by_side(repository.address, *(partial(repository.tables.moved, ref) for ref in tables))
    return [ref for ref, is_moved in zip(tables, moved, strict=True) if is_moved]
