"""What the manifest costs: object-store operations and bytes for open, snapshot, publish and branch create.

Counted on an S3-compatible server, at growing history and at growing numbers of tables. Run with `make bench`;
`--commits 10,100` makes it shorter.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace

from benchmarks.s3server import CountingServer, counting_server
from rich.console import Console
from rich.table import Table

import omnigraph
from omnigraph.graph import Graph
from omnigraph.manifest.publisher import BranchName, Change, CommitDraft
from omnigraph.manifest.repository import Repository

MAIN = BranchName("main", None)
BUCKET = "bench"


def schema(types: int) -> str:
    """A schema of so many node types."""
    return "\n".join(f"node T{i} {{ name: String @key  age: I32? }}" for i in range(types))


def publish_one(repository: Repository) -> None:
    """One commit that moves one table."""
    state = repository.manifest.latest(None)
    pin = next(iter(state.tables.values()))
    moved = replace(pin, table_version=pin.table_version + 1)
    draft = CommitDraft("load", actor_id="bench", message="one more")
    repository.manifest.publish(MAIN, Change({pin.table_key: moved}), {pin.table_key: pin.table_version}, draft)


class Case:
    """One graph on the counting server."""

    def __init__(self, server: CountingServer, types: int) -> None:
        self.server = server
        self.types = types
        self.uri = f"s3://{BUCKET}/g{types}.omni"
        graph = omnigraph.init(self.uri, schema(types), storage_options=server.storage_options)
        self.repository = graph._repository
        self.commits = 1
        self.branches = 0

    def grow(self, commits: int) -> None:
        """Publish until the history is that long."""
        while self.commits < commits:
            publish_one(self.repository)
            self.commits += 1

    def measure(self) -> Iterator[tuple[str, int, int, int]]:
        """Operations, bytes sent to the store and bytes read from it, for each verb."""
        fresh = self._open()
        yield self._count("open read-only, cold", lambda: self._open())
        yield self._count("snapshot, warm", lambda: fresh.snapshot())
        # Archiving happens at one publish in 64; the middle one of three is not it.
        costs = sorted(self._count("publish", lambda: publish_one(self.repository)) for _ in range(3))
        self.commits += 3
        yield costs[1]
        yield self._count("branch create", self._create_branch)

    def _open(self) -> Graph:
        return omnigraph.open(self.uri, read_only=True, storage_options=self.server.storage_options)

    def _create_branch(self) -> None:
        self.branches += 1
        name = f"b{self.branches}"
        Graph(self.repository).create_branch(name)

    def _count(self, verb: str, action: Callable[[], object]) -> tuple[str, int, int, int]:
        self.server.traffic.reset()
        action()
        traffic = self.server.traffic
        return verb, traffic.total, traffic.received, traffic.sent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", default="10,100,1000,5000")
    parser.add_argument("--tables", default="8,50,200")
    given = parser.parse_args()
    histories = [int(n) for n in given.commits.split(",")]
    sizes = [int(n) for n in given.tables.split(",")]
    out = Table("tables", "commits", "verb", "operations", "bytes up", "bytes down", title="The manifest on S3")
    with counting_server(BUCKET) as server:
        for types in sizes:
            case = Case(server, types)
            for commits in histories if types == sizes[0] else histories[:2]:
                case.grow(commits)
                for verb, operations, up, down in case.measure():
                    out.add_row(str(types), f"{commits:,}", verb, str(operations), f"{up:,}", f"{down:,}")
    Console(width=110).print(out)


if __name__ == "__main__":
    main()
