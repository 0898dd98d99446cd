"""What errors are made of: single problems, each complete enough to be shown or sent on its own."""

from __future__ import annotations

import unicodedata
from typing import Any

from omnigraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem in one place of a source text, complete enough to be shown without the text."""

    code: str
    stage: str
    message: str
    source: str
    line: int
    column: int
    excerpt: str
    mark: tuple[int, int]
    help: str | None = None

    @property
    def headline(self) -> str:
        """The problem in one line: stage, code, message."""
        return f"{self.stage}: {self.code}: {self.message}"

    def render(self) -> str:
        """The headline, the place, the source line with the problem underlined, and the remedy."""
        gutter = " " * len(str(self.line))
        start, end = self.mark
        lead = "".join("\t" if c == "\t" else " " * _cells(c) for c in self.excerpt[:start])
        marked = "^" * max(1, sum(_cells(c) for c in self.excerpt[start:end]))
        lines = [
            self.headline,
            f"{gutter}--> {self.source}:{self.line}:{self.column}",
            f"{gutter} |",
            f"{self.line} | {self.excerpt}".rstrip(),
            f"{gutter} | {lead}{marked}",
        ]
        if self.help:
            lines.append(f"{gutter} = help: {self.help}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The fields, for machines."""
        return {
            "code": self.code,
            "stage": self.stage,
            "message": self.message,
            "source": self.source,
            "line": self.line,
            "column": self.column,
            "help": self.help,
        }


@dataclass(frozen=True, slots=True)
class Violation:
    """One row that breaks one rule. ``source`` and ``line`` say where a load found it, if it came from a load."""

    table_key: str
    row_id: str | None
    rule: str
    message: str
    source: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        return self.message if self.source is None else f"{self.source}:{self.line}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "row_id": self.row_id,
            "rule": self.rule,
            "message": self.message,
            "source": self.source,
            "line": self.line,
        }


@dataclass(frozen=True, slots=True)
class RecordProblem:
    """One record of a load that cannot be read, and where it stands."""

    source: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        return {"source": self.source, "line": self.line, "column": self.column, "message": self.message}


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Rows or records that are wrong for the same reason: how many there are, and the first of them.

    If ends of edges are missing, ``ids`` are the most frequent of them, each a group whose reason is the id.
    """

    rule: str
    reason: str
    count: int
    first: Violation | RecordProblem | None = None
    ids: tuple[ErrorGroup, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines(""))

    def _lines(self, indent: str) -> list[str]:
        first = self.first
        place = "" if first is None or first.source is None else f", first at {first.source}:{first.line}"
        own = f"{indent}{self.count} × {self.reason}{place}"
        return [own, *(line for group in self.ids for line in group._lines(indent + "  "))]

    def as_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "reason": self.reason,
            "count": self.count,
            "source": None if self.first is None else self.first.source,
            "line": None if self.first is None else self.first.line,
            "ids": [{**group.as_json(), "id": group.reason} for group in self.ids],
        }


@dataclass(frozen=True, slots=True)
class ClusterProblem:
    """Something that is wrong with a cluster, or that stands against a change of it.

    ``path`` is the place in cluster.yaml, a file, a resource or an object; ``severity`` is `error` or `warning`.
    """

    code: str
    severity: str
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.code}: {self.path}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        """The fields, for machines."""
        return {"code": self.code, "severity": self.severity, "path": self.path, "message": self.message}


def _cells(character: str) -> int:
    """How many terminal cells a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
