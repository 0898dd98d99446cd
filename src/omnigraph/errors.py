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
    │   ├── BranchProtected    delete: this one must stay
    │   ├── SnapshotNotFound   no commit or manifest version like that
    │   └── HistoryReclaimed   there was one, and maintenance has removed it
    ├── DataError              fix the data
    │   ├── RecordError        records of a load that cannot be read
    │   ├── ConstraintViolation rows that break a rule of the schema
    │   ├── KeyConflict        an id that exists already
    │   ├── EmbeddingUnavailable vectors that cannot be computed
    │   └── ResourceLimit      more than one write may carry
    ├── ConflictError          try again
    │   ├── ManifestConflict   a table moved while the write was prepared
    │   ├── PreconditionFailed the branch is not at the commit the caller named
    │   ├── PublishContention  too many others published at the same time
    │   ├── LockTimeout        another writer held the lock too long
    │   └── LockLost           this writer stalled and its lock was given away
    └── StorageError           ask an operator
        ├── RecoveryBlocked    what a dead writer left cannot be resolved safely
        ├── SidecarUnreadable  what a dead writer left cannot be read
        ├── TableDrift         a table moved without the graph knowing
        ├── StorageUnavailable the store refused or failed
        ├── StoreUnsupported   the store cannot promise one winner
        └── UpgradeRequired    the graph was written by a newer release

Errors are made of fields first and words second: programs read the fields (``as_json``), people read the
message. All of them survive pickling, because they cross process and Spark worker boundaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.problems import Diagnostic as Diagnostic
from omnigraph.problems import RecordProblem as RecordProblem
from omnigraph.problems import Violation as Violation


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


class BranchProtected(RequestError):
    """A branch that must not be deleted."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"branch '{self.name}' cannot be deleted: {self.reason}"


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


class DataError(OmniError):
    """The data does not fit. Nothing of it was written."""


class ConstraintViolation(DataError):
    """Rows that break a rule of the schema. ``violations`` lists the first of them, ``total`` counts all."""

    def __init__(self, violations: Sequence[Violation], total: int) -> None:
        super().__init__(tuple(violations), total)
        self.violations = tuple(violations)
        self.total = total

    def __str__(self) -> str:
        lines = [violation.message for violation in self.violations]
        if self.total > len(lines):
            lines.append(f"… and {self.total - len(lines)} more")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "violations": [v.as_json() for v in self.violations], "total": self.total}


class RecordError(DataError):
    """Records of a load that cannot be read. ``problems`` lists the first of them, ``total`` counts all."""

    def __init__(self, problems: Sequence[RecordProblem], total: int) -> None:
        super().__init__(tuple(problems), total)
        self.problems = tuple(problems)
        self.total = total

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems]
        if self.total > len(lines):
            lines.append(f"… and {self.total - len(lines)} more")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "problems": [p.as_json() for p in self.problems], "total": self.total}


class KeyConflict(DataError):
    """A strict insert of something that exists already."""

    def __init__(self, table_key: str, ids: Sequence[str], total: int) -> None:
        super().__init__(table_key, tuple(ids), total)
        self.table_key = table_key
        self.ids = tuple(ids)
        self.total = total

    def __str__(self) -> str:
        kind, _, name = self.table_key.partition(":")
        shown = ", ".join(f"'{entity}'" for entity in self.ids)
        more = f" and {self.total - len(self.ids)} more" if self.total > len(self.ids) else ""
        return f"{kind} {name} already has this id: {shown}{more}; use merge to replace what is there"

    def as_json(self) -> dict[str, Any]:
        kind, _, name = self.table_key.partition(":")
        conflict = {"entity_kind": kind, "type_name": name, "entity_id": self.ids[0]}
        return {"error": str(self), "code": "conflict", "key_conflict": conflict, "total": self.total}


class EmbeddingUnavailable(DataError):
    """Vectors that have to be computed and cannot be."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class ResourceLimit(DataError):
    """More than one write may carry."""

    def __init__(self, resource: str, limit: int, actual: int) -> None:
        super().__init__(resource, limit, actual)
        self.resource = resource
        self.limit = limit
        self.actual = actual

    def __str__(self) -> str:
        return f"{self.resource}: {self.actual:,} is more than the limit of {self.limit:,}; split the write"

    def as_json(self) -> dict[str, Any]:
        limit = {"resource": self.resource, "limit": self.limit, "actual": self.actual}
        return {"error": str(self), "resource_limit": limit}


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


class PreconditionFailed(ConflictError):
    """The branch is not at the commit the caller named."""

    def __init__(self, branch: str, expected: str, actual: str | None) -> None:
        super().__init__(branch, expected, actual)
        self.branch = branch
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return f"branch '{self.branch}' is at commit {self.actual}, not at {self.expected}; nothing was written"

    def as_json(self) -> dict[str, Any]:
        return {
            "error": str(self),
            "precondition_failure": {"expected": self.expected, "actual": self.actual},
        }


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


class RecoveryBlocked(StorageError):
    """What a dead writer left behind cannot be resolved without losing somebody else's work."""

    def __init__(self, operation_id: str, reason: str) -> None:
        super().__init__(operation_id, reason)
        self.operation_id = operation_id
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"the interrupted write {self.operation_id} cannot be recovered: {self.reason}. Reads still work; "
            "its sidecar is kept for an operator"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "recovery_required": {"operation_id": self.operation_id}}


class SidecarUnreadable(StorageError):
    """A sidecar that is damaged or from a newer release."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.key} cannot be read: {self.reason}. Writes are refused until it is resolved and the file is "
            "kept; reads still work"
        )


class TableDrift(StorageError):
    """A table moved, and neither the manifest nor a sidecar knows why."""

    def __init__(self, table_key: str, expected: int, reason: str) -> None:
        super().__init__(table_key, expected, reason)
        self.table_key = table_key
        self.expected = expected
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"table {self.table_key} has moved past version {self.expected}, which the graph knows: {self.reason}"
        )


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
