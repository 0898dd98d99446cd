"""Writes that fold small files and die on the way: they happened or did not, and folding never decides which."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.faults.store import Rule, faulty_store
from tests.processes import see_killed
from tests.recovery.folds import FOLDING_WRITES, fold, worn_graph
from tests.recovery.scenes import PERSON, as_read, assert_settled, contents, sidecars
from tests.recovery.test_windows import Interrupted
from tests.sampling import sampled
from tests.stores import S3Server, Store

from omnigraph import Graph, failpoints
from omnigraph.errors import TableMoved
from omnigraph.recovery.classify import Movement, classify, keeping, ref_before, restoring
from omnigraph.recovery.sidecar import Sidecar, TableMove
from omnigraph.storage.stage.changes import Staged, stage_append
from omnigraph.storage.stage.folds import rewrite_fragments, stage_fold

BACK, FORWARD = "RolledBack", "RolledForward"

WINDOWS = [
    ("write.before_fold", "one table", FORWARD),
    ("write.before_fold", "two tables", BACK),
    ("write.after_fold", "one table", FORWARD),
    ("write.after_fold", "two tables", BACK),
    ("write.between_tables", "two tables", BACK),
    ("write.after_sidecar", "two tables", BACK),
    ("write.after_tables", "two tables", FORWARD),
    ("publish.before_commit", "two tables", FORWARD),
]
"""Where a write that folds is killed, and what recovery makes of it: without its last fold it is whole, without
the change of one of its tables it is undone."""


@pytest.mark.parametrize(
    ("failpoint", "name", "outcome", "branch"),
    sampled([(*window, branch) for window in WINDOWS for branch in ("main", "dev")], 4),
)
def test_killed_on_a_disk(local_store: Store, failpoint: str, name: str, outcome: str, branch: str) -> None:
    graph = worn_graph(local_store)
    before = contents(graph, branch)
    see_killed(failpoint, fold, local_store, name, branch)
    assert as_read(local_store, branch) == before
    check(graph, local_store, name, branch, outcome)


@pytest.mark.parametrize(("failpoint", "name", "outcome"), sampled(WINDOWS, 1))
def test_interrupted_on_an_object_store(s3_store: Store, failpoint: str, name: str, outcome: str) -> None:
    """There all tables of a write move at the same time, so a missing fold of one leaves the others changed."""
    graph = worn_graph(s3_store)
    interrupted(graph, failpoint, name)
    check(graph, s3_store, name, "main", FORWARD if failpoint.endswith("_fold") else outcome)


def interrupted(graph: Graph, failpoint: str, name: str) -> Sidecar:
    """End a write at a failpoint; the sidecar it leaves."""

    def interrupt() -> None:
        raise Interrupted

    with failpoints.armed(failpoint, interrupt), pytest.raises(Interrupted):
        FOLDING_WRITES[name].run(graph, "main")
    (sidecar,) = sidecars(graph._repository)
    return sidecar


def check(graph: Graph, store: Store, name: str, branch: str, outcome: str) -> None:
    """The write happened or not, history says exactly that, and it can be made again."""
    write, parent = FOLDING_WRITES[name], graph.commits(branch)[0]
    before = contents(graph.branch(branch), branch)
    (recovery,) = graph.refresh()
    assert recovery.recovery_kind == outcome
    assert_settled(graph)
    after = write.effect(before) if outcome == FORWARD else before
    assert contents(graph, branch) == as_read(store, branch) == after
    changed = {change.id for change in graph.diff(parent.graph_commit_id, graph.snapshot(branch))}
    assert changed == (changes_of(name) if outcome == FORWARD else set())
    write.run(graph, branch)
    assert contents(graph, branch) == as_read(store, branch) == write.effect(after)
    assert_settled(graph)
    assert len(graph.recoveries()) == 1


def changes_of(name: str) -> set[str]:
    """The ids that a write changes."""
    return {"Eve"} if name == "one table" else {"Ada", "Eve", "eve-paris"}


@pytest.mark.long
def test_a_fold_that_was_on_its_way_finds_its_place_taken(s3_store: Store) -> None:
    graph = worn_graph(s3_store)
    before = contents(graph)
    sidecar = interrupted(graph, "write.before_fold", "one table")
    late = late_fold(graph, sidecar.moves[0])
    (recovery,) = graph.refresh()
    assert recovery.table_outcomes == {PERSON: Movement.UPKEEP_MISSING.value}
    with pytest.raises(TableMoved):
        graph._repository.tables.commit_staged(late)
    assert contents(graph) == FOLDING_WRITES["one table"].effect(before)
    assert_settled(graph)


def late_fold(graph: Graph, move: TableMove) -> Staged:
    """What the dead writer had sent: the version after its change, by its own transaction."""
    start = ref_before(move)
    handle = graph._repository.tables.open(replace(start, version=start.version + 1))
    numbers = [fragment.fragment_id for fragment in handle.get_fragments()][1:3]
    rewritten = rewrite_fragments(handle, numbers, {}, 1_000, 1_000)
    change = stage_append(
        graph._repository.tables.open(start), start.location, start.branch, handle.to_table(), ""
    )
    fold = stage_fold(change, rewritten, "late")
    return replace(fold, transaction=replace(fold.transaction, uuid=move.transaction_ids[1]))


def test_where_nothing_was_fenced_off_the_next_writer_undoes_a_late_fold(local_store: Store) -> None:
    graph = worn_graph(local_store)
    before = contents(graph)
    sidecar = interrupted(graph, "write.before_fold", "one table")
    late = late_fold(graph, sidecar.moves[0])
    graph.refresh()
    graph._repository.tables.commit_staged(late)
    FOLDING_WRITES["two tables"].run(graph, "main")
    once = FOLDING_WRITES["one table"].effect(before)
    assert contents(graph) == FOLDING_WRITES["two tables"].effect(once)
    assert [recovery.recovery_kind for recovery in graph.recoveries()] == [FORWARD, "LateVersionUndone"]
    assert_settled(graph)


@pytest.mark.long
def test_recovery_that_dies_after_it_took_the_place_of_a_fold_is_repeated(s3_store: Store) -> None:
    graph = worn_graph(s3_store)
    before = contents(graph)
    interrupted(graph, "write.before_fold", "one table")

    def interrupt() -> None:
        raise Interrupted

    with failpoints.armed("recovery.after_upkeep_fence", interrupt), pytest.raises(Interrupted):
        graph.refresh()
    assert contents(graph) == before
    (recovery,) = graph.refresh()
    assert recovery.table_outcomes == {PERSON: Movement.UPKEEP_FENCED.value}
    assert contents(graph) == FOLDING_WRITES["one table"].effect(before)
    assert_settled(graph)


@pytest.mark.parametrize("action", ["lost", pytest.param("late", marks=pytest.mark.long)])
def test_a_fold_whose_answer_is_lost_does_not_fail_the_write(s3_server: S3Server, action: str) -> None:
    """The second version of the table is the fold's. The writer heals as after a dead one: its commit is there."""
    with faulty_store(s3_server) as faults:
        graph = worn_graph(faults.store)
        before = contents(graph)
        location = graph.snapshot().tables[PERSON].location
        faults.arm(Rule("PUT", f"{location}/_versions/*", 2, action))  # type: ignore[arg-type]
        FOLDING_WRITES["one table"].run(graph, "main")
        faults.disarm()
        faults.release()
        assert contents(graph) == FOLDING_WRITES["one table"].effect(before)
        assert [commit.kind for commit in graph.commits()[:1]] == ["load"]
        assert_settled(graph)
        FOLDING_WRITES["two tables"].run(graph, "main")
        assert_settled(graph)


