"""Running a read: plan it for one snapshot, stream its rows, and make the table of its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import field
from functools import partial

import pyarrow as pa

from omnigraph.lang.query import ir
from omnigraph.manifest.state import TablePin
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.limits import Limits
from omnigraph.read.pattern.needs import aggregates_of
from omnigraph.read.pattern.pattern import Pattern
from omnigraph.read.pattern.prepared import Prepared
from omnigraph.read.plan.access import forced_path, lookup_start
from omnigraph.read.plan.estimates import Estimates
from omnigraph.read.plan.planner import arrange, arrange_lookups
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame, joined
from omnigraph.read.run.groups.grouping import Grouping
from omnigraph.read.run.operators import Operators
from omnigraph.read.run.output import Window, group_table, row_table, spread, union_table
from omnigraph.read.run.relations import rows_of
from omnigraph.read.run.search.ranking import scored
from omnigraph.read.run.steps import Step, Tools, stream
from omnigraph.read.run.weights import Weights
from omnigraph.records import dataclass


@dataclass(slots=True)
class Trace:
    """What an execution did: its steps, in parts with a sign where something was counted by subtraction."""

    parts: list[tuple[int, list[Step]]] = field(default_factory=list)
    seconds: float = 0.0
    finishing: float = 0.0
    rows: int = 0
    peak_bytes: int = 0
    united: list[tuple[ir.QueryIR, Trace]] = field(default_factory=list)
    """Of a union: its reads, and what the execution of each did."""
    ranking: str | None = None
    """How scores choose the first rows; None if a step has chosen them, or there are no scores."""


class _EnoughRows(Exception):
    """The limit of the query is reached."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Steps whose rows are added (sign 1) or subtracted (-1). ``merged`` maps variables to those they became."""

    sign: int
    steps: list[Step]
    merged: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Route:
    """One way to find the rows of a query: its operators and its steps."""

    tools: Tools
    parts: list[_Part]
    pattern: Pattern


@dataclass(frozen=True, slots=True, eq=False)
class _Settled:
    """What was found out about a query on the tables of one snapshot and holds for the next execution: that all it
    needs is in memory, until something is dropped; and its steps, unless they depend on its parameters."""

    tables: Mapping[str, TablePin]
    whole_until: int | None
    steps: list[list[Step]] | None


def plan(prepared: Prepared, tables: GraphTables, expressions: Expressions, limits: Limits) -> Trace:
    """The steps that would run, without running them."""
    window = Window(prepared.query, expressions)
    route = _by_indexes(prepared, tables, expressions, limits, window)
    if route is None:
        route = _in_memory(prepared, tables, expressions, limits)
    return Trace([(part.sign, part.steps) for part in route.parts], ranking=_ranking(prepared, route, window))


def execute(
    prepared: Prepared, tables: GraphTables, expressions: Expressions, limits: Limits
) -> tuple[pa.Table, Trace]:
    """The rows of a query on the tables of one snapshot."""
    began = time.perf_counter()
    window = Window(prepared.query, expressions)
    dropped = tables.cache.dropped
    route = _by_indexes(prepared, tables, expressions, limits, window)
    is_whole = route is None and not prepared.query.rankings and forced_path() is None
    answer = None
    if route is not None:
        answer = _looked_up(prepared, route, window)
    if answer is None:
        answer = _answer(prepared, _in_memory(prepared, tables, expressions, limits), window)
    table, trace = answer
    if is_whole:
        _note_whole(prepared, tables, dropped)
    limits.check()
    trace.rows, trace.peak_bytes = table.num_rows, limits.peak
    trace.seconds = time.perf_counter() - began
    return table, trace


def _looked_up(prepared: Prepared, route: _Route, window: Window) -> tuple[pa.Table, Trace] | None:
    """The rows of a query by the indexes of its tables; None if that would take too many of them."""
    from omnigraph.read.run.lookups import TooManyLookups

    try:
        return _answer(prepared, route, window)
    except TooManyLookups:
        return None


def execute_union(
    union: ir.UnionIR, prepared: Sequence[Prepared], tables: GraphTables, expressions: Expressions, limits: Limits
) -> tuple[pa.Table, Trace]:
    """The rows of all reads of a union, on the tables of one snapshot."""
    began = time.perf_counter()
    window = Window(union.whole, expressions)
    answers = [execute(one, tables, expressions, limits) for one in prepared]
    finished = time.perf_counter()
    operators = Operators(tables, expressions, limits)
    table = union_table(union, [rows for rows, _ in answers], window, operators)
    limits.check()
    ended = time.perf_counter()
    return table, Trace(
        seconds=ended - began,
        finishing=ended - finished,
        rows=table.num_rows,
        peak_bytes=limits.peak,
        united=[(one.query, trace) for one, (_, trace) in zip(prepared, answers, strict=True)],
    )


def _ranking(prepared: Prepared, route: _Route, window: Window) -> str | None:
    if not prepared.query.rankings:
        return None
    from omnigraph.read.plan.searching import way_of_ranking
    from omnigraph.read.run.lookups import Lookups

    if isinstance(route.tools.operators, Lookups):
        return None
    return way_of_ranking(prepared.query, route.pattern, route.tools.operators.tables, window.stop or 0)


