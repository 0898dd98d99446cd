"""Random histories: what may happen to a graph with branches, and how it is made to happen."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal

import pytest
from hypothesis import strategies as st
from tests.history.model import Row, State, merged_state, same_states
from tests.history.test_diff import content
from tests.stores import memory_store

import omnigraph
from omnigraph import Graph, UndoResult
from omnigraph.errors import MergeConflicts

SCHEMA = """
node Person {
  name: String @key
  age: I32? @index
  far: I64?
  height: F64?
  weight: F32?
  alive: Bool?
  born: Date?
  seen: DateTime?
  mood: enum(good, bad)? @index
  motto: String? @index
  tags: [String]?
  scores: [I32]?
  face: Vector(2)? @index
  photo: Blob?
}
edge Knows: Person -> Person { since: I32?  note: String? }
"""
PERSON, KNOWS = "node:Person", "edge:Knows"

VALUES: dict[str, list[Any]] = {
    "age": [None, 0, 7],
    "far": [None, -(2**62), 2**62],
    "height": [None, 0.0, -0.0, 1.5],
    "weight": [None, 0.5],
    "alive": [None, True, False],
    "born": [None, "1970-01-01", "2024-02-29"],
    "seen": [None, "2024-02-29T12:00:00Z"],
    "mood": [None, "good", "bad"],
    "motto": [None, "", "ab ovo", "ad astra"],
    "tags": [None, [], ["a"], ["a", "b"]],
    "scores": [None, [], [1, 2]],
    "face": [None, [0.0, 1.0], [1.0, 0.0]],
    "photo": [None, "base64:", "base64:AAEC"],
}
Side = Literal["ours", "theirs"]


@dataclass(frozen=True)
class Step:
    """One thing that happens; ``choice`` decides about what there is to choose from by then."""

    kind: str
    choice: int
    other: int
    name: str
    property: str
    value: int
    resolve: Side | None


KINDS = [
    *["set"] * 6,
    *["add"] * 3,
    *["remove"] * 2,
    *["add edge"] * 3,
    *["remove edge"] * 1,
    *["set edge"] * 1,
    *["branch"] * 3,
    *["merge"] * 5,
    *["optimize", "index", "revert", "cherry-pick", "reset"],
]

steps = st.builds(
    Step,
    st.sampled_from(KINDS),
    st.integers(0, 11),
    st.integers(0, 11),
    st.sampled_from(["Ada", "Bo", "Cy", "Dee"]),
    st.sampled_from(list(VALUES)),
    st.integers(0, 3),
    st.sampled_from([None, None, "ours", "theirs"]),
)


def record(row: Row) -> dict[str, Any]:
    """A row as a record that `load` takes."""
    values = {name: _loaded(value) for name, value in row.items() if name not in ("src", "dst")}
    if "src" in row:
        return {"edge": "Knows", "from": row["src"], "to": row["dst"], "data": values}
    return {"type": "Person", "data": values}


def _loaded(value: Any) -> Any:
    match value:
        case bytes():
            return "base64:" + base64.b64encode(value).decode()
        case dt.datetime() | dt.date():
            return value.isoformat()
    return value


@dataclass
class History:
    """A graph, and the states of all its commits as a reader saw them when they were made."""

    graph: Graph = field(default_factory=lambda: omnigraph.init(memory_store().uri, SCHEMA))
    branches: list[str] = field(default_factory=lambda: ["main"])
    states: dict[str, State] = field(default_factory=dict)
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    merges: int = 0

    def __post_init__(self) -> None:
        people = [{"type": "Person", "data": {"name": name, "age": 1}} for name in ("Ada", "Bo")]
        self.graph.load(people, mode="append")
        self.note("main")

    def state(self, branch: str) -> State:
        return content(self.graph, self.graph.snapshot(branch))

    def head(self, branch: str) -> str:
        return self.graph.commits(branch, limit=1)[0].graph_commit_id

    def note(self, branch: str) -> State:
        """Remember the state of a branch's newest commit."""
        newest, *before = self.graph.commits(branch, limit=9)
        state = self.state(branch)
        self.states.setdefault(newest.graph_commit_id, state)
        self.parents[newest.graph_commit_id] = tuple(newest.parents)
        for commit in takewhile(lambda each: each.kind == "optimize", before if newest.kind == "optimize" else ()):
            self.states.setdefault(commit.graph_commit_id, state)
            self.parents[commit.graph_commit_id] = tuple(commit.parents)
        return state

    def do(self, step: Step) -> None:
        """Let one thing happen, and check what must hold for it."""
        branch = self.branches[step.choice % len(self.branches)]
        other = self.branches[step.other % len(self.branches)]
        match step.kind:
            case "branch":
                if len(self.branches) < 4:
                    self.branches.append(f"b{len(self.branches)}")
                    self.graph.create_branch(self.branches[-1], branch)
            case "merge":
                if branch != other:
                    self.merge(other, branch, step.resolve)
            case "optimize" | "index":
                before = self.state(branch)
                done = self.graph.optimize if step.kind == "optimize" else self.graph.ensure_indices
                done(branch=branch)
                assert same_states(self.note(branch), before)
            case "revert" | "cherry-pick" | "reset":
                self.undo(step, branch)
            case _:
                self.write(step, branch)
        self.note(branch)

    def write(self, step: Step, branch: str) -> None:
        """Write one entity; nothing happens if what it needs is not there."""
        state = self.state(branch)
        people, edges = state[PERSON], state[KNOWS]
        known, links = sorted(people), sorted(edges)
        match step.kind:
            case "remove":
                text = f'query q() {{ delete Person where name = "{step.name}" }}'
                self.graph.mutate(text, branch=branch)
                after = self.state(branch)
                assert step.name not in after[PERSON]
                gone = {edge for edge, row in edges.items() if step.name in (row["src"], row["dst"])}
                assert edges.keys() - after[KNOWS].keys() == gone
            case "add edge" if known:
                ends = known[step.choice % len(known)], known[step.other % len(known)]
                row = {"id": "-".join(ends), "src": ends[0], "dst": ends[1], "since": step.value, "note": None}
                self.graph.load([record(row)], mode="merge", branch=branch)
            case "set edge" if links:
                row = {**edges[links[step.choice % len(links)]], "note": VALUES["motto"][step.value]}
                self.graph.load([record(row)], mode="merge", branch=branch)
            case "remove edge" if links:
                row = edges[links[step.choice % len(links)]]
                text = f'query q() {{ delete Knows where from = "{row["src"]}" }}'
                self.graph.mutate(text, branch=branch)
            case "set" | "add":
                options = VALUES[step.property]
                values = {step.property: options[step.value % len(options)]}
                kept = record(people[step.name])["data"] if step.name in people else {"name": step.name}
                self.graph.load([{"type": "Person", "data": {**kept, **values}}], mode="merge", branch=branch)

    def merge(self, source: str, target: str, resolve: Side | None) -> None:
        """Merge, and compare the outcome with that of the model; merging again changes nothing."""
        ours, theirs = self.state(target), self.state(source)
        plan = self.graph.preview_merge(source, target, resolve=resolve)
        bases = self.best_bases(self.head(source), self.head(target))
        assert plan.base_commit in bases
        common = self.common_state(plan.base_commit or "", bases)
        if common is not None:
            expected, kinds = merged_state(common, ours, theirs, resolve)
            assert {conflict.kind.value for conflict in plan.conflicts} == kinds
        if plan.conflicts:
            with pytest.raises(MergeConflicts) as raised:
                self.graph.merge(source, target, resolve=resolve)
            assert raised.value.conflicts == plan.conflicts
            assert same_states(self.state(target), ours)
            return
        assert self.graph.merge(source, target, resolve=resolve).plan == plan
        after = self.note(target)
        assert common is None or same_states(after, expected)
        assert self.graph.merge(source, target).outcome == "already_up_to_date"
        self.merges += 1

    def common_state(self, base: str, bases: set[str]) -> State | None:
        """What two branches have in common: the best base, or after a criss-cross merge all of them put together.

        None if these contradict each other, so that a merge has decided what is common.
        """
        state = self.states[base]
        for other in sorted(bases - {base}):
            older = self.best_bases(base, other)
            if len(older) != 1:
                return None
            state, kinds = merged_state(self.states[older.pop()], state, self.states[other])
            if kinds:
                return None
        return state

    def undo(self, step: Step, branch: str) -> None:
        """Revert or repeat a commit, or go back to it; conflicts are those of the model."""
        every = [commit for commit, parents in self.parents.items() if parents and parents[0] in self.states]
        if step.kind == "revert":
            every = [commit for commit in every if commit in self._ancestors(self.head(branch))]
        if not every:
            return
        commit = every[step.other % len(every)]
        before, after, ours = self.states[self.parents[commit][0]], self.states[commit], self.state(branch)
        run: Callable[..., UndoResult]
        match step.kind:
            case "revert":
                expected, kinds = merged_state(after, ours, before)
                run = self.graph.revert
            case "cherry-pick":
                expected, kinds = merged_state(before, ours, after)
                run = self.graph.cherry_pick
            case _:
                expected, kinds = after, set()
                run = self.graph.reset
        if kinds:
            with pytest.raises(MergeConflicts) as raised:
                run(commit, branch=branch)
            assert {conflict.kind.value for conflict in raised.value.conflicts} == kinds
        else:
            run(commit, branch=branch)
        assert same_states(self.state(branch), ours if kinds else expected)

    def best_bases(self, one: str, other: str) -> set[str]:
        """The common ancestors of two commits that no other common ancestor descends from."""
        common = self._ancestors(one) & self._ancestors(other)
        older = {parent for commit in common for parent in self._ancestors(commit) - {commit}}
        return common - older

    def _ancestors(self, commit: str) -> set[str]:
        found, waiting = {commit}, [commit]
        while waiting:
            for parent in self.parents.get(waiting.pop(), ()):
                if parent not in found:
                    found.add(parent)
                    waiting.append(parent)
        return found
