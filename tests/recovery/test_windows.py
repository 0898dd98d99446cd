"""Kill a write anywhere: it happened or it did not, the next write puts everything in order, and it says so."""

from __future__ import annotations

from itertools import product

import pytest
from tests.recovery.scenes import (
    BEGINNING,
    WRITES,
    Contents,
    as_read,
    assert_settled,
    contents,
    found_city,
    history,
    new_graph,
    sidecars,
    with_city,
)
from tests.recovery.victims import kill_at
from tests.stores import Store

from omnigraph import Graph, failpoints
from omnigraph.manifest.publisher import COMMIT_TAIL, BranchName, Change, CommitDraft
from omnigraph.recovery.heal import RECOVERY_ACTOR

NOTHING, ROLLED_BACK, ROLLED_FORWARD, DONE = "nothing", "RolledBack", "RolledForward", "done"

OUTCOMES = {
    "recovery.sidecar_list": NOTHING,
    "write.after_stage": NOTHING,
    "write.after_lock": NOTHING,
    "recovery.sidecar_write": NOTHING,
    "write.after_sidecar": ROLLED_BACK,
    "write.between_tables": ROLLED_BACK,
    "write.after_tables": ROLLED_FORWARD,
    "publish.before_stage": ROLLED_FORWARD,
    "publish.before_commit": ROLLED_FORWARD,
    "publish.after_commit": ROLLED_FORWARD,
    "write.after_publish": ROLLED_FORWARD,
    "recovery.sidecar_delete": ROLLED_FORWARD,
    "write.after_sidecar_delete": DONE,
}
"""Where a write is killed, and what becomes of it. `docs/dev/recovery.md` says the same."""

ALREADY_VISIBLE = {
    "publish.after_commit",
    "write.after_publish",
    "recovery.sidecar_delete",
    "write.after_sidecar_delete",
}
MOVED_NOTHING = {"write.after_sidecar"}

PLACES = [
    ("mutation", "main"),
    ("merge", "main"),
    ("overwrite", "main"),
    ("delete", "main"),
    ("mutation", "dev"),
    ("overwrite", "dev"),
]
"""Each write on main, and two as the first of a branch, which forks its tables."""

QUICK = {*product(list(OUTCOMES)[::2], [("merge", "main")]), *product(list(OUTCOMES)[1::2], [("mutation", "dev")])}
"""Those that every test run tries, each failpoint once; `make long` tries all."""

RECOVERY_OF = {
    "write.between_tables": [
        "recovery.sidecar_list",
        "recovery.after_restore",
        "publish.before_commit",
        "publish.after_commit",
        "recovery.after_publish",
        "recovery.record_audit",
        "recovery.after_audit",
        "recovery.sidecar_delete",
    ],
    "write.after_tables": [
        "publish.before_commit",
        "publish.after_commit",
        "recovery.after_publish",
        "recovery.record_audit",
        "recovery.after_audit",
        "recovery.sidecar_delete",
    ],
}
"""Where a write died, and where its recovery dies."""

HEALERS = ("open", "refresh", "next write")


def test_every_failpoint_has_a_case() -> None:
    elsewhere = {"publish.after_archive", "recovery.after_fence"}  # below, and in test_late.py
    elsewhere |= {"write.before_fold", "write.after_fold", "recovery.after_upkeep_fence"}  # test_folds.py
    elsewhere |= {"write.between_writes"}  # test_batches.py
    covered = {*OUTCOMES, *(point for points in RECOVERY_OF.values() for point in points), *elsewhere}
    assert covered >= failpoints.WRITE_NAMES
    assert {name for name in failpoints.NAMES if name.startswith("publish.")} <= covered


@pytest.mark.parametrize(
    ("failpoint", "place"),
    [pytest.param(*case, marks=[] if case in QUICK else [pytest.mark.long]) for case in product(OUTCOMES, PLACES)],
    ids=str,
)
def test_a_write(local_store: Store, failpoint: str, place: tuple[str, str]) -> None:
    name, branch = place
    graph = new_graph(local_store)
    kill_at(failpoint, "write", local_store, name, branch)
    seen = WRITES[name].effect(BEGINNING) if failpoint in ALREADY_VISIBLE else BEGINNING
    assert as_read(local_store, branch) == contents(graph, branch) == seen
    found_city(graph, branch)
    check_outcome(graph, name, branch, OUTCOMES[failpoint], moved=failpoint not in MOVED_NOTHING)
    check_again(graph, local_store, name, branch)


def check_outcome(graph: Graph, name: str, branch: str, outcome: str, *, moved: bool = True) -> None:
    """What the next write found, and what it left on record."""
    assert_settled(graph)
    write = WRITES[name]
    happened = outcome in (ROLLED_FORWARD, DONE)
    assert contents(graph, branch) == with_city(write.effect(BEGINNING) if happened else BEGINNING)
    recorded = [(r.recovery_kind, r.writer_kind, r.recovery_for_actor, r.branch) for r in graph.recoveries()]
    due = outcome in (ROLLED_FORWARD, ROLLED_BACK)
    assert recorded == ([(outcome, write.kind, "victim", branch)] if due else [])
    own = [(write.kind, "victim")] if happened else []
    undone = [("recovery", RECOVERY_ACTOR)] if outcome == ROLLED_BACK and moved else []
    assert history(graph, branch) == [("load", "ada"), *undone, *own]
    if due and (happened or moved):
        (recovery,) = graph.recoveries()
        assert recovery.graph_commit_id == graph.commits(branch)[1].graph_commit_id
        assert len(recovery.table_outcomes) == write.tables


