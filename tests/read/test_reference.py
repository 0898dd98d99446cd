"""The engine and the reference interpreter agree on random queries over random graphs.

`OMNIGRAPH_QUERY_EXAMPLES=100000` asks for more queries than the default. `make test` runs a quarter of them.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from tests.read.agreement import DEFAULTS, cases, disagreement
from tests.read.shrinking import smallest
from tests.sampling import sampled

from omnigraph.lang.query.compile import compile_read
from omnigraph.settings import ReadSettings, Settings

QUERIES_PER_GRAPH = 25
GRAPHS = int(os.environ.get("OMNIGRAPH_QUERY_EXAMPLES", "2000")) // QUERIES_PER_GRAPH
SCALE = 12
EAGER = Settings(
    read=ReadSettings(
        scan_rows=16,
        piece_rows=7,
        pair_block=3,
        vector_block=5,
        parallel_from=4,
        estimate_from=10,
        visited_cells=40,
        hop_entries=6,
        dense_groups=4,
        pending_groups=5,
        select_from=8,
        encode_from=48,
        order_from=12,
        order_after=2,
        text_bytes=64,
        text_words=8,
    )
)
"""The sizes from which the engine does something else than the plain thing, made small."""


def check(seed: int, count: int, scale: int = 1, settings: Settings = DEFAULTS) -> None:
    """Some queries on a random graph; of the first that differs, the smallest case is shown."""
    for graph, data, case in cases(seed, count, scale, settings):
        problem, _ = disagreement(graph, case.query, data=data)
        if problem:
            pytest.fail(smallest(case, lambda on, query: disagreement(on, query)[0]), pytrace=False)


@pytest.mark.parametrize("seed", sampled(range(GRAPHS), GRAPHS // 10))
def test_the_engine_agrees_with_the_reference(seed: int) -> None:
    check(seed, QUERIES_PER_GRAPH)


@pytest.mark.parametrize("seed", sampled(range(10_000, 10_000 + GRAPHS // 4), GRAPHS // 40 or 1))
def test_shortcuts_for_large_graphs_change_nothing(seed: int) -> None:
    check(seed, QUERIES_PER_GRAPH, 1 if seed % 2 else SCALE, EAGER)


def test_random_queries_are_of_every_kind_and_find_something() -> None:
    """Or else agreeing on them would mean little."""
    kinds = [
        *(
            "not {",
            "exists {",
            "optional {",
            ".*",
            "|",
            "union\n",
            "union all",
            "having {",
            "collect(",
            "{1,",
            "{2,",
            "<link",
            "$e",
            "search(",
            "fuzzy(",
            "bm25(",
            "nearest(",
            "rrf(",
        ),
        *(
            "distinct {",
            "count(distinct",
            "sum(",
            "max(",
            " in [",
            " in $",
            "starts_with",
            "is null",
            "limit $",
            " = $v",
        ),
    ]
    found: Counter[str] = Counter()
    total = 0
    for seed in (*range(1000, 1012), 1029):
        for graph, data, case in cases(seed, QUERIES_PER_GRAPH):
            compile_read(case.query.text, graph.catalog)
            _, answer = disagreement(graph, case.query, lambda *_: ([], []), data)
            total += 1
            if answer is not None and answer.all_rows:
                found.update(["rows", *(kind for kind in kinds if kind in case.query.text)])
    assert found["rows"] > total / 2
    assert [kind for kind in kinds if not found[kind]] == []
