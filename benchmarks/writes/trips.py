"""Requests of one-row writes on an object store, and how many of them wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.s3server import CountingServer, Traffic, counting_server
from benchmarks.writes.work import UPDATE, cases, person, schema
from rich.console import Console
from rich.table import Table
from tests.faults.waves import Waves

import omnigraph

BUCKET: Final = "bench"
QUIET: Final = 0.1
"""How long the server waits for more requests of a wave, in seconds."""


def trips(out: Console, longest: int) -> None:
    """Requests and serial depth at growing history and with more tables."""
    columns = ("tables", "commits", "write", "requests", "one after the other", "bytes up", "bytes down")
    table = Table(*columns, title="One-row writes on S3")
    with counting_server(BUCKET) as server:
        for types in (8, 200):
            uri = f"s3://{BUCKET}/w{types}.omni"
            graph = omnigraph.init(uri, schema(types), storage_options=server.storage_options)
            graph.load([person("p0"), person("p1")], mode="append")
            done = 2
            for commits in sorted({10, min(1_000, longest), longest}):
                while done < commits:
                    graph.mutate(UPDATE, {"n": "p1"})
                    done += 1
                for verb, text, name in cases(commits):
                    with in_waves(server) as traffic:
                        graph.mutate(text, {"n": name})
                    cells = (len(traffic.waves), f"{traffic.received:,}", f"{traffic.sent:,}")
                    table.add_row(str(types), f"{commits:,}", verb, str(traffic.total), *map(str, cells))
                    done += 1
    out.print(table)


@contextmanager
def in_waves(server: CountingServer) -> Iterator[Traffic]:
    """What a server is asked in a block, with requests answered in waves."""
    server.waves = Waves(QUIET)
    server.traffic.reset()
    try:
        yield server.traffic
    finally:
        server.waves = None
