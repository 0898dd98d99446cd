"""The reader of a graph, shared by all its queries: it runs a query, or plans it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from omnigraph.errors import HistoryReclaimed, StorageError
from omnigraph.lang.parameters import bind_parameters
from omnigraph.lang.query import ir
from omnigraph.lang.query.compile import CompiledRead
from omnigraph.lang.query.explain import show, show_condition, show_union
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.data.cache import Cache, QueryCache
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.execution import Trace, execute, execute_union, plan
from omnigraph.read.limits import Limits
from omnigraph.read.pattern.prepared import Preparations, Prepared
from omnigraph.read.result.nesting import nested
from omnigraph.read.run.expressions import Expressions, this_moment
from omnigraph.records import dataclass
from omnigraph.settings import READ_DEFAULTS, ReadSettings

if TYPE_CHECKING:
    from omnigraph.embed.client import EmbeddingClient

Found = TypeVar("Found")


@dataclass(frozen=True)
class Reader:
    """Answers queries on any snapshot of one graph, with one cache."""

    repository: Repository
    cache: Cache
    embedder: Callable[[], EmbeddingClient | None]
    settings: ReadSettings = READ_DEFAULTS
    preparations: Preparations = field(default_factory=Preparations)

    def exact(self) -> Reader:
        """The same reader, with searches that compare all vectors."""
        return replace(self, settings=replace(self.settings, recall=1.0))

    def run(
        self,
        query: CompiledRead,
        params: Mapping[str, object] | None,
        snapshot: Snapshot,
        limits: Limits,
    ) -> tuple[pa.Table, Trace]:
        """The rows of a read on one snapshot, and how they were found."""
        expressions = self._expressions(query, params)

        def rows(tables: GraphTables) -> tuple[pa.Table, Trace]:
            if isinstance(query.ir, ir.UnionIR):
                reads = [self._prepared(read, snapshot) for read in query.ir.reads]
                return execute_union(query.ir, reads, tables, expressions, limits)
            return execute(self._prepared(query.ir, snapshot), tables, expressions, limits)

        table, trace = self._on_tables(snapshot, limits, rows)
        return nested(query.ir.columns, table), trace

    def plan(self, query: CompiledRead, params: Mapping[str, object] | None, snapshot: Snapshot) -> Trace:
        """The steps that would find the rows of a read."""
        expressions, limits = self._expressions(query, params), Limits(query.name)

        def steps(tables: GraphTables) -> Trace:
            if isinstance(query.ir, ir.UnionIR):
                reads = [self._prepared(read, snapshot) for read in query.ir.reads]
                return Trace(united=[(one.query, plan(one, tables, expressions, limits)) for one in reads])
            return plan(self._prepared(query.ir, snapshot), tables, expressions, limits)

        return self._on_tables(snapshot, limits, steps)

    def _prepared(self, query: ir.QueryIR, snapshot: Snapshot) -> Prepared:
        return self.preparations.of(query, snapshot.catalog)

    def _on_tables(self, snapshot: Snapshot, limits: Limits, work: Callable[[GraphTables], Found]) -> Found:
        cache = QueryCache(self.cache, limits.check)
        try:
            return work(GraphTables(snapshot, self.repository.tables, cache, self.settings))
        except (HistoryReclaimed, StorageError):
            self.repository.require_there(snapshot)
            raise
        finally:
            cache.release()

    def _expressions(self, query: CompiledRead, params: Mapping[str, object] | None) -> Expressions:
        values = bind_parameters(query.name, query.params, params)
        values[ir.NOW] = this_moment()
        return Expressions(query.name, values, self.embedder)


def shown_plan(query: ir.ReadIR, trace: Trace, *, analyze: bool) -> str:
    """The steps that ran, one per line; analysed, with the rows and the time of each."""
    lines = _union_lines(query, trace, analyze) if isinstance(query, ir.UnionIR) else _lines(query, trace, analyze)
    return "\n".join([*lines, *_page_lines(query, trace, analyze)])


def _union_lines(union: ir.UnionIR, trace: Trace, analyze: bool) -> Iterator[str]:
    for read, part in trace.united:
        yield from _lines(read, part, analyze)
    measured = f"  [{trace.rows:,} rows, {trace.finishing * 1e3:.2f} ms]" if analyze else ""
    yield f"{show_union(union)} of {len(trace.united)} reads{measured}"


def _lines(query: ir.QueryIR, trace: Trace, analyze: bool) -> Iterator[str]:
    several = len(trace.parts) > 1
    if not trace.parts:
        yield "Nothing can match"
    for sign, steps in trace.parts:
        if several:
            yield "plus" if sign > 0 else "minus"
        for step in steps:
            measured = f"  [{step.rows:,} rows, {step.seconds * 1e3:.2f} ms]" if analyze else ""
            yield f"{'  ' if several else ''}{step}{measured}"
    if trace.ranking is not None and trace.parts:
        yield f"Rank {', '.join(map(show, query.rankings))}: {trace.ranking}"
    columns = ", ".join(_named(fields) for fields in ir.result_columns(query.columns))
    kind = "Group" if query.aggregates else "Distinct" if query.distinct else "Return"
    measured = f"  [{trace.rows:,} rows, {trace.finishing * 1e3:.2f} ms]" if analyze else ""
    yield f"{kind} {columns}{measured}"
    if query.having:
        yield f"Having {' and '.join(map(show_condition, query.having))}"


def _named(fields: Sequence[ir.Column]) -> str:
    whole = "" if fields[0].field is None else ".*"
    return f"{show(fields[0].expression)}{whole} as {fields[0].name}"


def _page_lines(query: ir.ReadIR, trace: Trace, analyze: bool) -> Iterator[str]:
    if query.order:
        keys = (f"{show(o.expression)}{' desc' if o.descending else ''}" for o in query.order)
        yield f"Order {', '.join(keys)}"
    if query.limit is not None:
        yield f"Limit {show(query.limit)}" + ("" if query.offset is None else f" offset {show(query.offset)}")
    if analyze:
        yield f"Total {trace.seconds * 1e3:.2f} ms, largest intermediate result {trace.peak_bytes:,} bytes"
