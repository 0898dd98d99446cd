"""The merge base: the commit from which two histories are compared."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from omnigraph.errors import RequestError
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit


def merge_base(repository: Repository, ours: Branch, theirs: Branch) -> Commit:
    """The best common ancestor of two branches' heads.

    After a criss-cross merge there are several that no other descends from; of these the one nearest to both heads
    is taken, and of equally near ones the newest.
    """
    mine, other = list(repository.commits.of(ours)), list(repository.commits.of(theirs))
    known = {commit.graph_commit_id: commit for commit in (*mine, *other)}
    if not mine or not other:
        raise RequestError(f"'{ours.name}' and '{theirs.name}' have no history in common")
    near, far = _distances(mine[0], known), _distances(other[0], known)
    common = near.keys() & far.keys()
    if not common:
        raise RequestError(f"'{ours.name}' and '{theirs.name}' have no history in common")
    best = common - _ancestors((known[commit] for commit in common), known)
    return min(
        (known[commit] for commit in best),
        key=lambda commit: (
            near[commit.graph_commit_id] + far[commit.graph_commit_id],
            -commit.manifest_version,
            commit.graph_commit_id,
        ),
    )


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
