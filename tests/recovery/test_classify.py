"""Where a table of an interrupted write stands: each class made for real, and what is decided from them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from pathlib import Path

import lance
import pytest
from tests.recovery.scenes import BEGINNING, PERSON, as_read, contents, new_graph, sidecars
from tests.recovery.test_windows import fail_at
from tests.stores import Store

from omnigraph import Graph
from omnigraph.errors import RecoveryBlocked
from omnigraph.recovery.classify import CHANGED, Decision, Movement, classify, decide, ref_before, restoring
from omnigraph.recovery.sidecar import Sidecar, TableMove
from omnigraph.storage import layout

WRITTEN, MOVED = "write.after_sidecar", "write.after_tables"


def dead_write(graph: Graph, died: str, branch: str = "main") -> tuple[Sidecar, TableMove]:
    """A write that died, and what it meant to do with the people."""
    fail_at(died, graph, "merge", branch)
    (sidecar,) = sidecars(graph._repository)
    (move,) = [move for move in sidecar.moves if move.table_key == PERSON]
    return sidecar, move


def uri(graph: Graph, move: TableMove) -> str:
    return graph._repository.tables.uri(move.after.location, move.after.table_branch)


def nobody(graph: Graph, sidecar: Sidecar, move: TableMove) -> None:
    """Leave the table as it is."""


def stranger(graph: Graph, sidecar: Sidecar, move: TableMove) -> None:
    """Somebody who knows nothing of graphs adds rows to a table."""
    rows = lance.dataset(uri(graph, move)).to_table().slice(0, 1)
    lance.write_dataset(rows, uri(graph, move), mode="append")


def two_strangers(graph: Graph, sidecar: Sidecar, move: TableMove) -> None:
    stranger(graph, sidecar, move)
    stranger(graph, sidecar, move)


def strange_restore(graph: Graph, sidecar: Sidecar, move: TableMove) -> None:
    """A restore, but not one of this recovery."""
    lance.dataset(uri(graph, move), version=move.before.table_version).restore()  # type: ignore[no-untyped-call]


def own_restore(graph: Graph, sidecar: Sidecar, move: TableMove) -> None:
    """What a recovery that died has left."""
    start = ref_before(move)
    graph._repository.tables.restore(start, move.after.table_version, restoring(sidecar.operation_id))


def fence(graph: Graph, sidecar: Sidecar, move: TableMove) -> None:
    """What a recovery that died has put in the place that a late request would want."""
    start = ref_before(move)
    graph._repository.tables.restore(start, start.version, restoring(sidecar.operation_id))


def own_restore_and_stranger(graph: Graph, sidecar: Sidecar, move: TableMove) -> None:
    own_restore(graph, sidecar, move)
    stranger(graph, sidecar, move)


def loss(graph: Graph, sidecar: Sidecar, move: TableMove) -> None:
    """The version the manifest names disappears, as when somebody puts an old copy of a table in its place."""
    ref = ref_before(move)
    Path(graph.address, layout.version_file(ref.location, ref.branch, ref.version)).unlink()


Act = Callable[[Graph, Sidecar, TableMove], None]

CASES: list[tuple[str, Act, Movement]] = [
    (WRITTEN, nobody, Movement.NO_MOVEMENT),
    (MOVED, nobody, Movement.ROLLED_PAST_EXPECTED),
    (MOVED, own_restore, Movement.RESTORED),
    (WRITTEN, fence, Movement.FENCED),
    (WRITTEN, stranger, Movement.UNEXPECTED_AT_P1),
    (WRITTEN, two_strangers, Movement.UNEXPECTED_MULTISTEP),
    (MOVED, stranger, Movement.UNEXPECTED_MULTISTEP),
    (MOVED, strange_restore, Movement.UNEXPECTED_MULTISTEP),
    (MOVED, own_restore_and_stranger, Movement.UNEXPECTED_MULTISTEP),
    (WRITTEN, loss, Movement.INVARIANT_VIOLATION),
]


@pytest.mark.parametrize(("died", "act", "movement"), CASES)
@pytest.mark.parametrize("branch", ["main", "dev"])
def test_a_table(local_store: Store, died: str, act: Act, movement: Movement, branch: str) -> None:
    graph = new_graph(local_store)
    sidecar, move = dead_write(graph, died, branch)
    act(graph, sidecar, move)
    pin = graph.snapshot(branch).tables[PERSON]
    assert classify(move, sidecar.operation_id, pin, local_store.tables()) is movement


def test_every_class_has_a_case() -> None:
    folded = {Movement.UPKEEP_MISSING, Movement.UPKEEP_FENCED}  # in test_folds.py
    in_a_row = {Movement.NOT_REACHED}  # in test_batches.py
    assert {movement for _, _, movement in CASES} | folded | in_a_row == set(Movement)


@pytest.mark.parametrize(
    ("died", "act"), [(died, act) for died, act, m in CASES if m.value.startswith("Unexpected")]
)
def test_what_somebody_else_did_is_never_undone(local_store: Store, died: str, act: Act) -> None:
    """Recovery stops, names the table and keeps the sidecar; what readers see stays as it was."""
    graph = new_graph(local_store)
    sidecar, move = dead_write(graph, died)
    act(graph, sidecar, move)
    version = lance.dataset(uri(graph, move)).version
    with pytest.raises(RecoveryBlocked, match=PERSON):
        graph.refresh()
    assert sidecars(graph._repository) == [sidecar]
    assert lance.dataset(uri(graph, move)).version == version
    assert as_read(local_store) == contents(graph) == BEGINNING
    assert graph.recoveries() == []


STOPS = {Movement.UNEXPECTED_AT_P1, Movement.UNEXPECTED_MULTISTEP, Movement.INVARIANT_VIOLATION}


@pytest.mark.parametrize("pair", [*combinations_with_replacement(Movement, 2)], ids="+".join)
def test_what_is_decided_for_two_tables(pair: tuple[Movement, Movement]) -> None:
    """Forward if all are there, stop if somebody else was, back otherwise. What only recovery that rolls forward
    leaves does not go together with anything else."""
    decided = decide(dict(zip(("a", "b"), pair, strict=True)))
    if STOPS & set(pair):
        assert decided is Decision.STOP
    elif set(pair) <= CHANGED:
        assert decided is Decision.ROLL_FORWARD
    elif Movement.UPKEEP_FENCED in pair:
        assert decided is Decision.STOP
    else:
        assert decided is Decision.ROLL_BACK
