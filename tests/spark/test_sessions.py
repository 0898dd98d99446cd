"""Sessions that cannot be had: what is said, and that it is said at once."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]

import omnigraph
from omnigraph.errors import MissingExtra, SparkUnavailable
from omnigraph.spark import pythons
from omnigraph.spark.addresses import require_reachable
from omnigraph.spark.choice import SparkChoice
from omnigraph.spark.runner import reason_of
from omnigraph.spark.sessions import spark_session


@pytest.fixture
def closed_port() -> int:
    """A port at which no process listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port at which a process listens that never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_an_address_where_no_process_answers(closed_port: int, scheme: str) -> None:
    with pytest.raises(SparkUnavailable) as raised:
        require_reachable(f"{scheme}://127.0.0.1:{closed_port}")
    assert f"tried 127.0.0.1:{closed_port} (Connection refused), and no process answered" in str(raised.value)


def test_one_of_several_masters_is_enough(closed_port: int, silent_port: int) -> None:
    require_reachable(f"spark://127.0.0.1:{closed_port},127.0.0.1:{silent_port}")


def test_a_server_that_is_not_spark_connect(silent_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.spark.addresses._PATIENCE", 0.3)
    with pytest.raises(SparkUnavailable, match="a process answered, and it is no Spark Connect server"):
        require_reachable(f"sc://127.0.0.1:{silent_port}")


OTHER_SERVER = """
from concurrent.futures import ThreadPoolExecutor
import grpc
from omnigraph.errors import SparkUnavailable
from omnigraph.spark.sessions import spark_session

server = grpc.server(ThreadPoolExecutor(2))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
try:
    spark_session(f"sc://127.0.0.1:{port}")
except SparkUnavailable as error:
    print(error.reason)
server.stop(None)
"""


@pytest.mark.long
def test_a_server_of_something_else_is_told_in_the_words_of_grpc() -> None:
    done = subprocess.run([sys.executable, "-c", OTHER_SERVER], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("the server did not answer as Spark Connect does: UNIMPLEMENTED, ")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("sprak://host:7077", "that is no address of Spark; known are local"),
        ("spark://host", "'host' is not HOST:PORT"),
        ("spark://nowhere.invalid:7077", "tried nowhere.invalid:7077"),
        ("sc://nowhere.invalid", "tried nowhere.invalid:15002"),
    ],
)
def test_addresses_that_are_none(address: str, said: str) -> None:
    with pytest.raises(SparkUnavailable, match=said):
        require_reachable(address)


def test_a_load_hears_that_spark_starts_before_the_address_is_tried(tmp_path: Path, closed_port: int) -> None:
    heard: list[str] = []
    choice = SparkChoice(f"sc://127.0.0.1:{closed_port}", lambda event: heard.append(event.step))
    with pytest.raises(SparkUnavailable):
        choice.session()
    assert heard == ["starting Spark"]


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pythons, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra) as raised:
        spark_session()
    assert str(raised.value).endswith("which is not installed; run pip install 'omnigraph[spark]'")


DRIVER = """
import sys
from pyspark.sql import SparkSession
import omnigraph
from omnigraph.errors import JobFailed, SparkUnavailable
from omnigraph.spark.runner import SparkRunner

address, lines = sys.argv[1:]
config = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
config |= {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.sql.shuffle.partitions": "1"}
spark = SparkSession.builder.master("local[1]").config(map=config).getOrCreate()
graph = omnigraph.open(address)
print(graph.load(lines, mode="append", engine="spark", spark=spark).nodes)


def stop_java(event):
    if event.step == "reading and staging" and event.done == event.tasks:
        spark.sparkContext._gateway.proc.kill()
        spark.sparkContext._gateway.proc.wait()


for listener in (stop_java, None):
    try:
        graph.load(lines, mode="merge", engine="spark", spark=spark, listener=listener)
    except (JobFailed, SparkUnavailable) as error:
        print(type(error).__name__, error)
print(len(graph.jobs()), graph.query("query q() { match { $n: N } return { count($n) as n } }").rows)
"""


@pytest.mark.long
def test_the_callers_own_session_outside_of_an_environment_and_without_its_java(tmp_path: Path) -> None:
    """Workers would run the `python3` of the path, which has none of our packages."""
    graph = omnigraph.init(tmp_path / "g.omni", "node N { k: String @key }")
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(f'{{"type": "N", "data": {{"k": "{number}"}}}}\n' for number in range(9)))
    bare = tmp_path / "bin" / "python3"
    bare.parent.mkdir()
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK", "VIRTUAL"))
    }
    environment = {**kept, "PATH": f"{bare.parent}:{kept['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, graph.address, str(lines)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    loaded, failed, refused, left = done.stdout.splitlines()
    assert loaded == "{'N': 9}"
    assert failed.startswith("JobFailed ")
    assert "Spark's Java process has ended" in failed
    assert refused.startswith("JobFailed starting: Spark's Java process has ended")
    assert left == "0 [{'n': 9}]"


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("An error occurred while calling o31.sc", "Spark's Java process has ended"),
        ("An error occurred while calling o31.sc. Trace:\njava.lang.Error: no", "java.lang.Error: no"),
    ],
)
def test_a_call_that_java_did_not_answer_is_told_from_one_that_failed(told: str, reason: str) -> None:
    assert reason_of(Py4JError(told)).startswith(reason)
