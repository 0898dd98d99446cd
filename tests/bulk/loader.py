"""A driver in a process and a directory of its own, which does what it is told: one line of JSON per request.

It is run by its path and imports nothing of the tests, so that whatever tasks need has to travel. It says the
job's name, then `at` if it was told to stop at a failpoint, where it waits for a line, and then the outcome::

    {"graph": …, "data": …, "mode": "append", "marks": …}
    {"job": …}
    {"rows": …} or {"error": …, "message": …}
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

import omnigraph
from omnigraph import failpoints
from omnigraph.bulk.runner import JobEvent
from omnigraph.errors import OmniError
from omnigraph.graph import Graph
from omnigraph.read.limits import Cancellation
from omnigraph.storage.locks import Locks
from omnigraph.storage.objects import open_objects


class Marker:
    """An embedding client that leaves a mark on the disk wherever it is asked, and obeys the texts it is given.

    ``wait`` waits until there is a mark `go`; ``die N`` ends its process, and ``fail N`` raises, N times in all.
    """

    model = "marker"

    def __init__(self, marks: str) -> None:
        self.marks = marks

    def embed(self, texts: Sequence[str], dimension: int, role: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        folder = Path(self.marks)
        for text in texts:
            order, _, times = text.partition(" ")
            about = {"pid": os.getpid(), "cwd": str(Path.cwd()), "omnigraph": omnigraph.__file__, "is_told": order}
            draft = folder / f"draft-{os.getpid()}-{time.monotonic_ns()}"
            draft.write_text(json.dumps(about))
            draft.rename(folder / draft.name.replace("draft", "asked"))
            while order == "wait" and not (folder / "go").exists():
                time.sleep(0.02)
            if order == "die" and self.is_left(order, int(times)):
                os.kill(os.getpid(), signal.SIGKILL)
            if order == "fail" and self.is_left(order, int(times)):
                raise ValueError("the model has the hiccups")
        return np.eye(1, dimension, dtype=np.float32).repeat(len(texts), axis=0)

    def is_left(self, order: str, times: int) -> bool:
        """Is there something left to do that is done so many times, by whatever process?"""
        for number in range(times):
            try:
                (Path(self.marks) / f"{order}-{number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            return True
        return False


def say(**told: Any) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def opened(request: dict[str, Any]) -> Graph:
    """The graph, with leases on object stores that are given away soon."""
    graph = omnigraph.open(request["graph"], storage_options=request.get("storage"))
    repository = graph._repository
    locks = Locks(repository.address, open_objects(repository.address), time_to_live=request.get("lease", 10.0))
    return Graph(replace(repository, locks=locks), embedder=Marker(request["marks"]))


def load(request: dict[str, Any], master: str) -> None:
    job, cancellation = "", Cancellation()

    def listen(event: JobEvent) -> None:
        nonlocal job
        if not job:
            job = event.job
            say(job=job)

    def stop() -> None:
        say(at=request["stop_at"])
        sys.stdin.readline()

    def cancel() -> None:
        while not list(Path(request["marks"]).glob("asked-*")):
            time.sleep(0.02)
        cancellation.cancel()

    if request.get("cancel"):
        Thread(target=cancel).start()
    with ExitStack() as stack:
        if request.get("stop_at"):
            stack.enter_context(failpoints.armed(request["stop_at"], stop))
        try:
            done = opened(request).load(
                request["data"],
                mode=request["mode"],
                engine="spark",
                spark=master,
                listener=listen,
                cancellation=cancellation,
            )
        except OmniError as error:
            say(error=type(error).__name__, message=str(error))
        else:
            say(rows=done.total_entities)


if __name__ == "__main__":
    for line in sys.stdin:
        load(json.loads(line), sys.argv[1])
