"""One command's work on a cluster: the lock, the ledger as it was, and the write of the ledger at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from omnigraph.cluster.configuration.resources import Desired
from omnigraph.cluster.state.ledger import Ledgered, State, read_ledger, write_ledger
from omnigraph.cluster.state.lock import HeldLock, locked
from omnigraph.cluster.state.places import ClusterPlace, place_at
from omnigraph.cluster.state.sidecars import Sidecar, end
from omnigraph.failpoints import hit


@dataclass(frozen=True, slots=True)
class Session:
    """The cluster in the hands of one command. ``ledgered`` is None if there is no ledger yet."""

    place: ClusterPlace
    desired: Desired
    lock: HeldLock
    ledgered: Ledgered | None

    @property
    def base(self) -> Ledgered:
        """The ledger, or an empty one."""
        return self.ledgered or Ledgered()

    def commit(self, state: State, done: Sequence[Sidecar]) -> tuple[Ledgered, bool]:
        """Write the ledger, unless nothing has changed, and remove sidecars that it knows the end of."""
        base, written = self.base, False
        now = base
        if self.ledgered is None or replace(state, revision=base.state.revision) != base.state:
            self.lock.verify()
            hit("cluster_apply.before_state_write")
            now, written = write_ledger(self.place, base, state), True
            hit("cluster_apply.after_state_write")
        for each in done:
            end(self.place, each)
        return now, written


@contextmanager
def session(desired: Desired, operation: str) -> Iterator[Session]:
    """Work on the cluster of a configuration, alone."""
    place = place_at(desired.config.root)
    place.require_trusted()
    with locked(place, operation, is_wanted=desired.config.is_locked) as lock:
        yield Session(place, desired, lock, read_ledger(place))
