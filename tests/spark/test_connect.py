"""Spark Connect: a server of its own, started from the package as the guide says, and a client without Java."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.cluster import PATIENCE, connect_server

import omnigraph

pytestmark = pytest.mark.long

CLIENT = """
import sys
import omnigraph
from omnigraph.errors import ConstraintViolation
from omnigraph.spark import register
from omnigraph.spark.sessions import is_connect, spark_session

remote, address, good, bad = sys.argv[1:]
session = spark_session(remote)
graph = omnigraph.open(address)
print(is_connect(session), graph.load(good, mode="append", engine="spark", spark=session).total_entities)
try:
    graph.load(bad, mode="append", engine="spark", spark=session)
except ConstraintViolation as error:
    print(error.violations[0].line, error.violations[0].rule)
text = "query q() { match { $a: Person $a knows $b } return { $a.name as a, $b.name as b } }"
print(graph.query(text, spark=session).rows)
register(session)
reader = session.read.format("omnigraph")
print(sorted(row.name for row in reader.option("type", "Person").load(address).collect()))
more = session.createDataFrame([("Cy",)], "name string")
more.write.format("omnigraph").mode("append").option("type", "Person").save(address)
print(graph.query("query q() { match { $p: Person } return { count($p) as n } }").rows, graph.jobs())
"""


def test_loads_queries_frames_and_sinks_work_over_spark_connect(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g.omni", "node Person { name: String @key }  edge Knows: Person -> Person")
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    people = [f'{{"type": "Person", "data": {{"name": "{name}"}}}}\n' for name in ("Ada", "Bo")]
    knows = '{{"edge": "Knows", "from": "{}", "to": "{}"}}\n'
    good.write_text("".join([*people, knows.format("Ada", "Bo")]))
    bad.write_text(knows.format("Ada", "Bo") + knows.format("Bo", "Zoe"))
    with connect_server(tmp_path / "server") as remote:
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, remote, graph.address, str(good), str(bad)],
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * PATIENCE,
            env={name: value for name, value in os.environ.items() if name != "JAVA_HOME"},
            cwd=Path(__file__).parents[2],
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "True 3",
        "2 endpoint",
        "[{'a': 'Ada', 'b': 'Bo'}]",
        "['Ada', 'Bo']",
        "[{'n': 3}] []",
    ]
