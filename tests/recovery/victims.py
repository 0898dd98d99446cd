"""Processes that are killed: each runs one thing, which a failpoint armed in its environment ends.

::

    OMNIGRAPH_FAILPOINTS=write.after_tables=kill python -m tests.recovery.victims write '{"uri": …}' merge main
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tests.recovery.scenes import WRITES, found_city
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.manifest.repository import open_existing


def write(store: Store, name: str, branch: str) -> None:
    """One of the writes."""
    WRITES[name].run(connect(store), branch)


def recover_by_opening(store: Store, name: str, branch: str) -> None:
    omnigraph.open(store.uri, storage_options=store.options)


def recover_by_refreshing(store: Store, name: str, branch: str) -> None:
    connect(store).refresh()


def recover_by_writing(store: Store, name: str, branch: str) -> None:
    found_city(connect(store), branch)


def connect(store: Store) -> Graph:
    """A graph opened for writing, without the recovery that opening brings."""
    return Graph(open_existing(store.address, read_only=False))


TASKS: dict[str, Callable[[Store, str, str], None]] = {
    "write": write,
    "open": recover_by_opening,
    "refresh": recover_by_refreshing,
    "next write": recover_by_writing,
}


def kill_at(failpoint: str, task: str, store: Store, name: str, branch: str) -> None:
    """Run a task in a process of its own and see it die at a failpoint."""
    ended = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-m",
            "tests.recovery.victims",
            task,
            json.dumps(asdict(store)),
            name,
            branch,
        ],
        env=os.environ | {"OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"},
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL


if __name__ == "__main__":
    TASKS[sys.argv[1]](Store(**json.loads(sys.argv[2])), sys.argv[3], sys.argv[4])
