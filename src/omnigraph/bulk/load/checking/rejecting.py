"""In which order the rules between rows reject records, whichever engine looks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from omnigraph.bulk.load.checking.bad_records import RejectedRow
from omnigraph.bulk.load.checking.checks import StagedLoad
from omnigraph.bulk.load.options import Mode
from omnigraph.bulk.masks import ExcludedRows

Finder = TypeVar("Finder")
Rejected = dict[int, list[RejectedRow]]
"""Rejected rows by the slice that they come from."""


def rejected_rows(
    load: StagedLoad,
    finders: Callable[[StagedLoad, str], Iterable[Finder]],
    find: Callable[[Finder, StagedLoad, str, Rejected], ExcludedRows],
) -> tuple[ExcludedRows, Rejected]:
    """The staged rows that must be skipped, with the reasons, by slice: nodes first, then edges.

    ``finders`` gives the rules of a table in order, and ``find`` adds the rows that break one. If a rejected row
    was to replace a committed one, that one stays, and other rows may conflict with it. So a merge is searched
    until nothing more is found.
    """
    rows: Rejected = {}
    excluded, found = load.excluded, True
    while found:
        found = False
        for table_key in sorted(load.files, key=lambda key: (key.startswith("edge:"), key)):
            for finder in finders(load, table_key):
                more = find(finder, replace(load, excluded=excluded), table_key, rows)
                excluded = excluded.merged(more)
                found = found or (bool(more) and load.mode is Mode.MERGE)
    return excluded, rows
