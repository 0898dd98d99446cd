"""The engine and the reference interpreter agree on random queries over random graphs.

`OMNIGRAPH_QUERY_EXAMPLES=100000` asks for more queries than the default. `make test` runs a quarter of them.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from tests.read.agreement import DEFAULTS, cases, disagreement
from tests.read.shrinking import smallest
from tests.sampling import quick_and_long, sampled

from omnigraph.lang.query.compile import compile_read
from omnigraph.lang.query.functions.table import FUNCTIONS
from omnigraph.lang.query.scores import SCORES
from omnigraph.lang.query.syntax.expressions import AGGREGATES, TEXT_PREDICATES
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


_FORMS = (
    *("not {", "exists {", "optional {", ".*", "|", "union\n", "union all", "having {", "{1,", "{2,", "<link"),
    *("$e", "distinct {", "count(distinct", "count(*)", "count($e", " in [", " in $", " not in ", " contains "),
    *("not contains ", " starts_with ", "is null", "is not null", "limit $", " = $v", " or ", " and ", "not ("),
    *("case when ", " else ", " end", " + ", " - ", " * ", " / ", " % ", "-(", " days", " month", "now()"),
    *("date(", "datetime("),
    *(f"{name}(" for name in (*FUNCTIONS, *AGGREGATES, *TEXT_PREDICATES, *SCORES)),
)
"""How the forms of the language are written, of which each has to be asked about."""


@pytest.mark.parametrize(("graphs", "share"), quick_and_long((5, 0.7), (40, 1.0)))
def test_random_queries_are_of_every_kind_and_find_something(graphs: int, share: float) -> None:
    """Or else agreeing on them would mean little. A few graphs show most of the forms, and forty all of them."""
    found: Counter[str] = Counter()
    total = 0
    for seed in range(1000, 1000 + graphs):
        for graph, data, case in cases(seed, QUERIES_PER_GRAPH):
            compile_read(case.query.text, graph.catalog)
            _, answer = disagreement(graph, case.query, lambda *_: ([], []), data)
            total += 1
            if answer is not None and answer.all_rows:
                found.update(["rows", *(form for form in _FORMS if form in case.query.text)])
    assert found["rows"] > total / 2
    missing = [form for form in _FORMS if not found[form]]
    assert len(missing) <= len(_FORMS) * (1 - share), missing
