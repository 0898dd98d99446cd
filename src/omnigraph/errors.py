"""Every error OmniGraph raises, in one tree.

::

    OmniError
    ├── LanguageError          fix the text: each problem has a code, a place and a remedy
    │   ├── SchemaError        a .pg schema does not parse or does not make sense
    │   └── QueryError         a .gq query does not parse, does not type-check or names nothing
    ├── ParameterError         fix the values given for a query's parameters
    └── MigrationError         the schema change cannot be applied to existing data

Errors are made of fields first and words second: programs read the fields (``as_json``), people read the
message. All of them survive pickling, because they cross process and Spark worker boundaries.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


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


class OmniError(Exception):
    """The root of everything OmniGraph raises on purpose."""

    def as_json(self) -> dict[str, Any]:
        """The error as a JSON object."""
        return {"error": str(self)}


class LanguageError(OmniError):
    """A text in one of the two languages is wrong. ``diagnostics`` lists every independent problem found."""

    def __init__(self, diagnostics: Sequence[Diagnostic], omitted: int = 0) -> None:
        super().__init__(tuple(diagnostics), omitted)
        self.diagnostics = tuple(diagnostics)
        self.omitted = omitted

    @property
    def code(self) -> str:
        """The code of the first problem."""
        return self.diagnostics[0].code

    @property
    def line(self) -> int:
        """The line of the first problem, counted from 1."""
        return self.diagnostics[0].line

    @property
    def column(self) -> int:
        """The column of the first problem, counted from 1 in characters."""
        return self.diagnostics[0].column

    def __str__(self) -> str:
        parts = [diagnostic.render() for diagnostic in self.diagnostics]
        if self.omitted:
            parts.append(f"… and {self.omitted} more")
        return "\n\n".join(parts)

    def as_json(self) -> dict[str, Any]:
        return {
            "error": "; ".join(d.headline for d in self.diagnostics),
            "diagnostics": [d.as_json() for d in self.diagnostics],
            "omitted": self.omitted,
        }


class SchemaError(LanguageError):
    """A schema does not parse, or what it declares contradicts itself."""


class QueryError(LanguageError):
    """A query file does not parse, or one of its queries does not fit the schema."""


class ParameterError(OmniError):
    """Values given for a query's parameters are missing or do not fit. ``problems`` maps each name to why."""

    def __init__(self, query: str, problems: dict[str, str]) -> None:
        super().__init__(query, problems)
        self.query = query
        self.problems = problems

    def __str__(self) -> str:
        listed = "; ".join(f"parameter '{name}' {reason}" for name, reason in self.problems.items())
        return f"cannot run query '{self.query}': {listed}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "query": self.query, "parameters": dict(self.problems)}


class MigrationError(OmniError):
    """A schema change that existing data cannot follow. ``changes`` lists what is in the way."""

    def __init__(self, changes: Sequence[dict[str, str]]) -> None:
        super().__init__(tuple(changes))
        self.changes = tuple(changes)

    def __str__(self) -> str:
        first = self.changes[0]
        prefix = f"[{first['code']}] " if first.get("code") else ""
        rest = f" (and {len(self.changes) - 1} more)" if len(self.changes) > 1 else ""
        return f"{prefix}{first['entity']}: {first['reason']}{rest}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "unsupported_changes": [dict(change) for change in self.changes]}


def _cells(character: str) -> int:
    """How many terminal cells a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
