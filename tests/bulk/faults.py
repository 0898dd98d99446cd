"""Loads that something happens to: the graph and the input they start from, and the drivers that run them."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.bulk.everything import content
from tests.bulk.loading import load_by_tasks
from tests.processes import PATIENCE
from tests.spark.cluster import DRIVER
from tests.stores import Store

import omnigraph
from omnigraph import failpoints
from omnigraph.embed.client import EmbeddingClient, Role, Vectors
from omnigraph.graph import Graph
from omnigraph.storage import layout

Contents = dict[str, list[dict[str, Any]]]
SCHEMA = """
node Doc { name: String @key  size: I32?  note: String?  meaning: Vector(2)? @embed("note") }
edge Cites: Doc -> Doc
"""
PARTS = 4
LOADER = Path(__file__).with_name("loader.py")
ADD = "query add($n: String) { insert Doc { name: $n, size: 1 } }"


def doc(name: str, size: int, note: str | None = None) -> dict[str, Any]:
    return {"type": "Doc", "data": {"name": name, "size": size} | ({} if note is None else {"note": note})}


def cites(source: str, target: str) -> dict[str, Any]:
    return {"edge": "Cites", "from": source, "to": target, "data": {"id": f"{source}-{target}"}}


def new_graph(store: Store) -> Graph:
    """The graph that loads start from: the last of its documents is one that they have too."""
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
    graph.load([doc("old", 1), doc("0-0", 2), cites("old", "0-0")], mode="append")
    return graph


def write_input(folder: Path, orders: Mapping[int, str] | None = None, padding: int = 0) -> Path:
    """Files to be merged, one task each. An order is a note that the embedding client obeys where it is asked."""
    folder.mkdir(parents=True)
    for part in range(PARTS):
        note = (orders or {}).get(part)
        records = [doc(f"{part}-{n}", n, None if n else note) for n in range(20)]
        records += [cites(f"{part}-{n}", f"{(part + 1) % PARTS}-{n}") for n in range(10)]
        records += [doc(f"{part}-{os.urandom(padding).hex()}", 0) for _ in range(500 if padding else 0)]
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


class Ones:
    """The vectors of the loader's client, without its marks."""

    model = "marker"

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        return np.eye(1, dimension, dtype=np.float32).repeat(len(texts), axis=0)


def loaded_here(
    folder: Path,
    data: Path,
    embedder: EmbeddingClient | None = None,
    before: Callable[[Graph], object] | None = None,
) -> Contents:
    """What becomes of an untouched graph into which the same is merged without any trouble, and without Spark."""
    graph = new_graph(Store(str(folder)))
    if before is not None:
        before(graph)
    calm = Graph(graph._repository, embedder=embedder or Ones())
    calm.load("".join(part.read_text() for part in sorted(data.iterdir())), mode="merge")
    return content(calm)


def reader(store: Store) -> Graph:
    """A newcomer who may not repair anything."""
    return omnigraph.open(store.uri, read_only=True, storage_options=store.options)


def data_files(store: Store) -> set[str]:
    """All data files of the tables, used or not."""
    objects = store.objects()
    return {key for folder in (layout.NODES, layout.EDGES) for key in objects.list(folder) if "/data/" in key}


def kept_by_jobs(store: Store) -> list[str]:
    """Everything that jobs keep for themselves: records, pairs, vectors, locks."""
    objects = store.objects()
    return objects.list(layout.JOBS) + [key for key in objects.list(layout.LOCKS) if "/job-" in key]


class Driver:
    """A driver on a cluster, in a process and a directory of its own."""

    def __init__(self, folder: Path, master: str) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        with (folder / "stderr").open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(LOADER), master],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=folder,
                env=driver_environment(),
            )
        self._said: queue.Queue[str | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._marks = 0

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._said.put(line)
        self._said.put(None)

    def start(self, store: Store, data: str | Path, **more: Any) -> Path:
        """Begin to merge files into a graph; the directory in which its embedding client leaves marks."""
        self._marks += 1
        marks = self.folder / f"marks-{self._marks}"
        marks.mkdir()
        request = {"graph": store.uri, "storage": store.options, "data": str(data), "mode": "merge"}
        self.say(json.dumps(request | {"marks": str(marks)} | more))
        return marks

    def load(self, store: Store, data: str | Path, **more: Any) -> dict[str, Any]:
        """Merge files into a graph; what came of it."""
        self.start(store, data, **more)
        return self.outcome()

    def say(self, line: str = "") -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """The next thing the driver said."""
        line = self._said.get(timeout=PATIENCE)
        errors = (self.folder / "stderr").read_text(errors="replace")[-5000:]
        assert line is not None, f"the driver ended with {self.process.wait(PATIENCE)}:\n{errors}"
        told: dict[str, Any] = json.loads(line)
        return told

    def job(self) -> str:
        """The name of the job that has begun."""
        return str(self.hear()["job"])

    def outcome(self) -> dict[str, Any]:
        """How a load ended."""
        told = self.hear()
        return self.outcome() if "job" in told else told

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        """End the driver as a power cut would."""
        self.process.kill()
        self.process.wait(PATIENCE)
        self._listener.join(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()


def driver_environment() -> dict[str, str]:
    """An environment in which nothing helps a driver or its workers to find the package."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | DRIVER


def load_here(graph: Graph, data: str) -> None:
    """Merge files as a job does, with the tasks in this process."""
    load_by_tasks(graph, data, mode="merge")


def be_killed(store: Store, data: str, failpoint: str) -> None:
    """In a child: merge files, and die at a failpoint."""
    graph = omnigraph.open(store.uri, storage_options=store.options)
    with failpoints.armed(failpoint, failpoints.die):
        load_here(graph, data)
