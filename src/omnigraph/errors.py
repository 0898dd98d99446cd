"""Every error OmniGraph raises, in one tree.

::

    OmniError
    ├── LanguageError          fix the text: each problem has a code, a place and a remedy
    │   ├── SchemaError        a .pg schema does not parse or does not make sense
    │   └── QueryError         a .gq query does not parse, does not type-check or names nothing
    ├── ParameterError         fix the values given for a query's parameters
    ├── MigrationError         the schema change cannot be applied to existing data
    ├── RequestError           ask for something that is there
    │   ├── InvalidAddress     that is no place a graph can live
    │   ├── GraphExists        init: there is a graph already
    │   ├── GraphNotFound      open: there is nothing
    │   ├── NotAGraph          open: there is something else, or half a graph
    │   ├── ReadOnlyGraph      the graph was opened for reading
    │   ├── InvalidBranchName  a name that breaks the rules, or clashes with another
    │   ├── BranchExists       create: the name is taken
    │   ├── BranchNotFound     no branch of that name
    │   ├── BranchInUse        delete: other branches descend from it
    │   ├── SnapshotNotFound   no commit or manifest version like that
    │   └── HistoryReclaimed   there was one, and maintenance has removed it
    ├── ConflictError          try again
    │   ├── ManifestConflict   a table moved while the write was prepared
    │   ├── PublishContention  too many others published at the same time
    │   ├── LockTimeout        another writer held the lock too long
    │   └── LockLost           this writer stalled and its lock was given away
    └── StorageError           ask an operator
        ├── StorageUnavailable the store refused or failed
        ├── StoreUnsupported   the store cannot promise one winner
        └── UpgradeRequired    the graph was written by a newer release

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


class RequestError(OmniError):
    """What was asked for is not there, or cannot be had that way."""


class InvalidAddress(RequestError):
    """A graph's address that leads nowhere."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason

    def __str__(self) -> str:
        return f"'{self.address}' is not the address of a graph: {self.reason}"


class _AtGraph(RequestError):
    """An error about one graph, known by its address."""

    said = ""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address

    def __str__(self) -> str:
        return self.said.format(self.address)


class GraphExists(_AtGraph):
    """There is a graph where one was to be created."""

    said = "{} is a graph already; open it, or choose another place"


class GraphNotFound(_AtGraph):
    """There is nothing where a graph was to be opened."""

    said = "there is no graph at {}; create one with `omnigraph init`"


class ReadOnlyGraph(_AtGraph):
    """A write through a graph that was opened for reading."""

    said = "{} was opened read-only; open it without read_only to write"


class NotAGraph(RequestError):
    """There is something where a graph was expected, but it is none."""

    def __init__(self, address: str, reason: str, remedy: str) -> None:
        super().__init__(address, reason, remedy)
        self.address = address
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.address} is not a graph: {self.reason}; {self.remedy}"


class InvalidBranchName(RequestError):
    """A branch name that breaks the rules."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"'{self.name}' cannot be the name of a branch: {self.reason}"


class _AtBranch(RequestError):
    """An error about one branch, known by its name."""

    said = ""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return self.said.format(self.name)


class BranchExists(_AtBranch):
    """A branch was to be created under a name that is taken."""

    said = "branch '{}' exists already; delete it first, or choose another name"


class BranchNotFound(RequestError):
    """A branch that does not exist, and the one that was perhaps meant."""

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        super().__init__(name, suggestion)
        self.name = name
        self.suggestion = suggestion

    def __str__(self) -> str:
        remedy = f"did you mean '{self.suggestion}'?" if self.suggestion else "`omnigraph branch list` shows them"
        return f"there is no branch '{self.name}'; {remedy}"


class BranchInUse(RequestError):
    """A branch that cannot be deleted, because others descend from it."""

    def __init__(self, name: str, descendants: Sequence[str]) -> None:
        super().__init__(name, tuple(descendants))
        self.name = name
        self.descendants = tuple(descendants)

    def __str__(self) -> str:
        return f"branch '{self.name}' is the parent of {', '.join(self.descendants)}; delete those first"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "branch": self.name, "descendants": list(self.descendants)}


class SnapshotNotFound(RequestError):
    """A commit or manifest version that never existed here."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted

    def __str__(self) -> str:
        return f"there is no {self.wanted}; `omnigraph commit list` shows the history"


class HistoryReclaimed(RequestError):
    """A commit or manifest version that existed and has been cleaned away."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted

    def __str__(self) -> str:
        return f"{self.wanted} existed, but cleanup has removed it; choose a newer one"


class ConflictError(OmniError):
    """Somebody else was faster. Nothing of this write is visible; read again and retry."""


class ManifestConflict(ConflictError):
    """A table is not at the version the writer saw: kind `ExpectedVersionMismatch`."""

    kind = "ExpectedVersionMismatch"

    def __init__(self, table_key: str, expected: int, actual: int) -> None:
        super().__init__(table_key, expected, actual)
        self.table_key = table_key
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return (
            f"{self.table_key} is at version {self.actual}, not at {self.expected} as when this was prepared."
            " Nothing was written. Read again and retry, or write on a branch and merge it."
        )

    def as_json(self) -> dict[str, Any]:
        conflict = {"table_key": self.table_key, "expected": self.expected, "actual": self.actual}
        return {"error": str(self), "code": "conflict", "manifest_conflict": conflict}


class PublishContention(ConflictError):
    """The manifest moved at every attempt to publish."""

    def __init__(self, branch: str, attempts: int) -> None:
        super().__init__(branch, attempts)
        self.branch = branch
        self.attempts = attempts

    def __str__(self) -> str:
        return f"branch '{self.branch}' moved at each of {self.attempts} attempts to publish; retry in a moment"


class LockTimeout(ConflictError):
    """Another writer held a lock for longer than this one would wait."""

    def __init__(self, lock: str, seconds: float, holder: str | None = None) -> None:
        super().__init__(lock, seconds, holder)
        self.lock = lock
        self.seconds = seconds
        self.holder = holder

    def __str__(self) -> str:
        holder = f", held by {self.holder}," if self.holder else ""
        return f"the lock '{self.lock}'{holder} was not free within {self.seconds:g} seconds; retry later"


class LockLost(ConflictError):
    """A writer stalled for longer than its lease and may not publish any more."""

    def __init__(self, lock: str) -> None:
        super().__init__(lock)
        self.lock = lock

    def __str__(self) -> str:
        return f"this writer stalled and lost the lock '{self.lock}'; nothing was published, retry"


class StorageError(OmniError):
    """Something outside the graph is wrong; a person has to look at it."""


class StorageUnavailable(StorageError):
    """The store refused an operation or failed."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason

    def __str__(self) -> str:
        return f"the store at {self.address} failed: {self.reason}"


class StoreUnsupported(StorageError):
    """A store without conditional puts, on which two writers could both believe they won."""

    def __init__(self, address: str, store: str) -> None:
        super().__init__(address, store)
        self.address = address
        self.store = store

    def __str__(self) -> str:
        return (
            f"the store {self.store} does not enforce conditional puts, so commits to {self.address} could be lost"
            "; use a store that supports If-None-Match and If-Match"
        )


class UpgradeRequired(StorageError):
    """A graph whose format is from the future."""

    def __init__(self, address: str, found: int, known: int) -> None:
        super().__init__(address, found, known)
        self.address = address
        self.found = found
        self.known = known

    def __str__(self) -> str:
        return (
            f"{self.address} has internal schema {self.found}, and this release knows up to {self.known}; "
            "upgrade omnigraph first"
        )


def _cells(character: str) -> int:
    """How many terminal cells a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
