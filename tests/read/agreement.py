"""Does the engine say what the reference says? Random cases, and how two answers differ."""

from __future__ import annotations

import json
import math
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from tests.read.engine import data_of, reference_answer
from tests.read.functions.rows import Uncomputable
from tests.read.graphs import Record, SchemaPlan, random_records, random_schema
from tests.read.queries import random_query
from tests.read.query_parts import Query
from tests.read.reference_results import Answer
from tests.read.reference_rows import GraphData, TooManyRows

import omnigraph
from omnigraph.embed.mock import MockClient
from omnigraph.errors import ComputationFailed, SumOverflow
from omnigraph.graph import Graph
from omnigraph.lang.query import ir
from omnigraph.lang.query.compile import compile_read
from omnigraph.lang.query.explain import explain_ir
from omnigraph.lang.query.functions.table import may_fail
from omnigraph.settings import Settings

Ask = Callable[[Graph, Query], tuple[list[str], list[dict[str, Any]]]]
"""A way to answer a query: the columns and the rows."""
DEFAULTS: Final = Settings()
MOST_ROWS: Final = 2_000
_LIVELY: Final = 3
_SHOWN: Final = 12
_KIND: Final = 60


@dataclass(frozen=True)
class Case:
    """A graph and a query."""

    schema: SchemaPlan
    records: tuple[Record, ...]
    query: Query
    settings: Settings = DEFAULTS


def random_graph(seed: int, scale: int = 1) -> tuple[Random, SchemaPlan, tuple[Record, ...]]:
    """A schema and its data, and the source of randomness to go on with."""
    random = Random(seed)
    schema = random_schema(random)
    return random, schema, tuple(random_records(random, schema, scale))


def loaded(schema: SchemaPlan, records: Sequence[Record], settings: Settings = DEFAULTS) -> Graph:
    """A graph in memory with the records in it."""
    created = omnigraph.init(f"memory://{uuid.uuid4().hex}/g", schema.text)
    graph = omnigraph.open(created.address, embedder=MockClient(), settings=settings)
    graph.load("\n".join(json.dumps(record) for record in records).encode(), mode="append")
    return graph


