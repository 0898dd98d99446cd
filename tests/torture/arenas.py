"""Where a torture run happens: a directory, a small disk that others fill, and a bucket whose requests fail."""

from __future__ import annotations

import os
import random
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from tests.faults.store import Action, Family, Faults, Method, Rule
from tests.stores import S3Server, Store
from tests.torture.fates import Trouble

Kind = Literal["disk", "small disk", "s3"]

_MEGABYTE: Final = 1 << 20
_ROOM: Final = 6 * _MEGABYTE
"""How much more than its graph a small disk can hold."""

_METHODS: Final[tuple[Method | Family, ...]] = ("ANY", "CHANGE", "CHANGE", "PUT", "DELETE", "GET", "LIST", "HEAD")
_KEYS: Final = (
    ("**", 30),
    ("**/_versions/*", 4),
    ("__manifest/**", 10),
    ("__recovery/*", 2),
    ("_refs/**", 4),
    ("__locks/**", 10),
)
"""For which objects requests fail, and at the latest at which of them."""

_REQUESTS: Final[tuple[Action, ...]] = ("500", "503", "lost", "late", "stall")


@dataclass
class Arena:
    """A place for a graph: as its writers see it, and as those do who check it and see no faults."""

    kind: Kind
    store: Store
    calm: Store
    troubles: tuple[Trouble, ...]
    faults: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def weather(self, chance: random.Random) -> Iterator[None]:
        """Let things go wrong that come from outside of the writers, for as long as a block runs."""
        enough = threading.Event()
        thread = threading.Thread(target=self._rage, args=(chance, enough), name="weather")
        thread.start()
        try:
            yield
        finally:
            enough.set()
            thread.join()
            self.settle()

    def _rage(self, chance: random.Random, enough: threading.Event) -> None:
        """Nothing happens here."""

    def settle(self) -> None:
        """Everything is well again, and what was on its way has arrived."""


class Directory(Arena):
    """A directory: its writers spoil it for themselves."""

    def __init__(self, folder: Path) -> None:
        store = Store(str(folder / "g"))
        super().__init__("disk", store, store, ("none", "faulty disk", "faulty disk", "size limit"))


class SmallDisk(Arena):
    """A small disk, on which somebody else takes all room and frees it again."""

    def __init__(self, folder: Path) -> None:
        store = Store(str(folder / "g"))
        super().__init__("small disk", store, store, ("none",))
        self._folder = folder

    def _rage(self, chance: random.Random, enough: threading.Event) -> None:
        crowd = self._folder / "crowd"
        while not enough.wait(chance.uniform(0.05, 0.6)):
            status = os.statvfs(self._folder)
            free = status.f_bavail * status.f_frsize
            left = chance.choice([0, 0, 4096, 8192, 20_000, 60_000])
            with suppress(OSError), crowd.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, max(free - left, 1))
            self.faults["full disk"] += 1
            enough.wait(chance.uniform(0.02, 0.5))
            crowd.unlink(missing_ok=True)

    def settle(self) -> None:
        """The disk grows with its graph."""
        (self._folder / "crowd").unlink(missing_ok=True)
        status = os.statvfs(self._folder)
        used = (status.f_blocks - status.f_bfree) * status.f_frsize
        subprocess.run(["mount", "-o", f"remount,size={used + _ROOM}", str(self._folder)], check=True)


class Bucket(Arena):
    """A bucket on a server whose requests fail, get lost, stall and arrive late."""

    def __init__(self, server: S3Server) -> None:
        store = server.faulty_store()
        super().__init__("s3", store, Store(store.uri, server.options()), ("none", "impatient", "impatient"))
        self._requests = Faults(server, store)

    def _rage(self, chance: random.Random, enough: threading.Event) -> None:
        while not enough.wait(chance.uniform(0.1, 1.0)):
            armed = [chance.choice(_REQUESTS) for _ in range(chance.randint(1, 3))]
            for action in armed:
                seconds = chance.uniform(0.1, 4.0) if action in ("late", "stall") else 0.0
                method = chance.choice(_METHODS)
                sticky = action in ("500", "503") and chance.random() < 0.1
                where, most = chance.choice(_KEYS)
                self._requests.arm(Rule(method, where, chance.randint(1, most), action, seconds, sticky))
            enough.wait(chance.uniform(0.2, 1.5))
            for action, fired in zip(armed, self._requests.disarm(), strict=True):
                self.faults[f"request {action}"] += fired

    def settle(self) -> None:
        self._requests.disarm()
        self._requests.release()
        self._requests.forget()


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A small disk of one's own, or None where it cannot be mounted."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_ROOM}", "omnigraph-torture", str(folder)],
        check=False,
        capture_output=True,
    )
    try:
        yield folder if mounted.returncode == 0 else None
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
