"""A process that builds indexes and is killed by a failpoint."""

from __future__ import annotations

from tests.maintenance.looks import ensure
from tests.processes import see_killed
from tests.recovery.victims import connect
from tests.stores import Store


def kill_at(failpoint: str, store: Store, branch: str) -> None:
    """Build a branch's indexes in a process of its own and see it die at a failpoint."""
    see_killed(failpoint, _build, store, branch)


def _build(store: Store, branch: str) -> None:
    ensure(connect(store), branch, "victim")
