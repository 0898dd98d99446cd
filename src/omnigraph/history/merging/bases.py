"""The merge base: the commit from which two histories are compared.

Both histories are walked from their heads, newest first, until all paths have met: the cost follows the distance
to the base, not the length of the histories.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Flag, auto

from omnigraph.errors import HistoryReclaimed, RequestError
from omnigraph.manifest.lineage import Ancestry, age
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit


@dataclass(frozen=True, slots=True)
class MergeBase:
    """The best common ancestor whose state can be read.

    A better one may lie on a branch that was deleted, and after a criss-cross merge there are several best ones.
    ``merges`` are the commits by which either history got what those ancestors have changed, the oldest first:
    together with the base they tell what both sides have in common.
    """

    commit: Commit
    merges: tuple[Commit, ...] = ()


class _Side(Flag):
    """Which heads a commit is an ancestor of, and whether it is older than a base that was found."""

    NONE = 0
    OURS = auto()
    THEIRS = auto()
    BOTH = OURS | THEIRS
    PASSED = auto()


@dataclass(slots=True)
class _Walk:
    """The commits that a walk has met."""

    ancestry: Ancestry
    met: dict[str, Commit] = field(default_factory=dict)
    sides: dict[str, _Side] = field(default_factory=dict)
    waiting: list[Commit] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    """Those that wait, and are not older than a base."""
    done: dict[str, _Side] = field(default_factory=dict)

    def next(self) -> tuple[Commit, _Side]:
        """The newest commit that waits, and the sides it was reached from. A commit that was reached again since
        comes again."""
        while True:
            commit = self.waiting.pop()
            key = commit.graph_commit_id
            self.open.discard(key)
            if self.done.get(key) != self.sides[key]:
                self.done[key] = self.sides[key]
                return commit, self.sides[key]

    def meet(self, commit: Commit, sides: _Side) -> None:
        """Note from where a commit was reached; what is new about it is passed on to its parents later."""
        key = commit.graph_commit_id
        before = self.sides.get(key, _Side.NONE)
        after = before | sides
        if after == before:
            return
        self.met[key], self.sides[key] = commit, after
        insort(self.waiting, commit, key=age)
        if _Side.PASSED in after:
            self.open.discard(key)
        else:
            self.open.add(key)


def readable_states(repository: Repository) -> Callable[[Commit], bool]:
    """A function that tells whether the state that a commit made can still be read."""
    gone: set[str] = set()

    def is_readable(commit: Commit) -> bool:
        if commit.branch in gone:
            return False
        try:
            repository.commits.state_at(commit)
        except HistoryReclaimed:
            if commit.branch not in repository.branches.names():
                gone.add(commit.branch)
            return False
        return True

    return is_readable


def merge_base(
    ancestry: Ancestry, ours: Commit, theirs: Commit, is_readable: Callable[[Commit], bool]
) -> MergeBase:
    """The best common ancestor of two commits that can be read.

    After a criss-cross merge there are several that no other descends from; of these the one nearest to both heads
    is taken, and of equally near ones the newest; the merges of the others go on top. HistoryReclaimed if none can
    be read, RequestError if there is none at all.
    """
    walk = _Walk(ancestry)
    walk.meet(ours, _Side.OURS)
    walk.meet(theirs, _Side.THEIRS)
    found: list[Commit] = []
    lost: list[Commit] = []
    while walk.open:
        commit, sides = walk.next()
        if sides == _Side.BOTH:
            if is_readable(commit):
                found.append(commit)
                sides |= _Side.PASSED
            else:
                lost.append(commit)
        for parent in ancestry.parents(commit):
            walk.meet(parent, sides)
    if not found:
        heads = f"commits {ours.graph_commit_id} and {theirs.graph_commit_id}"
        if not lost:
            raise RequestError(f"{heads} have no history in common; only branches of one graph can be merged")
        remedy = "bring single commits over with `omnigraph cherry-pick`"
        raise HistoryReclaimed(f"the state that {heads} have in common", remedy)
    chosen, *others = _best(found, ours, theirs, walk)
    return MergeBase(chosen, _merges_of([*lost, *others], walk, is_readable))


def _best(found: list[Commit], ours: Commit, theirs: Commit, walk: _Walk) -> list[Commit]:
    """The common ancestors that no other one descends from, the best of them first."""
    for head in (ours, theirs):
        if head in found:
            return [head]
    older = _ancestors(found, walk.met)
    near, far = _distances(ours, walk.met), _distances(theirs, walk.met)
    return sorted(
        (commit for commit in found if commit.graph_commit_id not in older),
        key=lambda commit: (
            near[commit.graph_commit_id] + far[commit.graph_commit_id],
            -commit.manifest_version,
            commit.graph_commit_id,
        ),
    )


def _merges_of(others: list[Commit], walk: _Walk, is_readable: Callable[[Commit], bool]) -> tuple[Commit, ...]:
    """The merges of commits that are not the base, where the states before and after the merge can be read."""
    if not others:
        return ()
    order = {commit.graph_commit_id: age(commit) for commit in others}
    found = []
    for commit in walk.met.values():
        merged = [order[parent] for parent in commit.parents[1:] if parent in order]
        before = walk.ancestry.find(commit.parents[0]) if merged else None
        if before is not None and is_readable(commit) and is_readable(before):
            found.append((max(merged), age(commit), commit))
    return tuple(commit for _, _, commit in sorted(found, key=lambda each: each[:2]))


def _distances(head: Commit, known: Mapping[str, Commit]) -> dict[str, int]:
    """How many steps lead from a head to each of its ancestors, by the shortest way."""
    found = {head.graph_commit_id: 0}
    waiting = deque([head])
    while waiting:
        commit = waiting.popleft()
        for parent in commit.parents:
            if parent in known and parent not in found:
                found[parent] = found[commit.graph_commit_id] + 1
                waiting.append(known[parent])
    return found


def _ancestors(commits: Iterable[Commit], known: Mapping[str, Commit]) -> set[str]:
    """The commits that any of these descend from, themselves left out."""
    found: set[str] = set()
    waiting = deque(commits)
    while waiting:
        for parent in waiting.popleft().parents:
            if parent not in found:
                found.add(parent)
                if parent in known:
                    waiting.append(known[parent])
    return found
