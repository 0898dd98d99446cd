"""What compiling costs: a ten-line query, cached and not, beside one Lance point look-up in the same run.

Run with `make bench`. Times are medians; only the ratios mean anything on a shared machine.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from omnigraph.lang.query.compile import compile_query, parse_query_file
from omnigraph.lang.schema.catalog import load_catalog
from omnigraph.lang.schema.resolve import compile_schema

EXAMPLE = Path(__file__).parent.parent / "examples" / "aviation"
ROUNDS = 400
ROWS = 1_000_000


def median_us(action: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median time of one call in microseconds."""
    samples = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        action()
        samples.append(time.perf_counter_ns() - start)
    return statistics.median(samples) / 1000


def never_seen(text: str) -> Iterator[str]:
    """The same text again and again, each time one blank longer, so that no cache knows it."""
    while True:
        text += " "
        yield text


def point_lookup(folder: str) -> Callable[[], object]:
    """A look-up of one row by key in a Lance table with a BTREE, handle and index warm."""
    keys = pa.array([f"p{i}" for i in range(ROWS)])
    table = pa.table({"id": keys, "hours": pa.array(range(ROWS), pa.int32())})
    dataset = lance.write_dataset(table, f"{folder}/pilots", max_rows_per_file=100_000)
    dataset.create_scalar_index("id", "BTREE")

    def look_up() -> object:
        return dataset.scanner(columns=["id", "hours"], filter="id = 'p4711'").to_table()

    look_up()
    return look_up


def main() -> None:
    """Measure and print."""
    schema_text = (EXAMPLE / "schema.pg").read_text()
    queries = (EXAMPLE / "queries.gq").read_text()
    ten_lines = queries[: queries.index("\n}") + 3]
    catalog = load_catalog(schema_text)
    fresh_query, fresh_text, fresh_schema = (
        never_seen(ten_lines),
        never_seen(ten_lines),
        never_seen(schema_text),
    )
    compile_query(ten_lines, catalog)
    with tempfile.TemporaryDirectory() as folder:
        look_up = median_us(point_lookup(folder))
    rows = [
        ("Lance point look-up, 1M rows, BTREE, warm", look_up),
        ("compile a ten-line query, uncached", median_us(lambda: compile_query(next(fresh_query), catalog))),
        ("  of which parsing", median_us(lambda: parse_query_file(next(fresh_text)))),
        ("compile a ten-line query, cached", median_us(lambda: compile_query(ten_lines, catalog), 20_000)),
        (
            f"compile a schema of {schema_text.count(chr(10))} lines, uncached",
            median_us(lambda: compile_schema(next(fresh_schema))),
        ),
    ]
    out = Table("what", "median µs", "ratio to the look-up", title="Compiling")
    for what, cost in rows:
        out.add_row(what, f"{cost:,.1f}", f"{cost / look_up:.4f}")
    Console().print(out)


if __name__ == "__main__":
    main()
