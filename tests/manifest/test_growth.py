"""What a commit leaves on the store: as much at any time, and little of it."""

from __future__ import annotations

from pathlib import Path

from tests.manifest.support import new_graph, publish

from omnigraph.manifest.publisher import COMMIT_TAIL
from omnigraph.manifest.repository import Repository

PERSON = "node:Person"

BYTES_PER_PUBLISH = 10_000
"""For the state, the lineage and the archive together; a commit of one row may take twice that with its tables."""


def stored(root: Path) -> int:
    """The bytes of all files of a graph."""
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def grown_by(graph: Repository, publishes: int) -> int:
    """How many bytes some publishes leave behind."""
    root = Path(graph.address.root)
    before = stored(root)
    for _ in range(publishes):
        publish(graph, PERSON)
    return stored(root) - before


def test_every_commit_takes_as_much_on_disk_as_those_before_it(tmp_path: Path) -> None:
    graph = new_graph(tmp_path)
    grown_by(graph, COMMIT_TAIL)
    young = grown_by(graph, 2 * COMMIT_TAIL)
    old = grown_by(graph, 2 * COMMIT_TAIL)
    assert old < 1.1 * young
    assert old < 2 * COMMIT_TAIL * BYTES_PER_PUBLISH
