"""File locks: the kernel frees them when their holder dies, and nothing else does but removing the file."""

from __future__ import annotations

import fcntl
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.processes import children
from tests.storage.lock_holders import GRAPH, hold, taken
from tests.storage.threads import PATIENCE
from tests.stores import Store

from omnigraph.errors import LockLost, LockTimeout, StorageUnavailable

IMPATIENT = 0.05


def test_a_sleeping_holder_keeps_its_lock(local_store: Store) -> None:
    with children((hold, local_store, "main")) as (child,):
        assert child.hear() == "held"
        child.pause()
        with pytest.raises(LockTimeout), local_store.locks(wait=IMPATIENT).commit("main"):
            pytest.fail("two hold it")
        child.resume()
        child.say("verify")
        assert child.hear() == "still held"


def test_a_folder_in_which_nothing_can_be_locked(local_store: Store) -> None:
    root = Path(local_store.uri)
    root.mkdir(parents=True)
    (root / "__locks").write_text("a file where the folder for locks must be")
    with pytest.raises(StorageUnavailable, match="__locks"), local_store.locks().commit("main"):
        pass


@pytest.mark.parametrize("branch", ["main", GRAPH])
def test_a_holder_learns_that_its_lock_is_gone(local_store: Store, branch: str) -> None:
    with taken(local_store.locks(), branch) as lock:
        shutil.rmtree(Path(local_store.uri) / "__locks")
        with pytest.raises(LockLost) as caught:
            lock.verify()
        assert caught.value.lock == "graph"
        with taken(local_store.locks(), branch) as new:
            new.verify()
            with pytest.raises(LockLost):
                lock.verify()


def test_a_waiter_waits_for_the_lock_that_is_there(local_store: Store) -> None:
    """It began to wait for a file that has been removed since, and somebody holds a new one."""
    folder, got_it = Path(local_store.uri) / "__locks", threading.Event()

    def wait() -> None:
        with local_store.locks().control() as lock:
            lock.verify()
            got_it.set()

    with ThreadPoolExecutor(1) as pool:
        with ExitStack() as new:
            with local_store.locks().control():
                waiter = pool.submit(wait)
                wait_until_locked(folder / "graph.gate")
                shutil.rmtree(folder)
                lock = new.enter_context(local_store.locks().control())
            assert not got_it.wait(4 * IMPATIENT)
            lock.verify()
        waiter.result(PATIENCE)


def wait_until_locked(path: Path) -> None:
    """Wait until somebody else holds a file lock."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return
        time.sleep(0.001)
    pytest.fail("nobody came")