def check_again(graph: Graph, store: Store, name: str, branch: str) -> None:
    """The write that was interrupted can be made again, and other branches know nothing of all this."""
    before, recoveries = contents(graph, branch), graph.recoveries()
    WRITES[name].run(graph, branch)
    assert contents(graph, branch) == as_read(store, branch) == WRITES[name].effect(before)
    assert graph.recoveries() == recoveries
    assert contents(graph, "dev" if branch == "main" else "main") == BEGINNING
    assert_settled(graph)


def test_a_write_that_moves_commits_to_the_archive(local_store: Store) -> None:
    graph = new_graph(local_store)
    manifest = graph._repository.manifest
    while len(manifest.latest(None).commits) < COMMIT_TAIL:
        manifest.publish(BranchName("main", None), Change(), {}, CommitDraft("load"))
    kill_at("publish.after_archive", "write", local_store, "delete", "main")
    assert as_read(local_store) == BEGINNING
    found_city(graph, "main")
    assert contents(graph) == with_city(WRITES["delete"].effect(BEGINNING))
    assert [r.recovery_kind for r in graph.recoveries()] == [ROLLED_FORWARD]
    ids = [commit.graph_commit_id for commit in graph.commits(limit=10**6)]
    assert len(ids) == len(set(ids)) == COMMIT_TAIL + 2
    check_again(graph, local_store, "delete", "main")


CRASHED_RECOVERIES = [
    (died, point, HEALERS[index % 3], ("merge", "main") if index % 2 else ("mutation", "dev"))
    for died, points in RECOVERY_OF.items()
    for index, point in enumerate(points)
]


@pytest.mark.long
@pytest.mark.parametrize(("died", "failpoint", "healer", "place"), CRASHED_RECOVERIES)
def test_a_recovery(local_store: Store, died: str, failpoint: str, healer: str, place: tuple[str, str]) -> None:
    name, branch = place
    graph = new_graph(local_store)
    fail_at(died, graph, name, branch)
    kill_at(failpoint, healer, local_store, name, branch)
    seen = as_read(local_store, branch)
    assert seen in (BEGINNING, WRITES[name].effect(BEGINNING))
    found_city(graph, branch)
    check_outcome(graph, name, branch, OUTCOMES[died])
    check_again(graph, local_store, name, branch)


class Interrupted(BaseException):
    """Stands for the end of a writer that this process survives."""


def fail_at(failpoint: str, graph: Graph, name: str, branch: str) -> None:
    """End a write at a failpoint. Its sidecar stays, as that of a killed process does."""
    interrupt_at(failpoint, graph, name, branch)
    assert len(sidecars(graph._repository)) == 1


def interrupt_at(failpoint: str, graph: Graph, name: str, branch: str) -> None:
    """End a write at a failpoint, beside whatever others have left."""

    def interrupt() -> None:
        raise Interrupted

    with failpoints.armed(failpoint, interrupt), pytest.raises(Interrupted):
        WRITES[name].run(graph, branch)


@pytest.mark.parametrize(
    ("failpoints_in_order", "outcome"),
    [
        (
            ["write.between_tables", "recovery.after_restore", "publish.before_commit", "recovery.after_publish"],
            ROLLED_BACK,
        ),
        (
            ["write.between_tables", "publish.after_commit", "recovery.record_audit", "recovery.sidecar_delete"],
            ROLLED_BACK,
        ),
        (
            ["write.after_tables", "publish.before_stage", "publish.after_commit", "recovery.after_audit"],
            ROLLED_FORWARD,
        ),
    ],
)
@pytest.mark.long
@pytest.mark.parametrize("branch", ["main", "dev"])
def test_one_crash_after_another(
    local_store: Store, failpoints_in_order: list[str], outcome: str, branch: str
) -> None:
    """Whoever comes to help is killed too, again and again; the end is the same."""
    graph = new_graph(local_store)
    first, *later = failpoints_in_order
    kill_at(first, "write", local_store, "delete", branch)
    for number, failpoint in enumerate(later):
        kill_at(failpoint, HEALERS[number], local_store, "delete", branch)
        assert as_read(local_store, branch) in possible(outcome)
    found_city(graph, branch)
    check_outcome(graph, "delete", branch, outcome)
    check_again(graph, local_store, "delete", branch)


def possible(outcome: str) -> list[Contents]:
    """What may be seen while an outcome is on its way."""
    return [BEGINNING] if outcome == ROLLED_BACK else [BEGINNING, WRITES["delete"].effect(BEGINNING)]


@pytest.mark.long
def test_writers_killed_one_after_another_on_two_branches(local_store: Store) -> None:
    """Each newcomer finishes what the one before it left on its branch, and dies itself."""
    graph = new_graph(local_store)
    for failpoint in ("write.after_tables", "write.between_tables", "write.after_sidecar", "write.after_publish"):
        for branch in ("main", "dev"):
            kill_at(failpoint, "write", local_store, "mutation", branch)
    graph.refresh()
    assert_settled(graph)
    twice = WRITES["mutation"].effect(WRITES["mutation"].effect(BEGINNING))
    assert contents(graph, "main") == contents(graph, "dev") == twice
    for branch in ("main", "dev"):
        kinds = [r.recovery_kind for r in graph.recoveries() if r.branch == branch]
        assert kinds == [ROLLED_FORWARD, ROLLED_BACK, ROLLED_BACK, ROLLED_FORWARD]
