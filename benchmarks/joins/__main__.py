"""Run the benchmark of joins: `python -m benchmarks.joins`, smaller with `--persons 10000`."""

from __future__ import annotations

import sys

from benchmarks.arena import arguments, compete
from benchmarks.contest import Engine
from benchmarks.engines import DuckDB, OmniGraph
from benchmarks.floor import Floor
from benchmarks.joins.data import generate
from benchmarks.joins.queries import MODEL, QUESTIONS

if __name__ == "__main__":
    engines: list[Engine] = [DuckDB(MODEL), OmniGraph(MODEL), Floor("benchmarks.joins.floor")]
    sys.exit(compete("joins", engines, generate, QUESTIONS, arguments(__doc__, persons=100_000)))