def _by_indexes(
    prepared: Prepared, tables: GraphTables, expressions: Expressions, limits: Limits, window: Window
) -> _Route | None:
    """The route through the indexes of the tables, if that is the better one."""
    pattern, query = prepared.by_lookups, prepared.query
    settled = _settled(prepared, tables)
    if settled is not None and settled.whole_until == tables.cache.dropped and forced_path() is None:
        return None
    if pattern is None or (query.rankings and _needs_whole_tables(query)):
        return None
    search = _nearest_search(query, pattern, tables, window) if query.rankings else None
    start = lookup_start(pattern, prepared.starts, tables) if search is None else None
    if search is None and start is None:
        return None
    from omnigraph.read.run.lookups import Lookups

    operators = Lookups(tables, expressions, limits, prepared.properties, bounded=forced_path() is None)
    tools = Tools(operators, Weights(tables, expressions, limits))
    steps: list[Step] = [] if search is None else [search]
    if start is not None:
        steps = arrange_lookups(pattern.copy(), prepared.needed, start, tools)
    return _Route(tools, [_Part(1, steps, {})], pattern)


def _needs_whole_tables(query: ir.QueryIR) -> bool:
    from omnigraph.read.run.search.scorers import needs_whole_tables

    return needs_whole_tables(query)


def _nearest_search(query: ir.QueryIR, pattern: Pattern, tables: GraphTables, window: Window) -> Step | None:
    """The step that looks up the nearest rows by an index of vectors; None if they are found in another way."""
    from omnigraph.read.plan.searching import nearest_search

    return nearest_search(query, pattern, tables, window.stop or 0)


def _in_memory(prepared: Prepared, tables: GraphTables, expressions: Expressions, limits: Limits) -> _Route:
    """The route through whole tables in memory."""
    tools = Tools(Operators(tables, expressions, limits), Weights(tables, expressions, limits))
    settled = _settled(prepared, tables)
    steps = None if settled is None else settled.steps
    if steps is None:
        estimates = Estimates(tables, expressions)
        steps = []
        for _, part, merged in prepared.parts:
            wanted = {merged.get(name, name) for name in prepared.needed}
            steps.append(arrange(part, wanted, tools, estimates))
        if not estimates.is_particular:
            prepared.latest.settled = _Settled(tables.snapshot.tables, None, steps)
    parts = [
        _Part(sign, [step.again() for step in own], merged)
        for own, (sign, _, merged) in zip(steps, prepared.parts, strict=True)
    ]
    return _Route(tools, parts, prepared.pattern)


def _settled(prepared: Prepared, tables: GraphTables) -> _Settled | None:
    """What holds of a query on the tables of this snapshot."""
    found = prepared.latest.settled
    return found if isinstance(found, _Settled) and found.tables is tables.snapshot.tables else None


def _note_whole(prepared: Prepared, tables: GraphTables, dropped: int) -> None:
    """Note that all a query needs is in memory, and was chosen to be."""
    settled = _settled(prepared, tables)
    if settled is None or settled.whole_until != dropped:
        steps = None if settled is None else settled.steps
        prepared.latest.settled = _Settled(tables.snapshot.tables, dropped, steps)


def _answer(prepared: Prepared, route: _Route, window: Window) -> tuple[pa.Table, Trace]:
    """Run a route, and make the table of its rows."""
    query, needed = prepared.query, prepared.needed
    operators, trace = route.tools.operators, Trace([(part.sign, part.steps) for part in route.parts])
    trace.ranking = _ranking(prepared, route, window)
    expressions, limits, tables = operators.expressions, operators.limits, operators.tables
    if not (query.aggregates or query.distinct):
        frame = _collected(route, needed, None if query.order else window.stop)
        finished = time.perf_counter()
        table = row_table(query, frame, sorted(needed & prepared.entities), window, operators)
        trace.finishing = time.perf_counter() - finished
        return table, trace
    has_scores = bool(query.rankings)
    if has_scores:
        rows = spread(_collected(route, needed, None), None, limits)
        query, matched = scored(query, rows, None, expressions)
    keys = [c.expression for c in query.columns if not ir.is_aggregate(c.expression)]
    grouping = Grouping(keys, aggregates_of(query), tables.catalog, expressions, limits, tables.settings)
    if has_scores:
        grouping.consume(matched)
    else:
        for part in route.parts:
            _run(part, route.tools, partial(grouping.consume, sign=part.sign))
    finished = time.perf_counter()
    groups = grouping.finish()
    limits.hold(groups.frame.nbytes)
    table = group_table(query, groups, window, expressions)
    trace.finishing = time.perf_counter() - finished
    return table, trace


def _collected(route: _Route, needed: Set[str], limit: int | None) -> Frame:
    """All rows, or the first ones up to a limit, if their order does not matter."""
    frames: list[Frame] = []
    total = 0

    def consume(frame: Frame) -> None:
        nonlocal total
        kept = frame.only(needed)
        route.tools.operators.limits.hold(kept.nbytes)
        frames.append(kept)
        total += frame.total
        if limit is not None and total >= limit:
            raise _EnoughRows

    with suppress(_EnoughRows):
        for part in route.parts:
            _run(part, route.tools, consume)
    return joined(frames) if frames else _nothing(route.pattern, needed, route.tools)


def _nothing(pattern: Pattern, needed: Set[str], tools: Tools) -> Frame:
    """A frame without rows that has the needed variables."""
    frame, tables = Frame(0), tools.operators.tables
    for name, node in pattern.nodes.items():
        rows = rows_of(tables, node)
        frame = frame.bind(name, rows, rows.everything[:0])
    for link in pattern.links:
        if link.edge_variable is not None:
            edges = tables.edges(link.edge_type)
            frame = frame.bind(link.edge_variable, edges, edges.everything[:0])
    return tools.operators.run(tuple(pattern.rest), frame).only(needed)


def _run(part: _Part, tools: Tools, consume: Callable[[Frame], None]) -> None:
    """Stream the rows of a part."""

    def restore(frame: Frame) -> None:
        for name, other in part.merged.items():
            if other in frame.positions:
                frame = frame.bind(name, frame.rows[other], frame.positions[other])
        consume(frame)

    stream(part.steps, Frame(1), tools, restore)
