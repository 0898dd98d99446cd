"""What follows from a query alone, before its parameters and tables: worked out once, kept for the next time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.read.pattern.needs import aggregates_of, entities_of, needed_by, properties_of
from omnigraph.read.pattern.pattern import Pattern, analyse, as_written
from omnigraph.read.pattern.subtraction import Signed, signed

_KEPT: Final = 512


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query and what follows from it alone. The patterns are shared: whoever changes one copies it first."""

    query: ir.QueryIR
    entities: frozenset[str]
    needed: frozenset[str]
    properties: Mapping[str, set[str]]
    by_lookups: Pattern | None
    """The pattern for look-ups; None if nothing can match."""
    pattern: Pattern
    parts: tuple[Signed, ...]


def prepare(query: ir.QueryIR, catalog: Catalog) -> Prepared:
    """Work out what follows from a query alone."""
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
        pattern,
        () if pattern.impossible else tuple(signed(pattern, aggregates_of(query))),
    )


class Preparations:
    """The last queries of a graph, by the compiled query: the compiler gives the same one for the same text."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, Prepared] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, query: ir.QueryIR, catalog: Catalog) -> Prepared:
        """What follows from a query, from memory if it was asked before."""
        with self._lock:
            found = self._kept.get(id(query))
            if found is not None:
                self._kept.move_to_end(id(query))
                return found
        made = prepare(query, catalog)
        with self._lock:
            # What is kept holds the query, so that its id stays its own.
            self._kept[id(query)] = made
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return made
