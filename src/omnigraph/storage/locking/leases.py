"""Locks on an object store: lease objects taken by conditional put and renewed while held.

No clocks are compared. A lease is alive as long as it changes: a waiter watches its token, and takes
it over when the token has stood still for longer than the lease's time to live. The holder measures the time since
its last renewal by its own clock: up to half of the time to live no other process can have taken the lease, and
after that it renews the lease, on condition, before it does anything durable. Each taking raises the fence.

A lock may be a part of another one, as the commit lock of a branch is of the lock of the graph. The holder of a
part has one lease, its own; it looks at the whole's after it has taken that. The holder of the whole looks at the
leases of the parts after it has taken its own. Each leaves a trace before it looks, so one of them sees the other.
"""

from __future__ import annotations

import os
import re
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from omnigraph.errors import LockLost, ObjectDamaged, OmniError, StorageError
from omnigraph.storage import layout
from omnigraph.storage.control.contents import Versioned
from omnigraph.storage.control.sealed import seal, unseal
from omnigraph.storage.locking.holders import HeldLock
from omnigraph.storage.locking.patience import TIME_TO_LIVE as TIME_TO_LIVE
from omnigraph.storage.locking.patience import Patience, process_name
from omnigraph.storage.objects import ObjectStore

_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.1
_REPEATS: Final = 3
_FREE: Final = b"free after %020d\n"
_FREE_FORM: Final = re.compile(rb"free after (\d{20})\n")
_FREE_SIZE: Final = len(_FREE % 0)
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_UNKNOWN: Final = "a holder whose lease cannot be read"


class Lease:
    """A held lease, renewed by a thread until it is released."""

    def __init__(
        self, objects: ObjectStore, key: str, shown: str, content: dict[str, Any], token: str, asked_at: float
    ) -> None:
        self._objects = objects
        self._key = key
        self._shown = shown
        self._content = content
        self._token = token
        self._process = os.getpid()
        self._mutex = threading.Lock()
        self._lost = False
        self._stop = threading.Event()
        self._renewed_at = asked_at
        self._renewals = threading.Thread(target=self._keep, name=f"lease {shown}", daemon=True)
        self._renewals.start()

    def verify(self) -> None:
        """Raise LockLost unless this holder can still rely on its lease.

        Another process takes a lease only after it has seen it stand still for its whole time to live. So the
        store is asked only if the last renewal was sent longer ago than half of that.
        """
        with self._mutex:
            is_old = now() - self._renewed_at > self._content["ttl"] / 2
        if is_old:
            self._renew()
        with self._mutex:
            if self._lost:
                raise LockLost(self._shown)

    @property
    def is_mine(self) -> bool:
        """Is this the process that took the lease? A child that was forked since must let it alone."""
        return os.getpid() == self._process

    def release(self) -> Versioned | None:
        """Give the lease up, unless another holder has it: the object as it is afterwards, if that is known.

        If the store fails, the lease runs out by itself.
        """
        if not self.is_mine:
            return None
        self._stop.set()
        self._renewals.join()
        free = _free(self._content["fence"])
        with self._mutex, suppress(StorageError):
            token = None if self._lost else self._replaced(free)
            return None if token is None else Versioned(free, token)
        return None

    def _keep(self) -> None:
        while not self._stop.wait(self._content["ttl"] / 4):
            try:
                self._renew()
            except OmniError:
                continue

    def _renew(self) -> None:
        with self._mutex:
            if self._lost:
                return
            asked_at = now()
            content = {**self._content, "beat": self._content["beat"] + 1}
            token = self._replaced(seal(content))
            if token is None:
                self._lost = True
            else:
                self._content, self._token, self._renewed_at = content, token, asked_at

    def _replaced(self, content: bytes) -> str | None:
        """Write the lease anew while it is this holder's; its token, or None if another holder has it.

        Where an answer was lost on the way the token is not the one we know, but the lease is still ours.
        """
        token = self._objects.put_if_match(self._key, content, self._token)
        for _ in range(_REPEATS):
            if token is not None:
                break
            present = self._objects.get(self._key)
            if present is not None and present.content == content:
                return present.token
            if present is None or not self._is_mine(present.content):
                break
            token = self._objects.put_if_match(self._key, content, present.token)
        return token

    def _is_mine(self, content: bytes) -> bool:
        found = _decode(self._key, content)
        return bool(
            found.get("holder") == self._content["holder"] and found.get("fence") == self._content["fence"]
        )


