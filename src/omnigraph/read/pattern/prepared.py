"""The analysis of a query, which needs neither parameters nor tables: made once, and kept for the next
execution."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.read.pattern.analysis import analyse, as_written
from omnigraph.read.pattern.needs import aggregates_of, entities_of, needed_by, properties_of
from omnigraph.read.pattern.pattern import Pattern
from omnigraph.read.pattern.starts import Starts, starts_of
from omnigraph.read.pattern.subtraction import Signed, signed
from omnigraph.records import dataclass

_KEPT: Final = 512


@dataclass(slots=True, eq=False)
class Latest:
    """What the last execution of a query has settled, for the next one on the same tables."""

    settled: object = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query and its analysis. The patterns are shared between executions: the planner changes copies of them."""

    query: ir.QueryIR
    entities: frozenset[str]
    needed: frozenset[str]
    properties: Mapping[str, set[str]]
    by_lookups: Pattern | None
    """The pattern for look-ups; None if nothing can match."""
    starts: Starts
    """Where look-ups could start."""
    pattern: Pattern
    parts: tuple[Signed, ...]
    latest: Latest = field(default_factory=Latest, compare=False, repr=False)


def prepare(query: ir.QueryIR, catalog: Catalog) -> Prepared:
    """Analyse a query."""
    entities = entities_of(query.pipeline)
    needed = needed_by(query, entities, catalog)
    pattern = analyse(query.pipeline, catalog, needed)
    plain = as_written(query.pipeline, catalog)
    return Prepared(
        query,
        frozenset(entities),
        frozenset(needed),
        properties_of(query),
        None if plain.impossible else plain,
        starts_of(plain, catalog),
        pattern,
        () if pattern.impossible else tuple(signed(pattern, aggregates_of(query))),
    )


class Preparations:
    """The analysed queries of a graph, the most recently used ones. The compiler returns the same IR for the same
    text, so the identity of the IR is the key."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, Prepared] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, query: ir.QueryIR, catalog: Catalog) -> Prepared:
        """The analysis of a query, made if it is not kept."""
        with self._lock:
            found = self._kept.get(id(query))
            if found is not None:
                self._kept.move_to_end(id(query))
                return found
        made = prepare(query, catalog)
        with self._lock:
            # The kept value refers to the query, so that no other query can get its id.
            self._kept[id(query)] = made
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return made
