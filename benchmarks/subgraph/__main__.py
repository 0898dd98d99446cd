"""Run the subgraph benchmark: `python -m benchmarks.subgraph`, smaller with `--persons 2000`."""

from __future__ import annotations

import sys

from benchmarks.arena import arguments, compete
from benchmarks.engines import peers_and_ours
from benchmarks.floor import Floor
from benchmarks.subgraph.data import generate
from benchmarks.subgraph.queries import MODEL, QUESTIONS

if __name__ == "__main__":
    engines = [*peers_and_ours(MODEL), Floor("benchmarks.subgraph.floor")]
    sys.exit(compete("subgraph", engines, generate, QUESTIONS, arguments(__doc__, persons=20_000)))
