"""Locks on an object store: lease objects taken by conditional put and renewed while held.

No clocks are compared. A lease is alive as long as it changes: a waiter watches its token, and takes
it over when the token has stood still for longer than the lease's time to live. Each taking raises the fence, and
a holder that was away checks the fence before it does anything durable.
"""

from __future__ import annotations

import os
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
from omnigraph.storage.locking.patience import Patience, process_name
from omnigraph.storage.objects import ObjectStore

TIME_TO_LIVE: Final = 10.0
_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.25
_REPEATS: Final = 3
_UNKNOWN: Final = "a holder whose lease cannot be read"


class Lease:
    """A held lease, renewed by a thread until it is released."""

    def __init__(self, objects: ObjectStore, key: str, shown: str, content: dict[str, Any], token: str) -> None:
        self._objects = objects
        self._key = key
        self._shown = shown
        self._content = content
        self._token = token
        self._process = os.getpid()
        self._mutex = threading.Lock()
        self._lost = False
        self._stop = threading.Event()
        self._renewed_at = time.monotonic()
        self._renewals = threading.Thread(target=self._keep, name=f"lease {shown}", daemon=True)
        self._renewals.start()

    def verify(self) -> None:
        """Raise LockLost unless the store still names this holder."""
        with self._mutex:
            stale = time.monotonic() - self._renewed_at > self._content["ttl"] / 2
        if stale:
            self._renew()
        present = self._objects.get(self._key)
        with self._mutex:
            if self._lost or present is None or not self._is_mine(present.content):
                self._lost = True
                raise LockLost(self._shown)

    @property
    def is_mine(self) -> bool:
        """Is this the process that took the lease? A child that was forked since must let it alone."""
        return os.getpid() == self._process

    def release(self) -> None:
        """Give the lease up, unless another holder has it. If the store fails, the lease runs out by itself."""
        if not self.is_mine:
            return
        self._stop.set()
        self._renewals.join()
        with self._mutex, suppress(StorageError):
            if not self._lost:
                self._replaced({**self._content, "holder": None})

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
            asked_at = time.monotonic()
            content = {**self._content, "beat": self._content["beat"] + 1}
            token = self._replaced(content)
            if token is None:
                self._lost = True
            else:
                self._content, self._token, self._renewed_at = content, token, asked_at

    def _replaced(self, content: dict[str, Any]) -> str | None:
        """Write the lease anew while it is this holder's; its token, or None if another holder has it.

        Where an answer was lost on the way the token is not the one we know, but the lease is still ours.
        """
        token = self._objects.put_if_match(self._key, seal(content), self._token)
        for _ in range(_REPEATS):
            if token is not None:
                break
            present = self._objects.get(self._key)
            if present is None or not self._is_mine(present.content):
                break
            if _decode(self._key, present.content) == content:
                return present.token
            token = self._objects.put_if_match(self._key, seal(content), present.token)
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

    @contextmanager
    def exclusive(self, name: str, shown: str, patience: Patience) -> Iterator[Lease]:
        """Hold a lock alone: take its lease, then wait until the sharers are gone or dead."""
        lease = self._take(_key(name), shown, patience)
        try:
            self._wait_for_sharers(name, shown, patience)
            yield lease
        finally:
            lease.release()

    @contextmanager
    def shared(self, name: str, shown: str, patience: Patience) -> Iterator[Lease]:
        """Hold a lock with others: announce oneself, then make sure that it is not held alone."""
        while True:
            with self._announced(name, shown, patience) as lease:
                if self._holder(_key(name)) is None:
                    yield lease
                    return
            self._wait_until_free(_key(name), shown, patience)

    def discard(self, name: str) -> None:
        """Remove a lock's object."""
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

    def holders(self, *, watch: bool) -> list[HeldLock]:
        """The leases that have a holder. A holder that does not renew its lease while
        that lives is dead."""
        keys = [key for key in self._objects.list(layout.LOCKS) if key.endswith(".json")]
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

    @contextmanager
    def _announced(self, name: str, shown: str, patience: Patience) -> Iterator[Lease]:
        key = f"{_shared(name)}/{uuid.uuid4().hex}.json"
        lease = self._take(key, shown, patience)
        try:
            yield lease
        finally:
            lease.release()
            if lease.is_mine:
                with suppress(StorageError):
                    self._objects.delete(key)

    def _take(self, key: str, shown: str, patience: Patience) -> Lease:
        holder = f"{process_name(os.getpid())}:{uuid.uuid4().hex[:8]}"
        watch = _Watch(self._ttl)
        pause = _FIRST_PAUSE
        while True:
            present = self._objects.get(key)
            found = {} if present is None else _decode(key, present.content)
            content = {"holder": holder, "fence": found.get("fence", 0) + 1, "beat": 0, "ttl": self._ttl}
            token = None
            if present is None or found.get("holder") is None or watch.is_still(present.token, found):
                token = self._placed(key, content, present)
            if token is not None:
                return Lease(self._objects, key, shown, content, token)
            if not patience.left:
                raise patience.timeout(shown, found.get("holder"))
            patience.pause(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    def _placed(self, key: str, content: dict[str, Any], before: Versioned | None) -> str | None:
        """Put a lease where another one or none was; its token, also if only the answer was lost."""
        failure: StorageError | None = None
        try:
            if before is None:
                token = self._objects.put_if_absent(key, seal(content))
            else:
                token = self._objects.put_if_match(key, seal(content), before.token)
        except StorageError as error:
            token, failure = None, error
        if token is None:
            present = self._objects.get(key)
            if present is not None and _decode(key, present.content) == content:
                return present.token
            if failure is not None:
                raise failure
        return token

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

    def _wait_for_sharers(self, name: str, shown: str, patience: Patience) -> None:
        watches: dict[str, _Watch] = {}
        while keys := self._objects.list(_shared(name)):
            for key in keys:
                present = self._objects.get(key)
                if present is None:
                    continue
                found = _decode(key, present.content)
                still = watches.setdefault(key, _Watch(self._ttl)).is_still(present.token, found)
                if found.get("holder") is None or still:
                    self._evict(key, found, present.token)
            if not patience.left:
                raise patience.timeout(shown, "writers that share it")
            patience.pause(_FIRST_PAUSE * 2)

    def _evict(self, key: str, found: dict[str, Any], token: str) -> None:
        """Take a dead sharer's lease away from it, then remove the object."""
        if self._objects.put_if_match(key, _freed(found), token) is not None:
            self._objects.delete(key)


class _Watch:
    """How long a lease has stood still, by this process's own clock."""

    def __init__(self, ttl: float) -> None:
        self._ttl = ttl
        self._token: str | None = None
        self._since = 0.0

    def is_still(self, token: str, found: dict[str, Any]) -> bool:
        now = time.monotonic()
        if token != self._token:
            self._token, self._since = token, now
            return False
        return now - self._since > float(found.get("ttl", self._ttl))


def _key(name: str) -> str:
    return f"{layout.LOCKS}/{name}.json"


def _name(key: str) -> str:
    """The name of the lock that a lease is of; sharers have leases of their own."""
    return key.removeprefix(f"{layout.LOCKS}/").removesuffix(".json").partition(".shared/")[0]


def _shared(name: str) -> str:
    return f"{layout.LOCKS}/{name}.shared"


def _freed(found: dict[str, Any]) -> bytes:
    """A lease that was taken away from its holder."""
    return seal({**found, "holder": None, "fence": found.get("fence", 0) + 1})


def _decode(key: str, content: bytes) -> dict[str, Any]:
    """The fields of a lease. A damaged one may be a living holder's, and is left alone until it runs out."""
    try:
        found = unseal(key, content)
    except ObjectDamaged:
        return {"holder": _UNKNOWN}
    holder, fence, ttl = found.get("holder"), found.get("fence", 0), found.get("ttl", 0)
    if not (isinstance(holder, str | None) and isinstance(fence, int) and isinstance(ttl, int | float)):
        return {"holder": _UNKNOWN}
    return found
