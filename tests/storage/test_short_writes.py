"""Disks that do not keep all bytes of a file: nothing that is incomplete is ever committed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.stores import Store

import omnigraph

ROOT = Path(__file__).parents[2]
SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"

WRITER = """
import json, resource, signal, sys
import omnigraph
from omnigraph.errors import OmniError, StorageError

uri, limit = sys.argv[1], int(sys.argv[2])
graph = omnigraph.open(uri)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
done, refused = [], []
for number in range(12):
    name = f"p{number}"
    try:
        graph.mutate("query q($n: String) { insert Person { name: $n, age: 1 } }", {"n": name})
        done.append(name)
    except OmniError as error:
        refused.append([name, error.outcome, type(error).__name__])
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
print(json.dumps({"done": done, "refused": refused}))
"""


def names(graph: omnigraph.Graph) -> set[str]:
    return {row["p.name"] for row in graph.query("query q() { match { $p: Person } return { $p.name } }")}


@pytest.mark.parametrize("limit", [500, 700, 1500, 2500, 3400, 4200, 6000])
def test_a_limit_on_the_size_of_files(local_store: Store, limit: int) -> None:
    """What was acknowledged is there, what was refused is not, and the next write to every type succeeds."""
    omnigraph.init(local_store.uri, SCHEMA)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WRITER, local_store.uri, str(limit)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    graph = omnigraph.open(local_store.uri)
    unknown = {name for name, outcome, _ in said["refused"] if outcome == "unknown"}
    assert {outcome for _, outcome, _ in said["refused"]} <= {"nothing_written", "unknown"}
    assert set(said["done"]) <= names(graph) <= {*said["done"], *unknown}
    graph.mutate('query q() { insert Person { name: "a" }  insert Person { name: "b" } }')
    graph.mutate('query q() { insert Knows { from: "a", to: "b" } }')
    assert {"a", "b"} <= names(omnigraph.open(local_store.uri, read_only=True))
