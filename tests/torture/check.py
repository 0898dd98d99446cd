"""What a torture run must leave behind: every acknowledged write whole, every other one whole or not there."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from tests.history.model import Row, State, merged_state
from tests.history.test_diff import content as whole_content
from tests.torture.model import Model
from tests.torture.steps import BRANCHES, EXTRA, KEPT, UNDONE

from omnigraph import Commit, Graph
from omnigraph.errors import HistoryReclaimed
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.recovery.sidecar import list_sidecars
from omnigraph.storage.tables import TableRef

REPLAYED = 40
"""How many commits of each branch are read as changes."""
ITEM, ENTRY, NEXT = "node:Item", "node:Entry", "edge:Next"


NEVER_TRUE = {"TableDrift", "HistoryReclaimed", "ObjectDamaged", "SidecarUnreadable", "RecoveryBlocked"}
"""Errors that blame somebody else, or a damage. In a torture run nobody else writes, and nothing is damaged."""


MERGES = 5
"""How many of the newest merges of each branch are compared with the model in each check."""


class Broken(AssertionError):
    """The graph is not as the acknowledged writes say."""


@dataclass(frozen=True)
class TagState:
    """What one snapshot holds of one tag."""

    items: int
    edges: int
    entries: int
    sizes: frozenset[int]
    stamps: frozenset[int]

    @property
    def is_whole(self) -> bool:
        size = next(iter(self.sizes), 0)
        return (
            self.items == size
            and self.edges == size - 1
            and self.entries == 1
            and len(self.sizes) == 1
            and len(self.stamps) == 1
        )


def content(graph: Graph, at: str | Snapshot) -> State:
    """All entities of a state, without the property that comes and goes and never has a value."""
    found = whole_content(graph, at)
    return {key: {i: _without_extra(row) or {} for i, row in rows.items()} for key, rows in found.items()}


def _without_extra(row: Row | None) -> Row | None:
    if row is None:
        return None
    if any(row.get(name) is not None for name in EXTRA):
        raise Broken(f"nobody wrote {EXTRA} of {row}")
    return {name: value for name, value in row.items() if name not in EXTRA}


def rows(graph: Graph, snapshot: Snapshot, table_key: str, *columns: str) -> list[dict[str, Any]]:
    pin = snapshot.tables[table_key]
    ref = TableRef(pin.location, pin.table_branch, pin.table_version)
    found: list[dict[str, Any]] = graph._repository.tables.scan(ref, columns).read_all().to_pylist()
    if len(found) != pin.row_count:
        raise Broken(f"{table_key} has {len(found)} rows, and the manifest says {pin.row_count}")
    return found


def tags(graph: Graph, snapshot: Snapshot) -> dict[str, TagState]:
    """Everything in one snapshot, by tag. Half writes and duplicates are errors."""
    items = rows(graph, snapshot, ITEM, "name", "tag", "size", "stamp")
    entries = rows(graph, snapshot, ENTRY, "tag", "size")
    edges = Counter(row["tag"] for row in rows(graph, snapshot, NEXT, "tag"))
    repeated = [name for name, count in Counter(row["name"] for row in items).items() if count > 1]
    if repeated:
        raise Broken(f"duplicates: {repeated[:5]}")
    counted = Counter(row["tag"] for row in items)
    entered = Counter(row["tag"] for row in entries)
    sizes: dict[str, set[int]] = {}
    stamps: dict[str, set[int]] = {}
    for row in (*items, *entries):
        sizes.setdefault(row["tag"], set()).add(row["size"])
        if "stamp" in row:
            stamps.setdefault(row["tag"], set()).add(row["stamp"])
    found = {
        tag: TagState(
            counted[tag], edges[tag], entered[tag], frozenset(sizes.get(tag, ())), frozenset(stamps.get(tag, ()))
        )
        for tag in {*counted, *entered, *edges}
    }
    half = {tag: state for tag, state in found.items() if not state.is_whole}
    if half:
        raise Broken(
            f"half writes on {snapshot.branch} at {snapshot.manifest_version}: {dict(list(half.items())[:5])}"
        )
    return found


def compare(graph: Graph, model: Model) -> None:
    """Compare a graph that nobody writes to with what the logs say."""
    if wrong := {told: text for told, text in model.texts.items() if told.split(": ")[1] in NEVER_TRUE}:
        raise Broken(f"writers were told what is never true here: {wrong}")
    if damaged := graph.damaged_branches():
        raise Broken(f"branches are damaged: {damaged}")
    present = {branch.name for branch in graph.branches()}
    if lost := {name for name in {*BRANCHES, *model.created} if model.must_exist(name)} - present:
        raise Broken(f"branches are lost: {sorted(lost)}")
    if unknown := {name for name in present if not model.may_exist(name)}:
        raise Broken(f"branches are there that nobody has, or that were deleted: {sorted(unknown)}")
    written = {tag for _, tag in model.stamps}
    for branch in sorted(present):
        _compare_branch(graph, model, branch, written)
        _check_history(graph, model, branch)
        _check_changes(graph, branch)


def _compare_branch(graph: Graph, model: Model, branch: str, written: Set[str]) -> None:
    found = tags(graph, graph.snapshot(branch))
    for (owner, tag), possible in model.stamps.items():
        if owner == branch and branch != UNDONE:
            state = found.get(tag)
            stamp = None if state is None else next(iter(state.stamps))
            if stamp not in possible:
                raise Broken(f"{tag} on {branch} has stamp {stamp}, and the logs allow {possible}")
    if unknown := found.keys() - written:  # tags of other branches come with merges and forks
        raise Broken(f"nobody wrote {sorted(unknown)[:5]} to {branch}")


def _check_history(graph: Graph, model: Model, branch: str) -> None:
    """Every commit follows the one before it, all acknowledged ones are there once, and merges are right."""
    commits = graph.commits(branch, limit=10**9)
    known = {commit.graph_commit_id: commit for commit in commits}
    if len(known) != len(commits):
        raise Broken(f"commits appear twice on {branch}")
    line = _first_parents(commits[0], known)
    for commit in line:
        if len(commit.parents) > 1 and commit.kind != "merge":
            raise Broken(f"{commit.graph_commit_id} of {branch} has two parents, and is no merge")
    lost = model.commits.get(branch, set()) - {commit.graph_commit_id for commit in line}
    if lost:
        raise Broken(f"acknowledged commits are not in the history of {branch}: {sorted(lost)[:5]}")
    for commit in [each for each in line if each.kind == "merge"][:MERGES]:
        _check_merge(graph, known, commit)


def _first_parents(head: Commit, known: Mapping[str, Commit]) -> list[Commit]:
    """A head and its first parents, newest first; every parent has to be there."""
    line = [head]
    while line[-1].parents:
        if lost := set(line[-1].parents) - known.keys():
            raise Broken(f"{line[-1].graph_commit_id} follows {lost}, which are not there")
        line.append(known[line[-1].parents[0]])
    return line


def _check_merge(graph: Graph, known: Mapping[str, Commit], commit: Commit) -> None:
    """A merge made of its two parents and their base what the model makes of them.

    States of deleted branches cannot be read, and with several bases there is no one answer.
    """
    ours, theirs = commit.parents
    bases = _best(_ancestors(known, ours) & _ancestors(known, theirs), known)
    if len(bases) != 1:
        return
    try:
        base, mine, other, after = (
            content(graph, each) for each in (*bases, ours, theirs, commit.graph_commit_id)
        )
    except HistoryReclaimed:
        return
    expected, conflicts = merged_state(base, mine, other)
    if conflicts or after != expected:
        raise Broken(f"merge {commit.graph_commit_id} is not what its parents make together ({conflicts})")


def _best(common: Set[str], known: Mapping[str, Commit]) -> list[str]:
    """The common ancestors that no other descends from."""
    older = {parent for each in common for parent in _ancestors(known, each) - {each}}
    return sorted(common - older)


def _ancestors(known: Mapping[str, Commit], commit: str) -> set[str]:
    found, waiting = {commit}, [commit]
    while waiting:
        for parent in known[waiting.pop()].parents:
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found


def _check_changes(graph: Graph, branch: str) -> None:
    """The changes of the newest commits, made to the state before them, give the newest state."""
    commits = graph.commits(branch, limit=10**9)
    line = _first_parents(commits[0], {commit.graph_commit_id: commit for commit in commits})
    # Those from before the fork are the parent's, which may have been cleaned up.
    own = [commit for commit in line[: REPLAYED + 1] if commit.branch == branch]
    if not own:
        return
    first, *later = [commit.graph_commit_id for commit in own][::-1]
    entities = content(graph, first)
    seen: list[str] = []
    for page in graph.change_pages(branch, start=f"after:{first}"):
        for block in page.blocks:
            seen += [block.cause.graph_commit_id] if block.complete else []
            for change in block.changes:
                there = entities[change.table_key].pop(change.id, None)
                if there != _without_extra(change.before):
                    raise Broken(f"{block.cause.graph_commit_id} of {branch} changed what was not there: {change}")
                after = _without_extra(change.after)
                if after is not None:
                    entities[change.table_key][change.id] = after
    if seen != later:
        raise Broken(f"the feed of {branch} has the commits {seen}, and the history {later}")
    if entities != content(graph, graph.snapshot(branch)):
        raise Broken(f"the changes of the last {len(later)} commits of {branch} do not lead to its newest state")


def check_settled(graph: Graph) -> None:
    """Nothing is pending, every table is where the manifest says, and each recovery is on record once."""
    repository = graph._repository
    pending = list_sidecars(repository.objects)
    if pending:
        raise Broken(f"sidecars are left: {pending}")
    for branch in graph.branches():
        for pin in graph.snapshot(branch.name).tables.values():
            ref = TableRef(pin.location, pin.table_branch, pin.table_version)
            if pin.table_branch == branch.native and repository.tables.moved(ref):
                raise Broken(f"{pin.table_key} of {branch.name} is ahead of the manifest")
    operations = Counter(recovery.operation_id for recovery in graph.recoveries())
    repeated = [operation for operation, count in operations.items() if count > 1]
    if repeated:
        raise Broken(f"recoveries on record more than once: {repeated[:5]}")


def check_space(graph: Graph) -> None:
    """A cleanup that need not spare anybody removes all that no kept state needs, and what stays is bounded."""
    now = dt.timedelta(0)
    graph.cleanup(keep=KEPT, grace=now, confirm=True)
    left = graph.cleanup(keep=KEPT, grace=now)
    if left.files_removed:
        raise Broken(f"a second cleanup finds {left.files_removed} files more: {left.tables}")
