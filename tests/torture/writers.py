"""The writers of a torture run: processes that write at random and note what they were told."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import count
from pathlib import Path

from tests.stores import Store
from tests.torture.clients import impatient, short_leases
from tests.torture.fates import Fate
from tests.torture.roles import WEIGHTS, Role
from tests.torture.steps import BRANCHES, MERGED, SHORT, UNDONE, Kind, Log, Step, perform
from tests.torture.troubles import Weather, calm, faulty_disk, fork_soon, size_limit

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import BranchNotFound, OmniError, OutcomeUnknown, SnapshotNotFound

ANSWERS = {"nothing_written": "refused", "unknown": "unknown", "written": "done"}
"""What a log says for each outcome of an error."""

RAISED = 3
"""How a writer ends that met something which is not one of our errors."""

LONGEST_LIFE = 120
"""After how many seconds a writer ends by itself, if nobody is left who would end it."""

LOADED = 50
"""How many items a load on Spark has."""

PAUSE = 0.05
"""How long a process waits after an error, in seconds."""

CROWD = 6
"""How many threads a crowd has."""

REST = 0.2
"""How long one waits after each step that looks after the graph."""


class Writer:
    """Writes random things to random branches. Every writer has tags of its own, and knows what became of them."""

    def __init__(
        self,
        graph: Graph,
        name: str,
        seed: int,
        log: Log,
        weather: Weather = calm,
        role: Role = "writer",
        branches: Sequence[str] = tuple(BRANCHES),
    ) -> None:
        self._graph = graph
        self._name = name
        self._chance = random.Random(seed)
        self._log = log
        self._weather = weather
        self._weights = WEIGHTS[role]
        self._number = 0
        self._alive: dict[str, list[tuple[str, int]]] = {branch: [] for branch in branches}

    def step(self) -> OmniError | None:
        """Something at random: mostly new tags, sometimes a change or the end of an old one, or of a branch.
        The error, if there was one."""
        self._number += 1
        kind = self._chance.choices(list(self._weights), list(self._weights.values()))[0]
        match kind:
            case "create branch":
                name = f"{SHORT}{self._name}-{self._number}"
                parents = [branch for branch in self._alive if branch != UNDONE]
                return self.do(Step(kind, name, parent=self._chance.choice(parents)))
            case "merge":
                return self._merge()
            case "revert" | "cherry-pick" | "reset":
                return self._undo(kind)
            case "delete branch":
                return self._delete_a_branch()
            case "indices" | "optimize":
                return self.do(Step(kind, self._chance.choice(list(self._alive))))
            case "schema":
                return self.do(Step(kind, self._chance.choice(list(self._alive)), stamp=self._number))
            case "schema of all" | "cleanup" | "maintain" | "doctor":
                return self.do(Step(kind, "main", stamp=self._number))
            case "spark load":
                tag = f"{self._name}-{self._number}"
                return self.do(Step(kind, self._chance.choice(list(self._alive)), tag, LOADED))
            case _:
                return self._write(kind, self._chance.choice(list(self._alive)))

    def _merge(self) -> OmniError | None:
        """Merge as `MERGED` says, or a short-lived branch into its parent."""
        pairs = [(source, target) for target, sources in MERGED.items() for source in sources]
        try:
            short = [branch for branch in self._graph.branches() if branch.name.startswith(SHORT)]
        except OmniError as error:
            return self._unread(error)
        pairs += [(branch.name, branch.parent) for branch in short if branch.parent is not None]
        source, target = self._chance.choice(pairs)
        return self.do(Step("merge", target, parent=source))

    def _undo(self, kind: Kind) -> OmniError | None:
        """Undo, repeat or go back to one of the last commits, on the branch that is there for this."""
        other = UNDONE if kind == "revert" else self._chance.choice([*MERGED, "left"])
        try:
            commits = [commit for commit in self._graph.commits(other, limit=20) if commit.branch == other]
        except OmniError as error:
            return self._unread(error)
        if not commits:
            return None
        chosen = self._chance.choice(commits[:5])
        return self.do(Step(kind, UNDONE, of=chosen.graph_commit_id))

    def _unread(self, error: OmniError) -> OmniError:
        self._log.note("could not read", error=type(error).__name__)
        return error

    def _write(self, kind: Kind, branch: str) -> OmniError | None:
        known = [] if branch == UNDONE else self._alive[branch]
        if kind in ("update", "delete") and known:
            tag, size = self._chance.choice(known)
            return self.do(Step(kind, branch, tag, size, self._number))
        kind = "load" if kind in ("load", "delete") else "mutation"
        size = 2 if kind == "mutation" else self._chance.randint(1, 6)
        return self.do(Step(kind, branch, f"{self._name}-{self._number}", size))

    def _delete_a_branch(self) -> OmniError | None:
        """Delete a short-lived branch, one's own or that of another writer, which may be writing to it."""
        try:
            names = [branch.name for branch in self._graph.branches() if branch.name.startswith(SHORT)]
        except OmniError as error:
            return self._unread(error)
        return self.do(Step("delete branch", self._chance.choice(names))) if names else None

    def must(self, step: Step) -> None:
        """Do one thing that nothing stands in the way of."""
        if told := self.do(step):
            raise told

    def do(self, step: Step) -> OmniError | None:
        """Do one thing, and note before it what it is and after it what came of it; the error, if any."""
        self._log.note("begin", step)
        commit: str | None = None
        told: OmniError | None = None
        with self._weather() as struck:
            try:
                commit = perform(self._graph, step)
            except OmniError as error:
                told = error
        answer = "done" if told is None else ANSWERS[told.outcome]
        shown = None if told is None else type(told).__name__
        text = None if told is None else str(told)
        self._log.note(answer, step, commit=commit, error=shown, text=text, struck=struck)
        if isinstance(told, OutcomeUnknown):
            answer = self._ask(step, told.graph_commit_id)
        self._remember(step, answer)
        if isinstance(told, BranchNotFound):
            self._alive.pop(told.name, None)
        return told

    def _ask(self, step: Step, graph_commit_id: str) -> str:
        """Find out what became of a write in the way that the error names."""
        for _ in range(100):
            try:
                self._graph.refresh()
                self._graph.commit(graph_commit_id)
            except SnapshotNotFound:
                self._log.note("answered: not there", step)
                return "refused"
            except OmniError:
                time.sleep(0.05)
            else:
                self._log.note("answered: there", step, commit=graph_commit_id)
                return "done"
        return "unknown"

    def _remember(self, step: Step, answer: str) -> None:
        """Tags of which nobody knows what became of them are not touched again."""
        known = self._alive.setdefault(step.branch, []) if step.kind != "delete branch" else []
        match step.kind, answer:
            case "delete branch", "done" | "unknown":
                if step.branch not in BRANCHES:
                    self._alive.pop(step.branch, None)
            case "create branch", "refused" | "unknown":
                self._alive.pop(step.branch, None)
            case "mutation" | "load" | "spark load", "done":
                known.append((step.tag, step.size))
            case ("delete", "done") | ("update" | "delete", "unknown"):
                known.remove((step.tag, step.size))


