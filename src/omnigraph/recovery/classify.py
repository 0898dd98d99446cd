"""How far an interrupted write came: the movement of each of its tables, and the decision that follows."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from omnigraph.manifest.state import ManifestState, TablePin
from omnigraph.recovery.sidecar import Sidecar, TableMove
from omnigraph.storage.tables import TableRef, Tables


class Movement(StrEnum):
    """How far a table has moved from the version at which the write found it."""

    NO_MOVEMENT = "NoMovement"
    ROLLED_PAST_EXPECTED = "RolledPastExpected"
    UPKEEP_MISSING = "UpkeepMissing"
    UPKEEP_FENCED = "UpkeepFenced"
    RESTORED = "Restored"
    FENCED = "Fenced"
    NOT_REACHED = "NotReached"
    UNEXPECTED_AT_P1 = "UnexpectedAtP1"
    UNEXPECTED_MULTISTEP = "UnexpectedMultistep"
    INVARIANT_VIOLATION = "InvariantViolation"


CHANGED: Final = frozenset({Movement.ROLLED_PAST_EXPECTED, Movement.UPKEEP_MISSING, Movement.UPKEEP_FENCED})
"""Where the change of a table is whole."""


class Decision(StrEnum):
    """What to do with an interrupted write."""

    ROLL_FORWARD = "roll_forward"
    ROLL_BACK = "roll_back"
    STOP = "stop"


def classify(move: TableMove, operation_id: str, pin: TablePin | None, tables: Tables) -> Movement:
    """Compare a table's newest version with the one the write found, and see by transaction ids who moved it.

    ``pin`` is the version that is published now. It is newer than the one the write found only if the writer lost
    its lock before it wrote its sidecar: versions published by other writers are no movement of this write.
    """
    start = ref_before(move)
    if not tables.exists(start):
        if _is_cleaned(start, pin):
            return Movement.NO_MOVEMENT
        return Movement.NOT_REACHED if _is_ahead(start, pin, tables) else Movement.INVARIANT_VIOLATION
    if not tables.moved(start):
        return Movement.NO_MOVEMENT
    made = versions_made(move, tables)
    is_whole = made == len(move.transaction_ids)
    head = at(start, start.version + made)
    if not tables.moved(head):
        return Movement.ROLLED_PAST_EXPECTED if is_whole else Movement.UPKEEP_MISSING
    after = at(start, head.version + 1)
    if is_fence(after, operation_id, tables):
        return Movement.RESTORED if made else Movement.FENCED
    if made and not is_whole and is_upkeep_fence(after, operation_id, tables):
        return Movement.UPKEEP_FENCED
    if not made and pin is not None and _is_published_by_others(move, pin, tables):
        return Movement.NO_MOVEMENT
    return Movement.UNEXPECTED_MULTISTEP if made or tables.moved(after) else Movement.UNEXPECTED_AT_P1


def versions_made(move: TableMove, tables: Tables) -> int:
    """How many of its versions of a table the write has made. The first has the change; the others only rearrange
    files, and the write is whole without them."""
    start = ref_before(move)
    for step, transaction in enumerate(move.transaction_ids):
        version = at(start, start.version + step + 1)
        if not tables.exists(version) or tables.transaction_id(version) != transaction:
            return step
    return len(move.transaction_ids)


def _is_cleaned(start: TableRef, pin: TablePin | None) -> bool:
    """Was a version cleaned away because others have published newer ones since? A table that this write had moved
    would have kept them from doing so."""
    return (
        pin is not None
        and (pin.location, pin.table_branch) == (start.location, start.branch)
        and (start.version < pin.table_version)
    )


def _is_ahead(start: TableRef, pin: TablePin | None, tables: Tables) -> bool:
    """Was the write to begin at a version that another one had to make first, and did not? Writes of one process
    that are committed in a row have sidecars before the first of them moves a table."""
    if pin is None or pin.location != start.location or pin.table_version >= start.version:
        return False
    return tables.exists(at(start, pin.table_version)) and not tables.moved(start)


def _is_published_by_others(move: TableMove, pin: TablePin, tables: Tables) -> bool:
    """Is the table at its published version, which is newer, and did this write never move it?"""
    start = ref_before(move)
    head = pin.ref
    if (head.location, head.branch) != (start.location, start.branch) or head.version <= start.version:
        return False
    return (
        not tables.moved(head) and tables.transaction_id(at(start, start.version + 1)) != move.transaction_ids[0]
    )


def is_fence(ref: TableRef, operation_id: str, tables: Tables) -> bool:
    """Is this the newest version of a table, and one by which recovery of the operation restored old content?"""
    return not tables.moved(ref) and tables.operation_of(ref) == restoring(operation_id)


def is_upkeep_fence(ref: TableRef, operation_id: str, tables: Tables) -> bool:
    """Is this the newest version of a table, and one that recovery put in the place of a version that was to
    rearrange files?"""
    return not tables.moved(ref) and tables.operation_of(ref) == keeping(operation_id)


def decide(movements: dict[str, Movement]) -> Decision:
    """Roll forward if the write changed all tables, roll back if some or none; stop if another writer moved one.

    Recovery puts a fence in the place of upkeep only when it rolls forward, so beside anything else that is not
    its work.
    """
    seen = set(movements.values())
    if seen & {Movement.INVARIANT_VIOLATION, Movement.UNEXPECTED_AT_P1, Movement.UNEXPECTED_MULTISTEP}:
        return Decision.STOP
    if seen and seen <= CHANGED:
        return Decision.ROLL_FORWARD
    return Decision.STOP if Movement.UPKEEP_FENCED in seen else Decision.ROLL_BACK


def ref_before(move: TableMove) -> TableRef:
    """The version at which the write found the table, in the tree that it writes to."""
    return TableRef(move.after.location, move.after.table_branch, move.before.table_version)


def at(ref: TableRef, version: int) -> TableRef:
    return TableRef(ref.location, ref.branch, version)


def restoring(operation_id: str) -> str:
    """The owner that recovery names in the transaction of a restore."""
    return f"restore:{operation_id}"


def keeping(operation_id: str) -> str:
    """The owner that recovery names in the transaction that keeps a change without its upkeep."""
    return f"keep:{operation_id}"


def movements_of(sidecar: Sidecar, state: ManifestState, tables: Tables) -> dict[str, Movement]:
    """The movement of every table of a write."""
    return {
        move.table_key: classify(move, sidecar.operation_id, state.tables.get(move.table_key), tables)
        for move in sidecar.moves
    }
