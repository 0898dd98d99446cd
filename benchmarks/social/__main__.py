"""Run the social benchmark: `python -m benchmarks.social`, smaller with `--persons 10000`."""

from __future__ import annotations

import sys

from benchmarks.arena import arguments, compete
from benchmarks.engines import peers_and_ours
from benchmarks.floor import Floor
from benchmarks.social.data import generate
from benchmarks.social.queries import MODEL, QUESTIONS

if __name__ == "__main__":
    engines = [*peers_and_ours(MODEL), Floor("benchmarks.social.floor")]
    sys.exit(compete("social", engines, generate, QUESTIONS, arguments(__doc__, persons=100_000)))
