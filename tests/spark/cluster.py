"""A Spark cluster of its own on this machine: one master and some workers, each a process with its own directory.

::

    with standalone(folder) as cluster:
        graph.load(data, mode="append", engine="spark", master=cluster.master)
        cluster.workers[0].kill()

The wheel of Spark has no `start-master.sh`, but `spark-class` starts the same classes. A driver of this machine
needs `DRIVER` in its environment. Everything that the cluster starts, executors and their Pythons included, is
ended with the block.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.spark.java import find_java

HOST = "127.0.0.1"
DRIVER = {"SPARK_LOCAL_IP": HOST}
"""What a driver's environment needs so that executors on this machine find it, whatever its host is called."""

PATIENCE = float(os.environ.get("OMNIGRAPH_TEST_PATIENCE", "120"))
_QUIET = Path(omnigraph.__file__).parent / "spark" / "log4j2.properties"


class Member:
    """A process of the cluster, in a session of its own with everything that it starts."""

    def __init__(self, arguments: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                arguments,
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def pids(self) -> list[int]:
        """The process and all that it started, executors and Python workers, as far as they live."""
        return [pid for pid, session in _sessions() if session == self.pid]

    def kill(self) -> None:
        """End all of them as a power cut would."""
        while pids := self.pids():
            for pid in pids:
                _end(pid)
            if self.process.poll() is None:
                self.process.wait(PATIENCE)
            time.sleep(0.01)


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs: the address that drivers are given, and its workers."""

    master: str
    workers: list[Member]
    status: str
    folder: Path
    cores: int
    memory: str
    environment: Mapping[str, str]

    def state(self) -> dict[str, Any]:
        """What the master says about itself: workers, applications, cores in use."""
        with urllib.request.urlopen(self.status, timeout=PATIENCE) as answer:
            told: dict[str, Any] = json.load(answer)
        return told

    def start_worker(self) -> Member:
        """Start one more worker."""
        arguments = ["-c", str(self.cores), "-m", self.memory, "--host", HOST, "--webui-port", "0"]
        folder = self.folder / f"worker-{len(self.workers)}"
        worker = Member(
            [*_spark_class("worker.Worker"), *arguments, "-d", str(folder / "work"), self.master],
            folder,
            {**self.environment, "SPARK_LOCAL_DIRS": str(folder / "local")},
        )
        self.workers.append(worker)
        return worker

    def stop(self) -> None:
        """End all workers."""
        for worker in self.workers:
            worker.kill()

    def wait_for_workers(self, count: int) -> None:
        """Wait until the master knows that many workers that live."""
        _until(lambda: bool(self.state()["aliveworkers"] == count), self.folder)


@contextmanager
def standalone(
    folder: Path,
    workers: int = 2,
    cores: int = 1,
    *,
    memory: str = "1g",
    environment: Mapping[str, str] | None = None,
) -> Iterator[Cluster]:
    """A master and some workers that wait for applications, with their files below a folder that is theirs.

    Each worker offers so many cores and so much memory; an executor takes 1g of it unless a driver says otherwise.
    ``environment`` is added to that of the workers, and so of the Pythons in which tasks run.
    """
    common = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYTHON"))},
        **DRIVER,
        "JAVA_HOME": str(find_java().home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"-Dlog4j2.configurationFile={_QUIET.as_uri()} -XX:TieredStopAtLevel=1",
        "SPARK_CONF_DIR": str(folder / "conf"),
    }
    (folder / "conf").mkdir(parents=True)
    port, page = _free_ports(2)
    with ExitStack() as stack:
        head = Member(
            [*_spark_class("master.Master"), "--host", HOST, "--port", str(port), "--webui-port", str(page)],
            folder / "master",
            common,
        )
        stack.callback(head.kill)
        cluster = Cluster(
            f"spark://{HOST}:{port}",
            [],
            f"http://{HOST}:{page}/json/",
            folder,
            cores,
            memory,
            {**common, **(environment or {})},
        )
        stack.callback(cluster.stop)
        for _ in range(workers):
            cluster.start_worker()
        cluster.wait_for_workers(workers)
        yield cluster


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server on this machine; its address."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYTHON"))},
        **DRIVER,
        "JAVA_HOME": str(find_java().home),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LOG_DIR": str(folder / "logs"),
        "SPARK_PID_DIR": str(folder / "pids"),
        "PYSPARK_PYTHON": sys.executable,
    }
    (port,) = _free_ports(1)
    quiet = f"-Dlog4j2.configurationFile={_QUIET.as_uri()} -XX:TieredStopAtLevel=1"
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": quiet,
        "spark.sql.shuffle.partitions": "1",
    }
    given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    script = str(_spark_home() / "sbin" / "start-connect-server.sh")
    server = Member([script, "--master", "local[2]", *given], folder, environment)
    try:
        _until(lambda: _listens(port), folder.parent)
        yield f"sc://{HOST}:{port}"
    finally:
        server.kill()


def _listens(port: int) -> bool:
    with socket.create_connection((HOST, port), 1):
        return True


def _spark_home() -> Path:
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _spark_class(name: str) -> list[str]:
    return [str(_spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]


def _free_ports(count: int) -> list[int]:
    """Ports that nobody uses at the moment."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]


def _until(is_so: Callable[[], bool], folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        with suppress(OSError, ValueError):  # until it is ready, the master answers nothing, or with a page
            if is_so():
                return
        logs = "".join(log.read_text(errors="replace") for log in sorted(folder.glob("*/log")))
        assert time.monotonic() < deadline, f"the cluster in {folder} is not as it should be:\n{logs[-5000:]}"
        time.sleep(0.05)


def _sessions() -> Iterator[tuple[int, int]]:
    """All processes of this machine that live, each with the session it belongs to."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                _, _, rest = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            state, _, _, session, *_ = rest.split()
            if state != "Z":
                yield int(entry.name), int(session)


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