def _arm(window: str, hits: int, action: Callable[[], None]) -> None:
    """Do something the so-manieth time a failpoint is reached, once."""
    left, before = [hits], failpoints._armed.get(window)

    def pass_by() -> None:
        left[0] -= 1
        if left[0] == 0:
            action()
        if before is not None:
            before()

    failpoints._armed[window] = pass_by


def _weather(fate: Fate, store: Store, log: Path) -> Weather:
    chance = random.Random(fate.seed + 1)
    if fate.trouble == "faulty disk":
        return faulty_disk(store, log.with_suffix(".journal"), chance)
    return size_limit(chance) if fate.trouble == "size limit" else calm


def live(store: Store, name: str, fate: Fate, log: Path) -> None:
    """In a process of its own: write until it is killed. What is not one of our errors ends it."""
    signal.alarm(LONGEST_LIFE)
    warnings.simplefilter("default")
    warnings.simplefilter("ignore", RuntimeWarning)
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    if fate.killed_at is not None:
        _arm(fate.killed_at, fate.killed_after, failpoints.die)
    if fate.stopped_at is not None:
        _arm(fate.stopped_at, fate.stopped_after, lambda: os.kill(os.getpid(), signal.SIGSTOP))
    place = impatient(store) if fate.trouble == "impatient" else store
    with short_leases():
        try:
            _write_on(place, name, fate, log)
        except BaseException:  # noqa: BLE001  whatever it is, the run reports it
            sys.stderr.write(f"writer {name}, {fate}:\n{traceback.format_exc()}\n")
            sys.stderr.flush()
            os._exit(RAISED)


def _write_on(store: Store, name: str, fate: Fate, log: Path) -> None:
    weather, notes = _weather(fate, store, log), Log(log)
    graph = _opened(store, name, weather, notes)
    if fate.role == "crowd":
        _write_together(graph, name, fate, log)
    writer = Writer(graph, name, fate.seed, notes, weather, fate.role)
    chance = random.Random(fate.seed + 2)
    for number in count(1):
        if number == fate.forks_at:
            fork_soon(graph, store, log.with_suffix(".fork"), chance.uniform(0.0, 0.1))
        told = writer.step()
        time.sleep(REST if fate.role == "keeper" else PAUSE if told is not None else 0.0)


def _write_together(graph: Graph, name: str, fate: Fate, log: Path) -> None:
    """Write in threads to one branch, each with a log of its own. What is not one of our errors ends it."""
    branch = random.Random(fate.seed).choice(list(BRANCHES))

    def write(number: int) -> None:
        own = f"{name}-t{number}"
        writer = Writer(graph, own, fate.seed + number, Log(log.with_stem(own)), role=fate.role, branches=[branch])
        while True:
            if writer.step() is not None:
                time.sleep(PAUSE)

    pool = ThreadPoolExecutor(CROWD)
    for ended in as_completed([pool.submit(write, number) for number in range(CROWD)]):
        ended.result()


def _opened(store: Store, name: str, weather: Weather, notes: Log) -> Graph:
    """The graph, as soon as it can be opened."""
    notes.note("started")
    while True:
        problem = None
        with weather() as struck:
            try:
                return omnigraph.open(store.uri, actor=name, storage_options=store.options)
            except OmniError as error:
                problem = error
        notes.note("did not open", error=type(problem).__name__, text=str(problem), struck=struck)
        time.sleep(0.05)
