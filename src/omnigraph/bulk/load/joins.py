"""Checks of keys that do not fit the memory of one task: what a load needs of an engine that can join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn, Protocol

from omnigraph.bulk.load.badrecords import BadRow
from omnigraph.bulk.load.checks import Findings, Ground, Question
from omnigraph.bulk.scratch import Drops, MatchFile
from omnigraph.errors import NotOnSpark


class KeyJoins(Protocol):
    """Joins over the keys of staged and committed rows, spread over all workers."""

    def check(self, ground: Ground, question: Question) -> Findings:
        """Check one rule for all staged rows of a table."""

    def repeated(self, ground: Ground, table_key: str) -> Drops:
        """The staged rows of a table that later ones with the same id replace."""

    def replaced(self, ground: Ground, table_key: str) -> Sequence[MatchFile | None]:
        """Pairs of committed rows of a table and the staged rows with their ids."""

    def bad_rows(self, ground: Ground) -> tuple[Drops, Mapping[int, Sequence[BadRow]]]:
        """The staged rows that break a rule together with others, and why, by slice."""


class NoJoins:
    """For a process that has no engine for joins: every check must fit its memory."""

    def check(self, ground: Ground, question: Question) -> NoReturn:  # noqa: ARG002
        raise _refusal(question.table_key)

    def repeated(self, ground: Ground, table_key: str) -> NoReturn:  # noqa: ARG002
        raise _refusal(table_key)

    def replaced(self, ground: Ground, table_key: str) -> NoReturn:  # noqa: ARG002
        raise _refusal(table_key)

    def bad_rows(self, ground: Ground) -> NoReturn:
        raise _refusal(", ".join(ground.files))


def _refusal(tables: str) -> NotOnSpark:
    return NotOnSpark(f"checking so many keys in a sink ({tables})", "use Graph.load or Graph.stream, which can")