@pytest.mark.parametrize("failpoint", ["write.before_fold", "write.after_fold"])
def test_a_fold_that_fails_does_not_fail_the_write(local_store: Store, failpoint: str) -> None:
    graph = worn_graph(local_store)
    before = contents(graph)

    def fail() -> None:
        raise OSError("no space left on device")

    with failpoints.armed(failpoint, fail):
        FOLDING_WRITES["one table"].run(graph, "main")
    assert contents(graph) == FOLDING_WRITES["one table"].effect(before)
    assert_settled(graph)


def kept(graph: Graph, sidecar: Sidecar, move: TableMove) -> None:
    """What a recovery that died has put in the place of a fold."""
    start = ref_before(move)
    changed = replace(start, version=start.version + 1)
    graph._repository.tables.restore(changed, changed.version, keeping(sidecar.operation_id))


def undone(graph: Graph, sidecar: Sidecar, move: TableMove) -> None:
    """What a recovery that died has left of a change whose fold is missing."""
    start = ref_before(move)
    graph._repository.tables.restore(start, start.version + 1, restoring(sidecar.operation_id))


def test_where_a_table_stands(local_store: Store) -> None:
    graph = worn_graph(local_store)
    tables = graph._repository.tables
    sidecar = interrupted(graph, "write.before_fold", "one table")
    (move,) = sidecar.moves
    assert len(move.transaction_ids) == 2
    pin = graph.snapshot().tables[PERSON]
    assert classify(move, sidecar.operation_id, pin, tables) is Movement.UPKEEP_MISSING
    kept(graph, sidecar, move)
    assert classify(move, sidecar.operation_id, pin, tables) is Movement.UPKEEP_FENCED


def test_where_a_table_stands_after_it_was_brought_back(local_store: Store) -> None:
    graph = worn_graph(local_store)
    sidecar = interrupted(graph, "write.before_fold", "one table")
    (move,) = sidecar.moves
    undone(graph, sidecar, move)
    pin = graph.snapshot().tables[PERSON]
    assert classify(move, sidecar.operation_id, pin, graph._repository.tables) is Movement.RESTORED
