"""The commits whose states merges between live branches need: the common ancestors nearest to their heads.

All heads are walked at once. Each commit notes which heads descend from it; a commit from which two heads descend
is needed unless one of its descendants, whose state can be read, has the same heads. A descendant on a branch that
can be deleted while both heads stay is no substitute for commits of other branches.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from omnigraph.manifest.lineage import Ancestry, age
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.state import MAIN, Commit

Cover = tuple[int, str | None]
"""Heads, as bits, for whose merges there is a nearer base; on a branch that may go before they do, or on none."""


@dataclass(slots=True)
class _Met:
    """A commit that the walk has met: the heads that descend from it as bits, and which of them have nearer
    bases."""

    commit: Commit
    heads: int = 0
    covered: frozenset[Cover] = frozenset()
    is_readable: bool | None = None

    @property
    def is_needed(self) -> bool:
        """Is it the nearest common ancestor of two heads, or will it be when a branch is deleted?"""
        return self.heads.bit_count() > 1 and not any(
            self.heads | other == other and owner in (None, self.commit.branch) for other, owner in self.covered
        )


@dataclass(slots=True)
class _Walk:
    met: dict[str, _Met] = field(default_factory=dict)
    waiting: list[Commit] = field(default_factory=list)

    def reach(self, commit: Commit, heads: int, covered: frozenset[Cover]) -> None:
        """Note from which heads a commit is reached; what is new about it is passed on later."""
        met = self.met.setdefault(commit.graph_commit_id, _Met(commit))
        before = met.heads, met.covered
        met.heads |= heads
        met.covered |= covered
        if (met.heads, met.covered) != before:
            insort(self.waiting, commit, key=age)


def merge_states(
    heads: Mapping[str, Commit],
    branches: Iterable[Branch],
    ancestry: Ancestry,
    is_readable: Callable[[Commit], bool],
) -> list[Commit]:
    """The commits whose states merges between any two of the heads would read, beside those of the heads.

    ``heads`` are the newest commits of branches by name. After criss-cross merges, and where the nearest ancestor
    was on a deleted branch, a merge also reads the states before and after the merges that brought it in.
    """
    everyone = (1 << len(heads)) - 1
    if len(heads) < 2:
        return []
    lasting = _lasting({name: 1 << number for number, name in enumerate(heads)}, branches)
    walk = _Walk()
    for number, head in enumerate(heads.values()):
        walk.reach(head, 1 << number, frozenset())
    while walk.waiting:
        commit = walk.waiting.pop()
        met = walk.met[commit.graph_commit_id]
        covered = met.covered
        if met.is_needed:
            if met.is_readable is None:
                met.is_readable = is_readable(commit)
            if met.is_readable:
                covered |= set(_covers(met.heads, lasting.get(commit.branch, 0), commit.branch))
        if (everyone, None) in covered:
            continue  # every pair of heads has a nearer base than anything before
        for parent in ancestry.parents(commit):
            walk.reach(parent, met.heads, covered)
    needed = [met for met in walk.met.values() if met.is_needed]
    found = {met.commit.graph_commit_id: met.commit for met in needed if met.is_readable}
    if _has_several(needed):
        for merge in _merges_of(needed, walk, ancestry):
            found[merge.graph_commit_id] = merge
    return list(found.values())


def _lasting(bits: Mapping[str, int], branches: Iterable[Branch]) -> dict[str, int]:
    """For each branch the heads that keep it from being deleted: its own, and those of branches forked from it."""
    parents = {branch.name: branch.parent for branch in branches}
    found = dict.fromkeys(bits, 0)
    for name, bit in bits.items():
        here: str | None = name
        while here is not None:
            found[here] = found.get(here, 0) | bit
            here = parents.get(here)
    found[MAIN] = sum(bits.values())
    return found


def _covers(heads: int, lasting: int, branch: str) -> Iterable[Cover]:
    """The pairs of heads that a common ancestor is the base of: for good, if one of the two keeps its branch."""
    rest = heads & ~lasting
    if rest.bit_count() <= 1:
        return [(heads, None)]
    single = [1 << number for number in range(rest.bit_length()) if rest >> number & 1]
    return [(heads, branch), *((heads & lasting | one, None) for one in single)]


def _has_several(needed: list[_Met]) -> bool:
    """Is there a pair of heads with several nearest ancestors, or one whose nearest ancestor cannot be read?"""
    if any(not met.is_readable for met in needed):
        return True
    return any(
        (left.heads & right.heads).bit_count() > 1
        for number, left in enumerate(needed)
        for right in needed[number + 1 :]
    )


def _merges_of(needed: list[_Met], walk: _Walk, ancestry: Ancestry) -> list[Commit]:
    """The merges that brought ancestors in, and the commits before those merges."""
    brought = {met.commit.graph_commit_id for met in needed}
    found: list[Commit] = []
    for met in walk.met.values():
        if brought.intersection(met.commit.parents[1:]):
            found += [met.commit, *ancestry.parents(met.commit)[:1]]
    return found
