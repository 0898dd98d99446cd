"""Schemas, queries, parameters and migrations that are wrong: fix the text or the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.errors.base import OmniError
from omnigraph.problems import Diagnostic


class LanguageError(OmniError):
    """A schema or query that is wrong. ``diagnostics`` lists the problems, ``omitted`` counts those left out."""

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
    """A schema that does not parse, or whose declarations contradict each other."""


class QueryError(LanguageError):
    """A query file that does not parse, or a query that does not fit the schema."""


class ParameterError(OmniError):
    """Values of parameters that are missing or do not fit. ``problems`` maps each parameter to the reason."""

    def __init__(self, query: str, problems: dict[str, str]) -> None:
        super().__init__(query, problems)
        self.query = query
        self.problems = problems

    def __str__(self) -> str:
        listed = "; ".join(f"parameter '{name}' {reason}" for name, reason in self.problems.items())
        return f"cannot run query '{self.query}': {listed}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "query": self.query, "parameters": dict(self.problems)}


class SchemaRefused(OmniError):
    """A schema that one of several branches cannot have. ``details`` are those of the error that says why."""

    def __init__(self, branch: str, reason: str, details: Mapping[str, Any]) -> None:
        super().__init__(branch, reason, dict(details))
        self.branch = branch
        self.reason = reason
        self.details = dict(details)

    def __str__(self) -> str:
        return f"branch '{self.branch}' cannot get the schema, so no branch did: {self.reason}"

    def as_json(self) -> dict[str, Any]:
        return {**self.details, "error": str(self), "branch": self.branch}


class MigrationError(OmniError):
    """A schema change that the existing data does not allow. ``changes`` lists the parts that are refused."""

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
