"""The commits whose states merges between live branches need: the common ancestors nearest to their heads.

All heads are walked at once. Each commit notes which heads descend from it; a commit from which two heads descend
is needed unless one of its descendants, whose state can be read, has the same heads.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from omnigraph.manifest.lineage import Ancestry, age
from omnigraph.manifest.state import Commit


@dataclass(slots=True)
class _Met:
    """A commit that the walk has met: the heads that descend from it as bits, and the sets of heads that merges
    find a nearer base for."""

    commit: Commit
    heads: int = 0
    covered: frozenset[int] = frozenset()
    is_readable: bool | None = None

    @property
    def is_needed(self) -> bool:
        """Is it the nearest common ancestor of two heads?"""
        return self.heads.bit_count() > 1 and not any(self.heads | other == other for other in self.covered)


@dataclass(slots=True)
class _Walk:
    met: dict[str, _Met] = field(default_factory=dict)
    waiting: list[Commit] = field(default_factory=list)

    def reach(self, commit: Commit, heads: int, covered: frozenset[int]) -> None:
        """Note from which heads a commit is reached; what is new about it is passed on later."""
        met = self.met.setdefault(commit.graph_commit_id, _Met(commit))
        before = met.heads, met.covered
        met.heads |= heads
        met.covered |= covered
        if (met.heads, met.covered) != before:
            insort(self.waiting, commit, key=age)


def merge_states(
    heads: Sequence[Commit], ancestry: Ancestry, is_readable: Callable[[Commit], bool]
) -> list[Commit]:
    """The commits whose states merges between any two of these heads would read, beside those of the heads.

    After criss-cross merges, and where the nearest ancestor was on a deleted branch, a merge also reads the states
    before and after the merges by which that ancestor came in.
    """
    everyone = (1 << len(heads)) - 1
    if everyone.bit_count() < 2:
        return []
    walk = _Walk()
    for number, head in enumerate(heads):
        walk.reach(head, 1 << number, frozenset())
    while walk.waiting:
        commit = walk.waiting.pop()
        met = walk.met[commit.graph_commit_id]
        covered = met.covered
        if met.is_needed:
            if met.is_readable is None:
                met.is_readable = is_readable(commit)
            if met.is_readable:
                covered |= {met.heads}
        if everyone in covered:
            continue  # every pair of heads has a nearer base than anything before
        for parent in ancestry.parents(commit):
            walk.reach(parent, met.heads, covered)
    needed = [met for met in walk.met.values() if met.is_needed]
    found = {met.commit.graph_commit_id: met.commit for met in needed if met.is_readable}
    if _has_several(needed):
        for merge in _merges_of(needed, walk, ancestry):
            found[merge.graph_commit_id] = merge
    return list(found.values())


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
