"""Places where trials happen: a directory and a bucket, which begin each trial as they were saved."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, get_args
from unittest.mock import patch

from tests.faults import disk, store
from tests.faults.patterns import pattern
from tests.faults.power import Names, power_cut
from tests.stores import S3Server, Store, s3_server

from omnigraph.manifest import repository
from omnigraph.storage import layout
from omnigraph.storage.locks import Locks

if TYPE_CHECKING:
    pass

ON_DISK: Final[dict[str, tuple[disk.Action, ...]]] = {
    "open": ("EIO", "EMFILE"),
    "create": ("ENOSPC", "EMFILE", "EROFS"),
    "reopen": ("EIO", "EMFILE", "EROFS"),
    "read": ("EIO",),
    "write": ("short", "ENOSPC", "EIO"),
    "sync": ("EIO",),
    "truncate": ("EIO",),
    "rename": ("EIO", "ENOSPC"),
    "link": ("EIO", "ENOSPC"),
    "unlink": ("EIO", "EROFS"),
    "mkdir": ("ENOSPC", "EROFS"),
    "rmdir": ("EIO",),
    "list": ("EIO", "EMFILE"),
}
"""What can happen to one operation on a disk."""

_LOOKING: Final = {"open", "read", "list"}
FOR_GOOD: Final[dict[disk.Family, tuple[disk.Action, set[str]]]] = {
    "room": ("ENOSPC", {"create", "write", "mkdir", "rename", "link"}),
    "change": ("EROFS", ON_DISK.keys() - _LOOKING),
    "descriptor": ("EMFILE", {"open", "create", "reopen", "list"}),
    "anything": ("EIO", {*ON_DISK}),
}
"""What can happen to all operations of a family, from one of them on."""

IN_A_BUCKET: Final[dict[str, tuple[store.Action, ...]]] = {
    "HEAD": ("500", "lost"),
    "GET": ("500", "lost"),
    "LIST": ("500", "lost"),
    "PUT": ("500", "lost", "late", "refuse"),
    "POST": ("500", "lost", "late"),
    "DELETE": ("500", "lost", "late"),
}
"""What can happen to one request."""

LEASE: Final = 1.0
"""How long a dead holder's lease lasts in trials, in seconds."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong. After a power cut nobody is left who could be told."""

    rule: disk.Rule | store.Rule
    power_cut: Names | None = None

    def __str__(self) -> str:
        rule = self.rule
        what, where = (rule.operation, rule.path) if isinstance(rule, disk.Rule) else (rule.method, rule.key)
        action = f"power cut, names {self.power_cut}," if self.power_cut else rule.action
        return f"{action}{' from' if rule.sticky else ''} at {what} {where} #{rule.occurrence}"


class Place(Protocol):
    """Where trials happen."""

    @property
    def store(self) -> Store: ...

    def save(self) -> None:
        """Let every trial begin with what is there now."""

    def restore(self) -> None:
        """Put back what was saved."""

    def faults(self, run: Callable[[], object]) -> list[Fault]:
        """Everything that can go wrong in a run, which happens once, without faults."""

    def under(self, fault: Fault) -> AbstractContextManager[None]:
        """Let a fault strike in a block."""

    @property
    def struck(self) -> bool:
        """Did it, in the last block?"""

    def release(self) -> None:
        """Let what is still on its way arrive."""


class Folder:
    """A directory of this process, which was started with the library that makes disks fail."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(str(folder / "g"))
        self.struck = False
        self._graph, self._saved = folder / "g", folder / "saved"
        self._graves, self._journal = folder / "graves", folder / "journal"

    def save(self) -> None:
        shutil.rmtree(self._saved, ignore_errors=True)
        shutil.copytree(self._graph, self._saved)

    def restore(self) -> None:
        shutil.rmtree(self._graph, ignore_errors=True)
        shutil.copytree(self._saved, self._graph)
        shutil.rmtree(self._graves, ignore_errors=True)
        self._graves.mkdir()
        self._journal.unlink(missing_ok=True)

    def faults(self, run: Callable[[], object]) -> list[Fault]:
        with disk.watched(self._graph, self._journal) as watched:
            run()
            events = watched.journal()
        seen: Counter[tuple[disk.Operation, str]] = Counter()
        found = []
        for event in events:
            where = event.operation, pattern(event.name)
            seen[where] += 1
            found += [Fault(disk.Rule(*where, seen[where], action)) for action in ON_DISK[event.operation]]
        for family, (action, operations) in FOR_GOOD.items():
            count = sum(event.operation in operations for event in events)
            found += [Fault(disk.Rule(family, "**", n, action, sticky=True)) for n in range(1, count + 1)]
            if family == "change":
                for n, names in product(range(1, count + 2), get_args(Names)):
                    found.append(Fault(disk.Rule(family, "**", n, "EIO", sticky=True), names))
        return found

    @contextmanager
    def under(self, fault: Fault) -> Iterator[None]:
        assert isinstance(fault.rule, disk.Rule)
        with disk.watched(self._graph, self._journal, self._graves if fault.power_cut else None) as watched:
            number = watched.arm(fault.rule)
            try:
                yield
            finally:
                self.struck = fault.power_cut is not None or watched.fired(number) > 0
                watched.disarm()
        if fault.power_cut:
            power_cut(self._graph, disk.read_journal(self._journal), self._graves, names=fault.power_cut)

    def release(self) -> None:
        """Nothing is on its way to a disk."""


class Bucket:
    """A bucket on a server whose requests obey rules."""

    def __init__(self, faults: store.Faults) -> None:
        self.store = faults.store
        self.struck = False
        self._faults = faults

    def save(self) -> None:
        """Locks are left out: what a killed writer held would have to be waited for in each trial."""
        self.store.objects().delete_prefix(layout.LOCKS)
        self._faults.save()

    def restore(self) -> None:
        self._faults.forget()
        self._faults.restore()

    def faults(self, run: Callable[[], object]) -> list[Fault]:
        self._faults.forget()
        run()
        requests = self._faults.journal()
        seen: Counter[tuple[store.Method, str]] = Counter()
        found = []
        for request in requests:
            where = request.method, pattern(request.key)
            seen[where] += 1
            found += [Fault(store.Rule(*where, seen[where], action)) for action in IN_A_BUCKET[request.method]]
        for n in range(1, len(requests) + 1):
            found.append(Fault(store.Rule("ANY", "**", n, "500", sticky=True)))
        changes = sum(request.method in ("PUT", "POST", "DELETE") for request in requests)
        for n in range(1, changes + 1):
            found.append(Fault(store.Rule("CHANGE", "**", n, "refuse", sticky=True)))
        return found

    @contextmanager
    def under(self, fault: Fault) -> Iterator[None]:
        assert isinstance(fault.rule, store.Rule)
        self._faults.arm(fault.rule)
        try:
            yield
        finally:
            self.struck = self._faults.disarm()[0] > 0

    def release(self) -> None:
        self._faults.release()


@contextmanager
def a_folder(folder: Path) -> Iterator[Place]:
    """A place on disk."""
    yield Folder(folder)


@contextmanager
def a_bucket(server: S3Server | None = None) -> Iterator[Place]:
    """A place on an S3 server, for clients that give up at once and leases that end soon."""
    if server is None:
        with s3_server() as started, a_bucket(started) as place:
            yield place
        return
    with (
        store.faulty_store(server) as faults,
        patch.object(repository, "Locks", partial(Locks, time_to_live=LEASE)),
    ):
        yield Bucket(faults)
