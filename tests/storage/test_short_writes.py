"""Disks that do not keep all bytes of a file: nothing that is incomplete is ever committed."""

from __future__ import annotations

import json
import resource
import signal
import warnings

import pytest
from tests.processes import children, say
from tests.stores import Store

import omnigraph
from omnigraph.errors import OmniError

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"


def write_with_limit(store: Store, limit: int) -> None:
    """In a child: insert people while no file may be larger than so many bytes; what became of each."""
    warnings.simplefilter("ignore")
    graph = omnigraph.open(store.uri)
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
    say(json.dumps({"done": done, "refused": refused}))


def names(graph: omnigraph.Graph) -> set[str]:
    return {row["p.name"] for row in graph.query("query q() { match { $p: Person } return { $p.name } }")}


@pytest.mark.parametrize("limit", [500, 700, 1500, 2500, 3400, 4200, 6000])
def test_a_limit_on_the_size_of_files(local_store: Store, limit: int) -> None:
    """What was acknowledged is there, what was refused is not, and the next write to every type succeeds."""
    omnigraph.init(local_store.uri, SCHEMA)
    with children((write_with_limit, local_store, limit)) as (child,):
        said = json.loads(child.hear())
        child.join()
    graph = omnigraph.open(local_store.uri)
    unknown = {name for name, outcome, _ in said["refused"] if outcome == "unknown"}
    assert {outcome for _, outcome, _ in said["refused"]} <= {"nothing_written", "unknown"}
    assert set(said["done"]) <= names(graph) <= {*said["done"], *unknown}
    graph.mutate('query q() { insert Person { name: "a" }  insert Person { name: "b" } }')
    graph.mutate('query q() { insert Knows { from: "a", to: "b" } }')
    assert {"a", "b"} <= names(omnigraph.open(local_store.uri, read_only=True))