class LeaseLocks:
    """Lease locks of one graph."""

    def __init__(self, objects: ObjectStore, ttl: float = TIME_TO_LIVE) -> None:
        self._objects = objects
        self._ttl = ttl
        self._released: dict[str, Versioned] = {}

    @contextmanager
    def alone(self, name: str, shown: str, patience: Patience) -> Iterator[Lease]:
        """Hold a lock that is no part of another."""
        lease = self._take(_key(name), shown, patience)
        try:
            yield lease
        finally:
            self._release(_key(name), lease)

    @contextmanager
    def whole(self, name: str, parts: str, shown: str, patience: Patience) -> Iterator[Lease]:
        """Hold a lock with all its parts: take its lease, then wait until no living process holds a part."""
        with self.alone(name, shown, patience) as lease:
            self._wait_for_parts(parts, shown, patience)
            yield lease

    @contextmanager
    def part(self, whole: str, name: str, shown: str, patience: Patience) -> Iterator[tuple[Lease, ...]]:
        """Hold a part of a lock: take its own lease, then make sure that the whole is not held."""
        while True:
            with self.alone(name, shown, patience) as lease:
                if self._holder(_key(whole)) is None:
                    yield (lease,)
                    return
            self._wait_until_free(_key(whole), whole, patience)

    def _release(self, key: str, lease: Lease) -> None:
        """Give a lease up, and remember the free one: the next time it is taken without looking."""
        free = lease.release()
        if free is not None:
            self._released[key] = free

    def discard(self, name: str) -> None:
        """Remove a lock's object."""
        self._released.pop(_key(name), None)
        with suppress(StorageError):
            self._objects.delete(_key(name))

    def is_held(self, name: str) -> bool:
        """Is the lease renewed? That takes as long as the holder needs for its next beat, or is dead without."""
        watch, seen = _Watch(self._ttl), None
        while (present := self._objects.get(_key(name))) is not None:
            found = _decode(_key(name), present.content)
            if found.get("holder") is None or watch.is_still(present.token, found):
                return False
            if seen not in (None, present.token):
                return True
            seen = present.token
            time.sleep(_FIRST_PAUSE * 4)
        return False

    def seems_held(self, name: str) -> bool:
        """Does the lease have a holder?"""
        return self._holder(_key(name)) is not None

    def holders(self, *, watch: bool) -> list[HeldLock]:
        """The leases that have a holder. A holder that does not renew its lease while
        that lives is dead."""
        keys = sorted(self._taken(layout.LOCKS))
        watches = {key: _Watch(self._ttl) for key in keys}
        first: dict[str, str] = {}
        known: dict[str, HeldLock] = {}
        while waiting := [key for key in watches if key not in known]:
            for key in waiting:
                present = self._objects.get(key)
                found = {} if present is None else _decode(key, present.content)
                if present is None or found.get("holder") is None:
                    del watches[key]
                    continue
                holder = None if found["holder"] == _UNKNOWN else str(found["holder"])
                held = HeldLock(_name(key), key, holder)
                if not watch:
                    known[key] = held
                elif first.setdefault(key, present.token) != present.token:
                    known[key] = replace(held, is_alive=True)
                elif watches[key].is_still(present.token, found):
                    known[key] = replace(held, is_alive=False)
            time.sleep(_FIRST_PAUSE * 4 if len(known) < len(watches) else 0)
        return [known[key] for key in sorted(known)]

    @property
    def silence(self) -> float:
        """A holder that lives renews its lease within its time to live."""
        return 1.5 * self._ttl

    def _take(self, key: str, shown: str, patience: Patience) -> Lease:
        holder = f"{process_name(os.getpid())}:{uuid.uuid4().hex[:8]}"
        watch = _Watch(self._ttl)
        pause = _FIRST_PAUSE
        present = self._released.pop(key, None) or self._objects.get(key)
        while True:
            found = {} if present is None else _decode(key, present.content)
            content = {"holder": holder, "fence": found.get("fence", 0) + 1, "beat": 0, "ttl": self._ttl}
            if present is None or found.get("holder") is None or watch.is_still(present.token, found):
                asked_at = now()
                before, present = present, self._placed(key, seal(content), present)
                if present is not None and present.content == seal(content):
                    return Lease(self._objects, key, shown, content, present.token, asked_at)
                if before is None or present is None or before.token != present.token:
                    continue
            if not patience.left:
                raise patience.timeout(shown, found.get("holder"))
            patience.pause(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
            present = self._objects.get(key)

    def _placed(self, key: str, content: bytes, before: Versioned | None) -> Versioned | None:
        """Put a lease where another one or none was. What is there afterwards: it, also if only the answer was
        lost, or what another process has put there."""
        failure: StorageError | None = None
        try:
            if before is None:
                token = self._objects.put_if_absent(key, content)
            else:
                token = self._objects.put_if_match(key, content, before.token)
        except StorageError as error:
            token, failure = None, error
        if token is not None:
            return Versioned(content, token)
        present = self._objects.get(key)
        if failure is not None and (present is None or present.content != content):
            raise failure
        return present

    def _holder(self, key: str) -> str | None:
        present = self._objects.get(key)
        return None if present is None else _decode(key, present.content).get("holder")

    def _wait_until_free(self, key: str, shown: str, patience: Patience) -> None:
        watch = _Watch(self._ttl)
        while present := self._objects.get(key):
            found = _decode(key, present.content)
            if found.get("holder") is None:
                return
            if watch.is_still(present.token, found):
                self._objects.put_if_match(key, _freed(found), present.token)
            elif not patience.left:
                raise patience.timeout(shown, found.get("holder"))
            else:
                patience.pause(_FIRST_PAUSE * 4)

    def _wait_for_parts(self, parts: str, shown: str, patience: Patience) -> None:
        watches: dict[str, _Watch] = {}
        while True:
            is_held = False
            for key in self._taken(f"{layout.LOCKS}/{parts}"):
                present = self._objects.get(key)
                found = {} if present is None else _decode(key, present.content)
                if present is None or found.get("holder") is None:
                    continue
                if watches.setdefault(key, _Watch(self._ttl)).is_still(present.token, found):
                    self._objects.put_if_match(key, _freed(found), present.token)
                is_held = True
            if not is_held:
                return
            if not patience.left:
                raise patience.timeout(shown, "writers that share it")
            patience.pause(_FIRST_PAUSE * 2)

    def _taken(self, prefix: str) -> list[str]:
        """The leases whose keys begin alike and that may have a holder. The size of a free one gives it away."""
        taken = [entry.key for entry in self._objects.entries(layout.LOCKS) if entry.size != _FREE_SIZE]
        return [key for key in taken if key.startswith(prefix) and key.endswith(".json")]


class _Watch:
    """How long a lease has stood still, by this process's own clock."""

    def __init__(self, ttl: float) -> None:
        self._ttl = ttl
        self._token: str | None = None
        self._since = 0.0

    def is_still(self, token: str, found: dict[str, Any]) -> bool:
        seen_at = now()
        if token != self._token:
            self._token, self._since = token, seen_at
            return False
        return seen_at - self._since > float(found.get("ttl", self._ttl))


def _key(name: str) -> str:
    return f"{layout.LOCKS}/{name}.json"


def _name(key: str) -> str:
    """The name of the lock that a lease is of."""
    return key.removeprefix(f"{layout.LOCKS}/").removesuffix(".json")


def _free(fence: int) -> bytes:
    """A lease without a holder. All of them have the same size, by which a listing tells them from others."""
    return _FREE % fence


def _freed(found: dict[str, Any]) -> bytes:
    """A lease that was taken away from its holder."""
    return _free(found.get("fence", 0) + 1)


def now() -> float:
    """The seconds that have passed since some moment, those included in which the machine was suspended."""
    return time.clock_gettime(_CLOCK)


def _decode(key: str, content: bytes) -> dict[str, Any]:
    """The fields of a lease. A damaged one may be a living holder's, and is left alone until it runs out."""
    free = _FREE_FORM.fullmatch(content)
    if free is not None:
        return {"holder": None, "fence": int(free[1])}
    try:
        found = unseal(key, content)
    except ObjectDamaged:
        return {"holder": _UNKNOWN}
    holder, fence, ttl = found.get("holder"), found.get("fence", 0), found.get("ttl", 0)
    if not (isinstance(holder, str | None) and isinstance(fence, int) and isinstance(ttl, int | float)):
        return {"holder": _UNKNOWN}
    return found
