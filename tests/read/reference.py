"""A second opinion on every read: the IR, interpreted row by row in plain Python over lists and dictionaries.

Nothing here is fast, shared with the engine, or clever. `run` gives all rows of the answer and says whether their
order is the one the language promises.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from tests.read.reference_results import Answer, answer, nested, united
from tests.read.reference_rows import GraphData, Interpreter
from tests.read.reference_search import Embed

from omnigraph.lang.query import ir

MOST_ROWS = 1_000_000


def run(
    query: ir.ReadIR,
    data: GraphData,
    params: Mapping[str, Any],
    now: dt.datetime,
    embed: Embed,
    most: int = MOST_ROWS,
) -> Answer:
    """The answer to a query whose parameters are bound already."""
    interpreter = Interpreter(data, params, now, embed, most)
    if isinstance(query, ir.UnionIR):
        parts = [answer(read, interpreter, interpreter.rows(read.pipeline, [{}])) for read in query.reads]
        return nested(query.columns, united(query, parts, interpreter))
    return nested(query.columns, answer(query, interpreter, interpreter.rows(query.pipeline, [{}])))
