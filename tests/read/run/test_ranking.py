"""Rankings: every arm of a query is scored once, and every score function of the language has its parts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.formats.columns import table_schema
from omnigraph.lang.query import ir
from omnigraph.lang.query.compile import compile_read
from omnigraph.lang.query.scores import ARMS, SCORES
from omnigraph.lang.query.typecheck.rankings import RULES
from omnigraph.lang.schema.catalog import load_catalog
from omnigraph.read.data.rows import Rows
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame
from omnigraph.read.run.search.ranking import scored
from omnigraph.read.run.search.scorers import SCORERS, RelativeScorer
from omnigraph.read.text.index import TextIndex
from omnigraph.read.values.columns import Column, Positions
from omnigraph.read.values.vectors import VectorColumn

CATALOG = load_catalog("node Doc { slug: String @key  text: String  place: Vector(2) }")
DOCS = [
    {"id": "a", "slug": "a", "text": "red fox", "place": [0.0, 1.0]},
    {"id": "b", "slug": "b", "text": "red red hen", "place": [3.0, 0.0]},
    {"id": "c", "slug": "c", "text": "blue hen", "place": [1.0, 1.0]},
]
TEXT, NEAR = 'bm25($d.text, "red")', "nearest($d.place, [0.0, 0.0])"


class Docs(Rows):
    """The documents, with a note of how often each property was searched."""

    def __init__(self) -> None:
        super().__init__(CATALOG.nodes["Doc"], len(DOCS))
        self.table = pa.Table.from_pylist(DOCS, table_schema(CATALOG.nodes["Doc"]))
        self.searched: Counter[str] = Counter()

    def column(self, name: str) -> Column:
        return Column.of(self.table[name])

    def text_index(self, name: str) -> TextIndex:
        self.searched[name] += 1
        return super().text_index(name)

    def vectors(self, name: str) -> VectorColumn:
        self.searched[name] += 1
        return super().vectors(name)


def ranked(docs: Docs, returned: str, rest: str, positions: Positions) -> tuple[ir.QueryIR, Frame]:
    """A ranking of the documents at the positions."""
    text = f"query q() {{ match {{ $d: Doc }} return {{ {returned} }} {rest} }}"
    query = compile_read(text, CATALOG).ir
    assert isinstance(query, ir.QueryIR)
    return scored(query, Frame.of("d", docs, positions), None, Expressions("q", {}, lambda: None))


@pytest.mark.parametrize("positions", [None, [0, 2, 2, 1, 0, -1]], ids=["whole type", "some rows"])
@pytest.mark.parametrize(
    ("returned", "rest"),
    [
        (f"{TEXT} as t, {NEAR} as n", "order { t } limit 5"),
        (f"{TEXT} as t, {NEAR} as n, rrf({TEXT}, {NEAR}) as r", "order { r } limit 5"),
        (f"rrf({TEXT}, {NEAR}) as r, rrf({NEAR}, {TEXT}, 7) as s", "order { s, r } limit 5"),
        ("$d.slug as slug", f"order {{ rrf({TEXT}, {NEAR}) }} limit 5"),
    ],
)
def test_every_arm_is_scored_once(returned: str, rest: str, positions: list[int] | None) -> None:
    docs = Docs()
    ranked(docs, returned, rest, docs.everything if positions is None else np.array(positions, dtype=np.int32))
    assert docs.searched == {"text": 1, "place": 1}


def test_scores_of_repeated_and_missing_entities() -> None:
    """Entities are ranked, and rows get the score of their entity."""
    docs = Docs()
    positions = np.array([2, 0, 0, -1, 1], dtype=np.int32)
    query, frame = ranked(docs, f"rrf({TEXT}, {NEAR}) as r, {NEAR} as n", "limit 5", positions)
    columns = [
        Expressions("q", {}, lambda: None).arrow(column.expression, frame, pa.float64()).to_pylist()
        for column in query.columns
    ]
    first, second, third = 1 / 61, 1 / 62, 1 / 63
    assert columns[0] == [second, second + first, second + first, None, first + third]
    assert columns[1] == [2**0.5, 1.0, 1.0, None, 3.0]


def test_every_function_has_a_type_rule_and_an_evaluator() -> None:
    assert RULES.keys() == SCORES.keys()
    assert SCORERS.keys() == set(ARMS)
    for scorer in SCORERS.values():
        assert issubclass(scorer, RelativeScorer) == scorer.is_relative
