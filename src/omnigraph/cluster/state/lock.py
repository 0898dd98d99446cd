"""The lock of a cluster: one object, which stays until its holder, or an operator who names its id, removes it."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.cluster.codes import refused
from omnigraph.cluster.state.places import FOLDER, LOCK, ClusterPlace
from omnigraph.errors import ObjectDamaged
from omnigraph.manifest.ids import fresh_id
from omnigraph.storage.control.sealed import number, seal, text, unseal

_VERSION: Final = 1
PATH: Final = f"{FOLDER}/{LOCK}"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the lock. ``token`` names the object."""

    lock_id: str
    operation: str
    created_at: str
    pid: int
    token: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "lock_id": self.lock_id,
            "operation": self.operation,
            "created_at": self.created_at,
            "pid": self.pid,
        }


@dataclass(frozen=True, slots=True)
class HeldLock:
    """The lock in the hands of this process; without an id the cluster is used without a lock."""

    place: ClusterPlace
    lock_id: str | None

    def verify(self) -> None:
        """Raise ClusterRefused if the lock was taken away."""
        if self.lock_id is None:
            return
        present = read_lock(self.place)
        if present is None or present.lock_id != self.lock_id:
            said = "somebody removed the lock while this process worked; it stops. Run it again"
            raise refused(self.place.root, "state_lock_lost", PATH, said)


@contextmanager
def locked(place: ClusterPlace, operation: str, *, is_wanted: bool) -> Iterator[HeldLock]:
    """Hold the lock for a while, unless the configuration wants none; ClusterRefused if another command does."""
    if not is_wanted:
        yield HeldLock(place, None)
        return
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    mine = Holder(fresh_id(), operation, now, os.getpid())
    token = place.objects.put_if_absent(LOCK, seal(mine.as_json()))
    if token is None:
        raise refused(place.root, "state_lock_held", PATH, _held(read_lock(place)))
    try:
        yield HeldLock(place, mine.lock_id)
    finally:
        place.objects.retire_if_match(LOCK, token)


def read_lock(place: ClusterPlace) -> Holder | None:
    """Who holds the lock; None if no command does."""
    found = place.objects.get(LOCK)
    if found is None:
        return None
    try:
        stored = unseal(PATH, found.content)
        lock_id, operation, since = (text(stored[name]) for name in ("lock_id", "operation", "created_at"))
        return Holder(lock_id, operation, since, number(stored["pid"]), found.token)
    except (ObjectDamaged, ValueError, KeyError, TypeError):
        return Holder("damaged", "unknown", "unknown", 0, found.token)


def force_unlock(place: ClusterPlace, lock_id: str) -> Holder:
    """Remove the lock of exactly that id; ClusterRefused if it is another one or none."""
    present = read_lock(place)
    if present is None:
        raise refused(place.root, "lock_not_held", PATH, "nobody holds the lock; nothing was done")
    if present.lock_id != lock_id:
        raise refused(place.root, "lock_id_mismatch", PATH, f"the lock is {present.lock_id}; nothing was done")
    if not place.objects.retire_if_match(LOCK, present.token):
        raise refused(place.root, "lock_id_mismatch", PATH, "the lock changed hands meanwhile; nothing was done")
    return present


def _held(holder: Holder | None) -> str:
    if holder is None:
        return "another process held the lock a moment ago; run it again"
    return (
        f"`cluster {holder.operation}` holds it since {holder.created_at} (process {holder.pid}); if that process "
        f"is gone, run `omnigraph cluster force-unlock {holder.lock_id}`"
    )
