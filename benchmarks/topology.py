"""What a large topology takes: memory per edge and direction, seconds to build, seconds to answer from it.

Run with `python -m benchmarks.topology`, with `--large` for a hundred million edges. Each question is asked in a
fresh process, whose highest memory is taken from `resource.getrusage`; what the process had after the same
question to a tiny type, and what the result takes, are subtracted. The exit code is 1 if a question takes more
than 16 bytes per edge and direction. The graph is kept between runs in the system's folder for temporary files, by
size.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.kept import apart, kept_graph
from rich.console import Console
from rich.table import Table

_MOST_BYTES: Final = 16.0
_PIECE: Final = 2_000_000
SCHEMA: Final = """
node Person { name: String @key }
edge Knows: Person -> Person
node Pebble { name: String @key }
edge Touches: Pebble -> Pebble
"""
_PEBBLES: Final = """
{"type": "Pebble", "data": {"name": "a"}}
{"type": "Pebble", "data": {"name": "b"}}
{"edge": "Touches", "from": "a", "to": "b"}
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A counting query, with the number of directions in which it needs the edges."""

    name: str
    directions: int
    clauses: str

    def text(self, node: str, edge: str) -> str:
        return (
            f"query q() {{ match {{ {self.clauses.format(node=node, edge=edge)} }} return {{ count($a) as n }} }}"
        )


QUESTIONS: Final = (
    Question("one hop, forward", 1, "$a: {node}  $a {edge} $b"),
    Question("two hops, forward", 1, '$a: {node}  $a {edge} $b  $b {edge} $c  $c.name != "x"'),
    Question("to and from the middle", 2, '$b: {node}  $b {edge} $c  $a {edge} $b  $b.name != "x"'),
    Question("either way", 2, "$a: {node}  $a <{edge}> $b"),
    Question("every edge by itself", 1, "$a: {node}  $a $e:{edge} $b"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What asking in a fresh process gave. Memory is in bytes."""

    answer: int
    baseline: int
    peak: int
    after: int
    result: int
    first: float
    again: float


def build(home: Path, nodes: int, edges: int) -> None:
    """Write the graph, through the protocol of all writes; rows are staged as Arrow tables, a piece per commit."""
    import omnigraph
    from omnigraph.manifest.repository import open_existing
    from omnigraph.storage.address import parse_address
    from omnigraph.storage.stage.changes import stage_append
    from omnigraph.storage.tables import TableRef
    from omnigraph.write.base import Base
    from omnigraph.write.protocol import Prepared, StagedTable, WriteRequest, commit_write

    omnigraph.init(home, SCHEMA).load(_PEBBLES, mode="append")
    repository = open_existing(parse_address(home), read_only=False)
    request = WriteRequest("load", repository.branches.find("main"))
    for table_key, rows in _pieces(nodes, edges):

        def prepare(base: Base, key: str = table_key, rows: pa.Table = rows) -> Prepared[None]:
            def stage(ref: TableRef, operation: str) -> StagedTable:
                handle = repository.tables.open(ref)
                fitting = rows.cast(base.schema(key))
                staged = stage_append(handle, ref.location, ref.branch, fitting, operation)
                return StagedTable(staged, base.pin(key).row_count + rows.num_rows)

            return Prepared({}, None, repeatable=True, stages={key: stage})

        commit_write(repository, request, prepare)


def _pieces(nodes: int, edges: int) -> Iterator[tuple[str, pa.Table]]:
    """The rows of the graph. Sources are drawn evenly, targets unevenly, and some pairs come twice."""
    names = _named("p", 0, nodes)
    yield "node:Person", pa.table({"id": names, "name": names})
    random = np.random.default_rng(0)
    for low in range(0, edges, _PIECE):
        count = min(_PIECE, edges - low)
        sources = random.integers(0, nodes, count)
        targets = (random.random(count) ** 2 * nodes).astype(np.int64)
        ids = _named("e", low, low + count)
        yield "edge:Knows", pa.table({"id": ids, "src": names.take(sources), "dst": names.take(targets)})


def _named(prefix: str, first: int, last: int) -> pa.Array:
    """Names that count."""
    return pc.binary_join_element_wise(prefix, pa.array(np.arange(first, last)).cast(pa.string()), "")


def ask(home: Path, question: Question) -> Outcome:
    """Ask about the tiny type, then about the large one, twice."""
    import omnigraph

    graph = omnigraph.open(home, read_only=True)
    graph.query(question.text("Pebble", "touches"))
    baseline = _now()
    text = question.text("Person", "knows")
    start = time.perf_counter()
    result = graph.query(text)
    first = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start = time.perf_counter()
    graph.query(text)
    again = time.perf_counter() - start
    answer = next(iter(result.rows))["n"]
    return Outcome(int(answer), baseline, peak, _now(), int(result.table.nbytes), first, again)


def _now() -> int:
    """The memory of this process at this moment."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def measure(home: Path, edges: int, questions: Sequence[Question], out: Console) -> bool:
    """Ask the questions and print the table; whether all took little enough."""
    table = Table(
        "counting query", title=f"{edges:,} edges, each question in a fresh process", title_justify="left"
    )
    headings = (
        "answer",
        "directions",
        "peak MB",
        "of it before",
        "kept MB",
        "bytes/edge/direction",
        "build, answer s",
    )
    for heading in (*headings, "answer s"):
        table.add_column(heading, justify="right")
    fits = True
    for question in questions:
        outcome = apart(ask, home, question)
        each = (outcome.peak - outcome.baseline - outcome.result) / edges / question.directions
        fits &= each <= _MOST_BYTES
        table.add_row(
            question.name,
            f"{outcome.answer:,}",
            str(question.directions),
            f"{outcome.peak / 1e6:,.0f}",
            f"{outcome.baseline / 1e6:,.0f}",
            f"{(outcome.after - outcome.baseline) / 1e6:,.0f}",
            f"[{'green' if each <= _MOST_BYTES else 'bold red'}]{each:.1f}[/]",
            f"{outcome.first:.1f}",
            f"{outcome.again:.2f}",
        )
    out.print(table)
    return fits


def main() -> int:
    """Build what is missing, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=40_000_000)
    parser.add_argument("--rebuild", action="store_true", help="write the graph again")
    parser.add_argument("--large", action="store_true", help="a hundred million edges, which takes a quarter hour")
    parser.add_argument("--questions", type=int, nargs="*", help="only these, counted from 1")
    options = parser.parse_args()
    if options.large:
        options.edges = 100_000_000
    out = Console(width=140)
    home = kept_graph("topology", build, options.nodes, options.edges, options.rebuild)
    asked = [one for number, one in enumerate(QUESTIONS, 1) if number in (options.questions or range(1, 9))]
    return 0 if measure(home, options.edges, asked, out) else 1


if __name__ == "__main__":
    sys.exit(main())
