"""Faults of a disk: rules that a process sets for its own file operations, and a journal of them.

The process has to be started with a library that is compiled from `disk.c`; `heard_from` does that.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from tests.processes import children

SOURCE: Final = Path(__file__).with_name("disk.c")

Operation = Literal[
    "open",
    "create",
    "reopen",
    "read",
    "write",
    "sync",
    "truncate",
    "rename",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
    "list",
]
"""`create` makes a file or empties it, `reopen` opens one that is there for writing. Renames and links are known
by the name they make."""

Family = Literal["room", "descriptor", "change", "anything"]
"""Operations that fail together: what takes room, what takes a descriptor, what changes or syncs, and all."""

Action = Literal["ENOSPC", "EIO", "EROFS", "EMFILE", "EACCES", "short", "stall", "kill", "stop"]
"""An errno; or `short`: half of the bytes are written, and the file takes no more until the rule is gone."""

_ACTIONS: Final = {"short": 2, "stall": 3, "kill": 4, "stop": 5}
_FAIL: Final = 1


@dataclass(frozen=True, slots=True)
class Rule:
    """What happens to the n-th operation of a kind on paths that a glob matches, and if sticky, to all later.

    A star of the glob does not cross a slash; the glob `**` matches every path."""

    operation: Operation | Family
    path: str
    occurrence: int
    action: Action
    seconds: float = 0.0
    sticky: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One operation as it happened. Paths are relative to the directory that is watched; ``replaced`` is the inode
    that had the new name of a rename before."""

    operation: Operation
    inode: int
    result: int
    reason: int
    struck: bool
    path: str
    to: str
    replaced: int

    @property
    def name(self) -> str:
        """The path that rules look at."""
        return self.to or self.path


class Disk:
    """The faults of one directory, for this process."""

    def __init__(self, root: Path, journal: Path, graves: Path | None = None) -> None:
        self._library = _library()
        self._journal = journal
        self._descriptor = os.open(journal, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        kept = os.fsencode(graves) if graves else b""
        caught = self._library.faults_watch(os.fsencode(root.resolve()), self._descriptor, kept)
        assert caught, "the kernel does not let a seccomp filter watch renames"

    def arm(self, rule: Rule) -> int:
        """Make a rule; its number tells `fired` which one is meant."""
        action = _ACTIONS.get(rule.action, _FAIL)
        value = rule.seconds if action != _FAIL else getattr(errno, rule.action)
        number: int = self._library.faults_arm(
            rule.operation.encode(), os.fsencode(rule.path), rule.occurrence, action, value, rule.sticky
        )
        assert number >= 0, "there are too many rules"
        return number

    def fired(self, number: int) -> int:
        """How often a rule has struck since it was armed."""
        count: int = self._library.faults_fired(number)
        return count

    def disarm(self) -> None:
        """Forget all rules. Files that were full take bytes again."""
        self._library.faults_disarm()

    def journal(self) -> list[Event]:
        """What has happened since the directory is watched, or since `forget`."""
        return read_journal(self._journal)

    def forget(self) -> None:
        """Begin the journal anew."""
        os.ftruncate(self._descriptor, 0)

    def close(self) -> None:
        """Watch nothing any more."""
        self._library.faults_watch(b"", -1, b"")
        os.close(self._descriptor)


@contextmanager
def watched(root: Path, journal: Path, graves: Path | None = None) -> Iterator[Disk]:
    """The faults of a directory, for as long as a block runs. Removed files are kept in ``graves``, by inode."""
    disk = Disk(root, journal, graves)
    try:
        yield disk
    finally:
        disk.close()


def read_journal(journal: Path) -> list[Event]:
    """A journal that some process has written, which may be dead."""
    events = []
    for line in os.fsdecode(journal.read_bytes()).splitlines():
        operation, inode, result, reason, struck, path, to, replaced = line.split("\t")
        events.append(
            Event(operation, int(inode), int(result), int(reason), struck != "0", path, to, int(replaced))  # type: ignore[arg-type]
        )
    return events


def compiled() -> Path:
    """The library, compiled once for each state of its source."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"omnigraph-test-faults-{os.getuid()}" / f"disk-{digest}.so"
    if not library.exists():
        library.parent.mkdir(mode=0o700, exist_ok=True)
        half = library.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", half, SOURCE, "-ldl", "-lpthread"], check=True)
        half.rename(library)
    return library


def environment() -> dict[str, str]:
    """The environment of a process that may use `Disk`."""
    return {**os.environ, "LD_PRELOAD": str(compiled())}


def heard_from(work: Callable[..., None], *arguments: Any) -> list[str]:
    """Run a function of some module in a process that may use `Disk`; the lines it said."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(compiled()))
        with children((work, *arguments)) as (child,):
            lines = child.heard()
            child.join()
    return lines


def loaded() -> bool:
    """May this process use `Disk`?"""
    return hasattr(ctypes.CDLL(None), "faults_watch")


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None)
    assert loaded(), "this process was not started with the library: see `heard_from`"
    library.faults_arm.argtypes = [
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_double,
        ctypes.c_int,
    ]
    library.faults_watch.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p]
    return library
