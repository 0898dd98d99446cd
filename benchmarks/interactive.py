"""Short questions to a large graph: a look-up by key and one hop, through indexes and from memory.

Run with `python -m benchmarks.interactive`. Beside each question stand the plain Lance calls that answer it, on a
handle of the same version, filters and columns alike; both take turns with every key. Through indexes a question
may take twice as long as its Lance calls; from memory it must be faster. The exit code is 1 if one is not.
`--profile` shows where the time of the questions through indexes goes. The graph is kept between runs in the
system's folder for temporary files, by size.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from benchmarks.kept import kept_graph, slices
from rich.console import Console
from rich.table import Table

_WARMUPS: Final = 20
_MOST_TIMES: Final = {"index": 2.0, "memory": 1.0}
SCHEMA: Final = """
node Person { name: String @key  age: I32  city: String }
edge Knows: Person -> Person { since: I32 }
"""
LOOK_UP: Final = """
query look_up($n: String) {
  match { $p: Person { name: $n } }
  return { $p.name as name, $p.age as age, $p.city as city }
}
"""
ONE_HOP: Final = """
query one_hop($n: String) {
  match { $p: Person { name: $n }  $p knows $f }
  return { $f.name as name, $f.age as age }
}
"""
Answer = Callable[[str], pa.Table]


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds per answer: ours and the ones of the Lance calls."""

    question: str
    path: str
    first: float
    ours: Sequence[float]
    lance: Sequence[float]

    @property
    def times(self) -> float:
        """How many times longer ours take."""
        return statistics.median(self.ours) / statistics.median(self.lance)

    @property
    def fits(self) -> bool:
        return self.times <= _MOST_TIMES[self.path]


def build(home: Path, nodes: int, edges: int) -> None:
    """Load the graph and index it."""
    import omnigraph

    graph = omnigraph.init(home, SCHEMA)
    for text in slices(_records(nodes, edges)):
        graph.load(text, mode="append")
    graph.ensure_indices()


def _records(nodes: int, edges: int) -> Iterator[str]:
    for i in range(nodes):
        yield json.dumps({"type": "Person", "data": {"name": f"p{i}", "age": i % 90, "city": f"c{i % 1000}"}})
    random = np.random.default_rng(0)
    for low in range(0, edges, 100_000):
        count = min(100_000, edges - low)
        ends = random.integers(0, nodes, (count, 2)).tolist()
        for number, (source, target) in enumerate(ends):
            data = f'{{"since": {1990 + number % 30}}}'
            yield f'{{"edge": "Knows", "from": "p{source}", "to": "p{target}", "data": {data}}}'


def measure(home: Path, nodes: int, repeats: int) -> list[Measured]:
    """Ask every question by both paths, in turns with Lance."""
    import omnigraph
    from omnigraph.read.plan.access import forced_access

    keys = [f"p{i}" for i in np.random.default_rng(1).integers(0, nodes, _WARMUPS + repeats)]
    found: list[Measured] = []
    for path in ("index", "memory"):
        for name, text in (("look-up by key", LOOK_UP), ("one hop", ONE_HOP)):
            graph = omnigraph.open(home, read_only=True)
            plain = _lance_calls(graph)[name]
            with forced_access("index" if path == "index" else "memory"):
                found.append(_in_turns(name, path, _asking(graph, text), plain, keys))
    return found


def _asking(graph: Any, text: str) -> Answer:
    def ask(key: str) -> pa.Table:
        return graph.query(text, {"n": key}).table

    return ask


def _lance_calls(graph: Any) -> dict[str, Answer]:
    """What a program would write that has nothing but the two datasets."""
    import lance

    pins = graph.snapshot().tables
    people, knows = (
        lance.dataset(f"{graph.address}/{pins[key].location}", version=pins[key].table_version)
        for key in ("node:Person", "edge:Knows")
    )

    def look_up(key: str) -> pa.Table:
        return people.scanner(columns=["name", "age", "city"], filter=f"name = '{key}'").to_table()

    def one_hop(key: str) -> pa.Table:
        reached = knows.scanner(columns=["dst"], filter=f"src = '{key}'").to_table()["dst"].to_pylist()
        if not reached:
            return pa.table({"name": pa.array([], pa.string()), "age": pa.array([], pa.int32())})
        some = ", ".join(f"'{one}'" for one in reached)
        return people.scanner(columns=["name", "age"], filter=f"id in ({some})").to_table()

    return {"look-up by key": look_up, "one hop": one_hop}


def _in_turns(name: str, path: str, ours: Answer, plain: Answer, keys: Sequence[str]) -> Measured:
    """Both answers to every key, now one first and now the other. They must have the same rows."""
    seconds: dict[Answer, list[float]] = {ours: [], plain: []}
    for number, key in enumerate(keys):
        tables: dict[Answer, pa.Table] = {}
        for answer in (ours, plain) if number % 2 == 0 else (plain, ours):
            start = time.perf_counter()
            tables[answer] = answer(key)
            seconds[answer].append(time.perf_counter() - start)
        rows = [sorted(map(str, tables[answer].to_pylist())) for answer in (ours, plain)]
        if rows[0] != rows[1]:
            raise SystemExit(f"{name} of {key}: {rows[0]} here, {rows[1]} from Lance")
    return Measured(name, path, seconds[ours][0], seconds[ours][_WARMUPS:], seconds[plain][_WARMUPS:])


def profile(home: Path, nodes: int, repeats: int) -> None:
    """Where the time of questions through indexes goes."""
    import omnigraph
    from omnigraph.read.plan.access import forced_access

    keys = [f"p{i}" for i in np.random.default_rng(1).integers(0, nodes, _WARMUPS + repeats)]
    graph = omnigraph.open(home, read_only=True)
    for text in (LOOK_UP, ONE_HOP):
        ask, watch = _asking(graph, text), cProfile.Profile()
        with forced_access("index"):
            for key in keys[:_WARMUPS]:
                ask(key)
            watch.enable()
            for key in keys[_WARMUPS:]:
                ask(key)
            watch.disable()
        pstats.Stats(watch).sort_stats("cumulative").print_stats(45)


def show(found: Sequence[Measured], out: Console) -> None:
    """One row per question and path."""
    table = Table("question", "path", title="Milliseconds, tables warm", title_justify="left")
    for heading in ("first", "median", "p95", "Lance median", "Lance p95", "ours / Lance", "at most"):
        table.add_column(heading, justify="right")
    for one in found:
        cuts = [statistics.quantiles(times, n=20) for times in (one.ours, one.lance)]
        numbers = (one.first, cuts[0][9], cuts[0][18], cuts[1][9], cuts[1][18])
        colour = "green" if one.fits else "bold red"
        cells = (f"{number * 1000:,.2f}" for number in numbers)
        limit = f"{_MOST_TIMES[one.path]:.0f}"
        table.add_row(one.question, one.path, *cells, f"[{colour}]{one.times:.2f}[/]", limit)
    out.print(table)


def main() -> int:
    """Build what is missing, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--profile", action="store_true", help="show where the time goes, instead")
    parser.add_argument("--rebuild", action="store_true", help="load the graph again")
    options = parser.parse_args()
    out = Console(width=120)
    home = kept_graph("interactive", build, options.nodes, options.edges, options.rebuild)
    if options.profile:
        profile(home, options.nodes, options.repeats)
        return 0
    found = measure(home, options.nodes, options.repeats)
    out.print(f"{options.nodes:,} nodes, {options.edges:,} edges, medians of {options.repeats} keys")
    show(found, out)
    return 0 if all(one.fits for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
