"""The faults of a disk do what they say: to plain files, and to what Lance and obstore write."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import lance
import obstore
import pyarrow as pa
import pytest
from obstore.store import LocalStore
from tests.faults.disk import Action, Disk, Operation, Rule, compiled, heard_from, read_journal, watched
from tests.faults.patterns import pattern
from tests.processes import children, hear, say


def make(folder: Path) -> None:
    (folder / "new").open("w").close()


def overwrite(folder: Path) -> None:
    (folder / "old").write_bytes(b"x")


def append(folder: Path) -> None:
    (folder / "old").open("a").close()


def write(folder: Path) -> None:
    with (folder / "new").open("wb", buffering=0) as file:
        file.write(b"0123456789")


def synchronise(folder: Path) -> None:
    with (folder / "old").open("rb") as file:
        os.fsync(file.fileno())


OPERATIONS: dict[Operation, Callable[[Path], object]] = {
    "open": lambda folder: (folder / "old").open("rb").close(),
    "create": make,
    "reopen": append,
    "read": lambda folder: (folder / "old").read_bytes(),
    "write": write,
    "sync": synchronise,
    "truncate": overwrite,
    "rename": lambda folder: (folder / "old").rename(folder / "new"),
    "link": lambda folder: (folder / "new").hardlink_to(folder / "old"),
    "unlink": lambda folder: (folder / "old").unlink(),
    "mkdir": lambda folder: (folder / "new").mkdir(),
    "rmdir": lambda folder: (folder / "empty").rmdir(),
    "list": lambda folder: [*(folder / "empty").iterdir()],
}
"""For each kind of operation something that Python does with it."""


@contextmanager
def scene(folder: Path) -> Iterator[tuple[Disk, Path]]:
    """A watched directory with a file and an empty directory in it."""
    root = folder / "root"
    (root / "empty").mkdir(parents=True)
    (root / "old").write_bytes(b"0123456789")
    with watched(root, folder / "journal") as disk:
        yield disk, root


def fail_in_each_way(folder: Path, operation: Operation) -> None:
    with scene(folder) as (disk, root):
        for action in ("ENOSPC", "EIO", "EROFS", "EMFILE"):
            number = disk.arm(Rule(operation, "**", 1, action))
            try:
                OPERATIONS[operation](root)
            except OSError as error:
                say(f"{errno.errorcode[error.errno or 0]} {disk.fired(number)}")
            disk.disarm()
            (root / "new").unlink(missing_ok=True)
        OPERATIONS[operation](root)
        say(" ".join(errno.errorcode[event.reason] for event in disk.journal() if event.struck))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_can_fail_in_each_way_and_then_works(tmp_path: Path, operation: Operation) -> None:
    *struck, journal = heard_from(fail_in_each_way, tmp_path, operation)
    assert struck == ["ENOSPC 1", "EIO 1", "EROFS 1", "EMFILE 1"]
    assert journal == "ENOSPC EIO EROFS EMFILE"


def choose(folder: Path) -> None:
    with scene(folder) as (disk, root):
        (root / "a").mkdir()
        third = disk.arm(Rule("create", "a/*.txt", 3, "EIO"))
        from_second = disk.arm(Rule("create", "*.bin", 2, "EIO", sticky=True))
        for name in ("a/1.txt", "1.txt", "a/2.txt", "a/3.txt", "a/4.txt", "1.bin", "2.bin", "3.bin", "a/9.bin"):
            try:
                (root / name).touch()
            except OSError:
                say(name)
        (folder / "4.bin").touch()
        say(f"{disk.fired(third)} {disk.fired(from_second)}")


def test_a_rule_strikes_the_occurrence_and_the_paths_it_names(tmp_path: Path) -> None:
    assert heard_from(choose, tmp_path) == ["a/3.txt", "2.bin", "3.bin", "1 2"]


def write_shortly(folder: Path) -> None:
    with scene(folder) as (disk, root):
        disk.arm(Rule("write", "new", 1, "short"))
        descriptor = os.open(root / "new", os.O_WRONLY | os.O_CREAT)
        say(os.write(descriptor, b"0123456789"))
        try:
            os.write(descriptor, b"56789")
        except OSError as error:
            say(errno.errorcode[error.errno or 0])
        (root / "other").write_bytes(b"others have room")
        disk.disarm()
        say(os.write(descriptor, b"56789"))
        say((root / "new").read_text())


def test_a_short_write_writes_a_part_and_then_the_file_is_full(tmp_path: Path) -> None:
    assert heard_from(write_shortly, tmp_path) == ["5", "ENOSPC", "5", "0123456789"]


def stall(folder: Path) -> None:
    with scene(folder) as (disk, root):
        number = disk.arm(Rule("mkdir", "new", 1, "stall", seconds=0.5))
        thread = threading.Thread(target=(root / "new").mkdir)
        thread.start()
        while not disk.fired(number):
            time.sleep(0.001)
        say((root / "new").exists())
        thread.join()
        say((root / "new").exists())


def test_what_stalls_happens_later(tmp_path: Path) -> None:
    assert heard_from(stall, tmp_path) == ["False", "True"]


def rename_in_vain(folder: Path, action: Action) -> None:
    with scene(folder) as (disk, root):
        disk.arm(Rule("rename", "new", 1, action))
        say("armed")
        (root / "old").rename(root / "new")
        say("renamed")
        hear()


def test_a_process_is_killed_before_the_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", str(compiled()))
    with children((rename_in_vain, tmp_path, "kill")) as (child,):
        assert child.hear() == "armed"
        with pytest.raises(AssertionError, match=f"ended with {-signal.SIGKILL} "):
            child.hear()
    assert (tmp_path / "root" / "old").exists()
    last = read_journal(tmp_path / "journal")[-1]
    assert (last.operation, last.struck) == ("rename", True)


def test_a_process_is_stopped_before_the_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", str(compiled()))
    with children((rename_in_vain, tmp_path, "stop")) as (child,):
        assert child.hear() == "armed"
        while not child.is_frozen:
            time.sleep(0.001)
        assert (tmp_path / "root" / "old").exists()
        child.resume()
        assert child.hear() == "renamed"


def write_a_table(folder: Path, rules: list[Rule]) -> None:
    table = str(folder / "root" / "t")
    with scene(folder) as (disk, _):
        for rule in rules:
            disk.arm(rule)
        try:
            lance.write_dataset(pa.table({"a": list(range(100))}), table)
            say("written")
        except OSError as error:
            say("No space left" in str(error) or "Input/output error" in str(error))
        disk.disarm()
        journal = {(event.operation, pattern(event.name)) for event in disk.journal() if event.result >= 0}
        try:
            say(lance.dataset(table).to_table().num_rows)
        except (OSError, ValueError) as error:
            say(type(error).__name__)
        for seen in sorted(journal):
            say(" ".join(seen))


def test_what_lance_does_is_seen(tmp_path: Path) -> None:
    """Its renames too, which do not go through libc."""
    written, rows, *journal = heard_from(write_a_table, tmp_path, [])
    assert (written, rows) == ("written", "100")
    assert {
        "create t/data/.tmp*",
        "write t/data/.tmp*",
        "rename t/data/*.lance",
        "rename t/_transactions/*.txn",
        "create t/_versions/*.manifest#1",
        "link t/_versions/*.manifest",
        "unlink t/_versions/*.manifest#1",
    } <= set(journal)


@pytest.mark.parametrize("glob", ["t/data/.tmp*", "t/_versions/*.manifest#1"])
def test_lance_reports_a_full_disk(tmp_path: Path, glob: str) -> None:
    assert heard_from(write_a_table, tmp_path, [Rule("create", glob, 1, "ENOSPC")])[0] == "True"


def test_lance_reports_a_rename_that_fails(tmp_path: Path) -> None:
    assert heard_from(write_a_table, tmp_path, [Rule("rename", "t/data/*", 1, "EIO")])[0] == "True"


def test_lance_does_not_report_that_the_end_of_a_data_file_is_missing(tmp_path: Path) -> None:
    """The reason why sizes are compared before a commit."""
    written, error, *_ = heard_from(write_a_table, tmp_path, [Rule("write", "t/data/.tmp*", 2, "short")])
    assert (written, error) == ("written", "ArrowInvalid")


def put_an_object(folder: Path, rule: Rule) -> None:
    with scene(folder) as (disk, root):
        store = LocalStore(prefix=root)
        obstore.put(store, "control.json", b"before")
        disk.arm(rule)
        try:
            obstore.put(store, "control.json", b"after, and longer")
            say("written")
        except obstore.exceptions.BaseError:
            say("failed")
        say((root / "control.json").read_text())


@pytest.mark.parametrize(
    "rule", [Rule("write", "control.json#*", 1, "short"), Rule("rename", "control.json", 1, "EIO")], ids=str
)
def test_obstore_reports_what_fails_and_leaves_the_old_object(tmp_path: Path, rule: Rule) -> None:
    assert heard_from(put_an_object, tmp_path, rule) == ["failed", "before"]
