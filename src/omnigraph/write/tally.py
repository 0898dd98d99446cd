"""Counting what is wrong with many rows: by reason, and by the ids that are missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from omnigraph.errors import ErrorGroup

_SHOWN: Final = 5
"""How many missing ids a summary names for each reason."""
KEPT: Final = 200
"""How many reasons, and how many missing ids of one, a tally keeps apart."""
_OTHERS: Final = "other reasons"


class Tally:
    """Counts errors by reason. Tallies of several tasks add up; the first group of a reason has the first error.

    Of a reason with more missing ids than are kept, only the most frequent of each task are counted by id.
    """

    def __init__(self, groups: Iterable[ErrorGroup] = ()) -> None:
        self._groups: dict[tuple[str, str], ErrorGroup] = {}
        for group in groups:
            self.add(group)

    def add(self, group: ErrorGroup) -> None:
        """Count some more errors of a reason."""
        if (group.rule, group.reason) not in self._groups and len(self._groups) >= KEPT:
            group = replace(group, reason=_OTHERS)
        key = group.rule, group.reason
        self._groups[key] = _sum(self._groups[key], group) if key in self._groups else group

    def groups(self) -> tuple[ErrorGroup, ...]:
        """All that was counted."""
        return tuple(self._groups.values())

    def summary(self) -> tuple[ErrorGroup, ...]:
        """The groups, the largest first, with only the most frequent of the missing ids."""
        ordered = sorted(self._groups.values(), key=_rank)
        return tuple(replace(group, ids=group.ids[:_SHOWN]) for group in ordered)


def _rank(group: ErrorGroup) -> tuple[int, str, str]:
    """The largest group first; two of one size in an order that does not depend on which task came first."""
    return -group.count, group.reason, group.rule


def _sum(one: ErrorGroup, other: ErrorGroup) -> ErrorGroup:
    by_id = {group.reason: group for group in one.ids}
    for group in other.ids:
        by_id[group.reason] = _sum(by_id[group.reason], group) if group.reason in by_id else group
    ids = sorted(by_id.values(), key=_rank)[:KEPT]
    first = other.first if one.first is None else one.first
    return replace(one, count=one.count + other.count, first=first, ids=tuple(ids))
