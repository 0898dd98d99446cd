"""Giving all branches of a graph another schema: all of them get it, or none.

No other writer can commit meanwhile, so that what was checked on every branch stays true. An object that says what
is to be done is written before the first branch is changed. If a process dies on the way, the next one that opens
the graph for writing goes on.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ulid import ULID

from omnigraph.errors import (
    ConstraintViolation,
    InvalidArgument,
    MigrationError,
    OmniError,
    SchemaError,
    SchemaRefused,
    SchemaUnfinished,
    SharedRows,
)
from omnigraph.failpoints import hit
from omnigraph.lang.schema.resolve import compile_schema
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.audit import AuditLog, Recovery
from omnigraph.recovery.heal import can_arrive_late, heal_branch
from omnigraph.storage import layout
from omnigraph.storage.control.sealed import damaged, optional_text, seal, text, texts, unseal
from omnigraph.storage.locks import CommitLock
from omnigraph.write.base import capture
from omnigraph.write.committing.outcomes import InDoubt, find_out
from omnigraph.write.evolution.apply import WRITER, SchemaChange, SchemaResult, purge
from omnigraph.write.evolution.fills import parse_fills
from omnigraph.write.evolution.plan import SchemaRequest

NOT_FOLLOWED: Final = "SchemaNotFollowed"
"""The kind of recovery that leaves a branch without the schema that all branches were to get."""


@dataclass(frozen=True, slots=True)
class _Intent:
    """A schema that all branches are to have, and the branches that were there when that was decided."""

    source: str
    fill: Mapping[str, object]
    allow_data_loss: bool
    actor: str | None
    message: str | None
    branches: tuple[str, ...]
    schemas: Mapping[str, str | None] = field(default_factory=dict)
    """The digests of the schemas that the branches had."""
    operation_id: str = field(default_factory=lambda: str(ULID()))

    def request(self, branch: Branch) -> SchemaRequest:
        return SchemaRequest(
            branch,
            compile_schema(self.source, "<schema>"),
            parse_fills(self.fill),
            self.allow_data_loss,
            self.actor,
            self.message,
        )

    def encode(self) -> bytes:
        return seal(
            {
                "source": self.source,
                "fill": dict(self.fill),
                "allow_data_loss": self.allow_data_loss,
                "actor": self.actor,
                "message": self.message,
                "branches": list(self.branches),
                "schemas": dict(self.schemas),
                "operation_id": self.operation_id,
            }
        )

    @classmethod
    def decode(cls, content: bytes) -> _Intent:
        """What was written; intents of older releases have neither schemas nor an id."""
        stored: dict[str, Any] = unseal(layout.SCHEMA_INTENT, content)
        try:
            return cls(
                text(stored["source"]),
                dict(stored["fill"]),
                stored["allow_data_loss"] is True,
                optional_text(stored["actor"]),
                optional_text(stored["message"]),
                texts(stored["branches"]),
                {text(name): optional_text(digest) for name, digest in stored.get("schemas", {}).items()},
                text(stored.get("operation_id", str(ULID()))),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise damaged(layout.SCHEMA_INTENT, error) from error


def apply_to_all(repository: Repository, request: SchemaRequest, fill: Mapping[str, object]) -> list[SchemaResult]:
    """Give every branch a schema, each by a commit of its own. Checked on all of them before any is changed.

    If the store fails after that, SchemaUnfinished says which branches have the schema; the others follow when the
    graph is opened for writing.
    """
    repository.require_writable()
    finish_intent(repository)
    with repository.locks.control() as lock:
        branches = repository.branches.all()
        names = frozenset(branch.name for branch in branches)
        schemas: dict[str, str | None] = {}
        for branch in branches:
            heal_branch(repository, branch.name, lock)
            base = capture(repository, branch)
            schemas[branch.name] = base.snapshot.schema_digest
            try:
                SchemaChange(repository, replace(request, branch=branch), names).check(base)
            except (MigrationError, ConstraintViolation) as error:
                raise SchemaRefused(branch.name, str(error), error.as_json()) from error
        source = request.desired.source.text
        listed = tuple(branch.name for branch in branches)
        intent = _Intent(source, fill, request.allow_data_loss, request.actor, request.message, listed, schemas)
        _write_intent(repository, intent)
        hit("schema.after_intent")
        work = _carry_out(repository, intent, branches, lock)
    return _finished(repository, intent, work)


def _write_intent(repository: Repository, intent: _Intent) -> None:
    """Write down what is to be done. If that fails and it cannot be taken back, SchemaUnfinished."""
    try:
        repository.objects.put(layout.SCHEMA_INTENT, intent.encode())
    except OmniError as error:
        try:
            repository.objects.delete(layout.SCHEMA_INTENT)
        except OmniError:
            raise SchemaUnfinished([], intent.branches, str(error)) from error
        if can_arrive_late(repository):
            raise SchemaUnfinished([], intent.branches, str(error)) from error
        raise


def pending_intent(repository: Repository) -> tuple[str, ...] | None:
    """The branches of a change of all branches that is not finished; None if there is none."""
    found = repository.objects.get(layout.SCHEMA_INTENT)
    return None if found is None else _Intent.decode(found.content).branches


def finish_intent(repository: Repository) -> None:
    """Go on with a change of all branches that a dead process has left; nothing is done if there is none.

    A branch that can no longer get the schema stays as it is. A warning says so, and a row of the record of
    recoveries keeps it.
    """
    if not repository.objects.has(layout.SCHEMA_INTENT):
        return
    with repository.locks.control() as lock:
        found = repository.objects.get(layout.SCHEMA_INTENT)
        if found is None:
            return
        intent = _Intent.decode(found.content)
        followers = []
        for branch in repository.branches.all():
            if branch.name not in intent.branches:
                continue
            reason = _reason_to_stay(repository, intent, branch, lock)
            if reason is None:
                followers.append(branch)
            else:
                _note_left(repository, intent, branch, reason)
        work = _carry_out(repository, intent, followers, lock)
    _finished(repository, intent, work)


def _reason_to_stay(repository: Repository, intent: _Intent, branch: Branch, lock: CommitLock) -> str | None:
    """Why a branch cannot get the schema any more: writers may have changed it since it was checked."""
    heal_branch(repository, branch.name, lock)
    base = capture(repository, branch)
    try:
        change = SchemaChange(repository, intent.request(branch), frozenset(intent.branches))
        plan, _ = change.check(base)
    except (MigrationError, ConstraintViolation, SchemaError, InvalidArgument, SharedRows) as error:
        return str(error)
    is_as_checked = intent.schemas.get(branch.name, base.snapshot.schema_digest) == base.snapshot.schema_digest
    return "it has got another schema since" if plan.steps.steps and not is_as_checked else None


def _note_left(repository: Repository, intent: _Intent, branch: Branch, reason: str) -> None:
    """Say, now and in the record of recoveries, that a branch does not get the schema that others have got."""
    AuditLog(repository.tables).record(
        Recovery(
            f"{intent.operation_id}.{branch.name}",
            NOT_FOLLOWED,
            WRITER,
            intent.actor,
            branch.name,
            None,
            {"schema": reason},
            dt.datetime.now(dt.UTC),
        )
    )
    text = (
        f"branch '{branch.name}' cannot get the schema that all branches were to get: {reason}. It keeps its own, "
        "and `omnigraph recovery list` keeps this; mend it, then apply the schema to the branch"
    )
    warnings.warn(text, RuntimeWarning, stacklevel=5)


def _carry_out(repository: Repository, intent: _Intent, branches: list[Branch], lock: CommitLock) -> _Work:
    """Change one branch after the other, as far as the store answers; one that has the schema is left alone."""
    results: list[SchemaResult] = []
    purged: set[str] = set()
    for branch in branches:
        change = SchemaChange(repository, intent.request(branch), frozenset(intent.branches))
        try:
            done = change.apply_holding(lock)
        except OmniError as error:
            return _Work(results, error)
        if isinstance(done, InDoubt):
            return _Work(results, done)
        results.append(done)
        purged |= change.purged
        hit("schema.between_branches")
    purge(repository, purged)
    try:
        repository.objects.delete(layout.SCHEMA_INTENT)
    except OmniError as error:
        text = f"all branches have the schema, but {layout.SCHEMA_INTENT} could not be removed ({error}); "
        warnings.warn(
            f"{text}the next process that opens the graph for writing will", RuntimeWarning, stacklevel=4
        )
    return _Work(results)


@dataclass(frozen=True, slots=True)
class _Work:
    """The branches that were changed, and what ended the work before all were."""

    results: list[SchemaResult]
    end: InDoubt | OmniError | None = None


def _finished(repository: Repository, intent: _Intent, work: _Work) -> list[SchemaResult]:
    """What was done on each branch; SchemaUnfinished if some are left. The caller holds no lock."""
    if work.end is None:
        return work.results
    done = [result.plan.branch for result in work.results]
    cause = _cause(repository, work.end, done)
    left = [name for name in intent.branches if name not in done]
    raise SchemaUnfinished(done, left, str(cause)) from cause


def _cause(repository: Repository, end: InDoubt | OmniError, done: list[str]) -> Exception:
    """The error that ended the work. A branch in doubt is found out about, and added to ``done`` if it has the
    schema."""
    if not isinstance(end, InDoubt):
        return end
    try:
        find_out(repository, end)
    except Exception as error:  # noqa: BLE001  whatever it is, the branch is one of those that are left
        return error
    done.append(end.sidecar.branch.name)
    return end.cause
