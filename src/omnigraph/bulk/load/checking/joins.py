"""Joins over the keys of a load, for keys that exceed the memory of one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn, Protocol

from omnigraph.bulk.load.checking.bad_records import RejectedRow
from omnigraph.bulk.load.checking.checks import Check, CheckResult, StagedLoad
from omnigraph.bulk.masks import ExcludedRows
from omnigraph.bulk.matches import MatchFile
from omnigraph.errors import NotOnSpark


class KeyJoins(Protocol):
    """Joins of the keys of staged and committed rows, spread over all workers of an engine."""

    def check(self, load: StagedLoad, check: Check) -> CheckResult:
        """Run one check for all staged rows of a table."""

    def superseded(self, load: StagedLoad, table_key: str) -> ExcludedRows:
        """The staged rows of a table that a later row with the same id replaces."""

    def replaced(self, load: StagedLoad, table_key: str) -> Sequence[MatchFile]:
        """The matches of staged and committed rows of a table."""

    def rejected(self, load: StagedLoad) -> tuple[ExcludedRows, Mapping[int, Sequence[RejectedRow]]]:
        """The staged rows that break a rule together with other rows, with the reasons, by slice."""


class NoJoins:
    """For a process that has no engine for joins: every check must fit its memory."""

    def check(self, load: StagedLoad, check: Check) -> NoReturn:  # noqa: ARG002
        raise _refusal(check.table_key)

    def superseded(self, load: StagedLoad, table_key: str) -> NoReturn:  # noqa: ARG002
        raise _refusal(table_key)

    def replaced(self, load: StagedLoad, table_key: str) -> NoReturn:  # noqa: ARG002
        raise _refusal(table_key)

    def rejected(self, load: StagedLoad) -> NoReturn:
        raise _refusal(", ".join(load.files))


def _refusal(tables: str) -> NotOnSpark:
    return NotOnSpark(f"checking so many keys in a sink ({tables})", "use Graph.load or Graph.stream, which can")