def ask_engine(graph: Graph, query: Query, **where: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """The engine's answer, of the branch or the snapshot that ``where`` names."""
    result = graph.query(query.text, query.values, **where)
    return result.columns, result.rows


def disagreement(
    graph: Graph, query: Query, ask: Ask = ask_engine, data: GraphData | None = None
) -> tuple[str, Answer | None]:
    """How the engine's answer differs from the reference's, empty if it does not; and the reference's.

    A query that has too many rows on its way for the reference has no answer, and no difference either. One whose
    sum is too large has none for the engine either.
    """
    try:
        expected = reference_answer(graph, query.text, query.values, data=data, most=MOST_ROWS)
    except TooManyRows:
        return "", None
    except Uncomputable:
        return _unanswered(graph, query, ask), None
    except SumOverflow:
        try:
            ask(graph, query)
        except SumOverflow:
            return "", None
        return "an answer, where a sum is too large", None
    try:
        columns, rows = ask(graph, query)
    except ComputationFailed:
        return ("" if checks_what_may_fail(graph, query) else traceback.format_exc(limit=-6)), expected
    except Exception:  # noqa: BLE001  whatever goes wrong is what we look for
        return traceback.format_exc(limit=-6), expected
    if columns != expected.columns:
        return f"columns {columns}, and not {expected.columns}", expected
    return difference(expected, rows), expected


def _unanswered(graph: Graph, query: Query, ask: Ask) -> str:
    """What is wrong with how a query without an answer for the reference ends: with anything but an answer from
    fewer rows, or an error that says so."""
    try:
        ask(graph, query)
    except (ComputationFailed, SumOverflow):
        return ""
    except Exception:  # noqa: BLE001
        return traceback.format_exc(limit=-6)
    return ""


def checks_what_may_fail(graph: Graph, query: Query) -> bool:
    """Has the match a condition that may fail, or an aggregate an argument? The order of conditions is free, and
    aggregates are computed before it is known what is made of them."""
    compiled = compile_read(query.text, graph.catalog).ir
    reads = compiled.reads if isinstance(compiled, ir.UnionIR) else [compiled]
    return any(may_fail(one) for read in reads for one in (*_conditions(read.pipeline), *_arguments(read)))


def _arguments(read: ir.QueryIR) -> Iterator[ir.Expr]:
    every = (*(one.expression for one in read.columns), *read.having, *(one.expression for one in read.order))
    for expression in every:
        yield from (part.argument for part in ir.parts(expression) if isinstance(part, ir.Agg))


def _conditions(operations: Sequence[ir.Operation]) -> Iterator[ir.Filter]:
    for operation in operations:
        match operation:
            case ir.Filter():
                yield operation
            case ir.NodeScan(_, _, filters):
                yield from filters
            case ir.Expand():
                yield from operation.target_filters
            case ir.Optionally(inner) | ir.AntiJoin(_, inner):
                yield from _conditions(inner)


def difference(expected: Answer, rows: Sequence[Mapping[str, Any]]) -> str:
    """How rows differ from what is expected; empty if they do not."""
    actual = [_ordered(expected.columns, row) for row in rows]
    wanted = [_ordered(expected.columns, row) for row in expected.dictionaries]
    if len(actual) != len(wanted):
        return f"{len(actual)} rows, and not {len(wanted)}\n{_both(wanted, actual)}"
    alike = all(map(close, wanted, actual))
    if alike or (expected.ordered and not expected.rounded):
        pass
    elif len(wanted) == len(expected.all_rows):
        alike = all(map(close, sorted(wanted, key=_blurred), sorted(actual, key=_blurred)))
    else:
        whole = replace(expected, offset=0, limit=None)
        every = [_ordered(expected.columns, row) for row in whole.dictionaries]
        alike = _contains(every, actual)
    return "" if alike else f"other rows\n{_both(wanted, actual)}"


def close(one: Any, other: Any) -> bool:
    """Are two values the same, floats nearly?"""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and close(list(one.values()), list(other.values()))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return type(one) is type(other) and bool(one == other)


def _ordered(columns: Sequence[str], row: Mapping[str, Any]) -> list[Any]:
    return [row[name] for name in dict.fromkeys(columns)]


def _blurred(row: Any) -> str:
    """A text to sort by, the same for values that are nearly the same."""
    if isinstance(row, list | tuple):
        return f"[{', '.join(map(_blurred, row))}]"
    if isinstance(row, dict):
        return _blurred(list(row.values()))
    return f"{row + 0.0:.6g}" if isinstance(row, float) else repr(row)


def _contains(every: Sequence[Any], some: Sequence[Any]) -> bool:
    left = list(every)
    for row in some:
        found = next((i for i, other in enumerate(left) if close(row, other)), None)
        if found is None:
            return False
        del left[found]
    return True


def _both(wanted: Sequence[Any], actual: Sequence[Any]) -> str:
    lines = []
    for title, rows in (("expected", wanted), ("actual", actual)):
        more = [f"    … {len(rows)} in all"] if len(rows) > _SHOWN else []
        lines += [f"  {title}:", *(f"    {row}" for row in rows[:_SHOWN]), *more]
    return "\n".join(lines)


def kind_of(problem: str) -> str:
    """What kind of problem it is: the error, or nothing more than that there are other rows."""
    last = problem.rstrip().splitlines()[-1] if problem else ""
    return last[:_KIND] if problem.startswith("Traceback") else "rows" if problem else ""


def report(case: Case, graph: Graph, problem: str) -> str:
    """All there is to know about a case."""
    records = "\n".join(json.dumps(record, ensure_ascii=False) for record in case.records)
    compiled = compile_read(case.query.text, graph.catalog)
    parts = {
        "schema": case.schema.text,
        "data": records,
        "query": case.query.text,
        "params": json.dumps(case.query.values),
        "plan": explain_ir(compiled.ir),
        "problem": problem,
    }
    return "\n" + "\n".join(f"--- {title}\n{text}" for title, text in parts.items())


def cases(
    seed: int, count: int, scale: int = 1, settings: Settings = DEFAULTS
) -> Iterator[tuple[Graph, GraphData, Case]]:
    """Some queries on one random graph."""
    random, schema, records = random_graph(seed, scale)
    graph = loaded(schema, records, settings)
    data = data_of(graph)
    for _ in range(count):
        query = lively_query(random, schema, records, graph, data)
        yield graph, data, Case(schema, records, query, settings)


def lively_query(
    random: Random, schema: SchemaPlan, records: Sequence[Record], graph: Graph, data: GraphData
) -> Query:
    """A random query that has rows, if a few attempts find one."""
    for _ in range(_LIVELY):
        query = random_query(random, schema, records)
        try:
            if reference_answer(graph, query.text, query.values, data=data, most=MOST_ROWS).rows:
                break
        except (TooManyRows, Uncomputable, SumOverflow):
            continue
    return query
