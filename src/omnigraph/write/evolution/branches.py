"""Giving all branches of a graph another schema: all of them get it, or none.

No other writer can commit meanwhile, so that what was checked on every branch stays true. An object that says what
is to be done is written before the first branch is changed. If a process dies on the way, the next one that opens
the graph for writing goes on.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.errors import (
    ConstraintViolation,
    InvalidArgument,
    MigrationError,
    SchemaError,
    SchemaRefused,
    SchemaUnfinished,
    SharedRows,
)
from omnigraph.failpoints import hit
from omnigraph.lang.schema.resolve import compile_schema
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.heal import heal_branch
from omnigraph.storage import layout
from omnigraph.storage.control.sealed import damaged, optional_text, seal, text, texts, unseal
from omnigraph.storage.locks import CommitLock
from omnigraph.write.base import capture
from omnigraph.write.evolution.apply import SchemaChange, SchemaResult, purge
from omnigraph.write.evolution.fills import parse_fills
from omnigraph.write.evolution.plan import SchemaRequest
from omnigraph.write.outcomes import InDoubt, find_out


@dataclass(frozen=True, slots=True)
class _Intent:
    """A schema that all branches are to have, and the branches that were there when that was decided."""

    source: str
    fill: Mapping[str, object]
    allow_data_loss: bool
    actor: str | None
    message: str | None
    branches: tuple[str, ...]

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
            }
        )

    @classmethod
    def decode(cls, content: bytes) -> _Intent:
        stored: dict[str, Any] = unseal(layout.SCHEMA_INTENT, content)
        try:
            return cls(
                text(stored["source"]),
                dict(stored["fill"]),
                stored["allow_data_loss"] is True,
                optional_text(stored["actor"]),
                optional_text(stored["message"]),
                texts(stored["branches"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(layout.SCHEMA_INTENT, error) from error


def apply_to_all(repository: Repository, request: SchemaRequest, fill: Mapping[str, object]) -> list[SchemaResult]:
    """Give every branch a schema, each by a commit of its own. Checked on all of them before any is changed."""
    repository.require_writable()
    finish_intent(repository)
    with repository.locks.control() as lock:
        branches = repository.branches.all()
        names = frozenset(branch.name for branch in branches)
        for branch in branches:
            heal_branch(repository, branch.name, lock)
            try:
                SchemaChange(repository, replace(request, branch=branch), names).check(capture(repository, branch))
            except (MigrationError, ConstraintViolation) as error:
                raise SchemaRefused(branch.name, str(error), error.as_json()) from error
        source = request.desired.source.text
        listed = tuple(branch.name for branch in branches)
        intent = _Intent(source, fill, request.allow_data_loss, request.actor, request.message, listed)
        repository.objects.put(layout.SCHEMA_INTENT, intent.encode())
        hit("schema.after_intent")
        results, doubt = _carry_out(repository, intent, branches, lock)
    if doubt is not None:
        _require_done(repository, results, listed, doubt)
    return results


def pending_intent(repository: Repository) -> tuple[str, ...] | None:
    """The branches of a change of all branches that is not finished; None if there is none."""
    found = repository.objects.get(layout.SCHEMA_INTENT)
    return None if found is None else _Intent.decode(found.content).branches


def finish_intent(repository: Repository) -> None:
    """Go on with a change of all branches that a dead process has left; nothing is done if there is none."""
    if not repository.objects.has(layout.SCHEMA_INTENT):
        return
    with repository.locks.control() as lock:
        found = repository.objects.get(layout.SCHEMA_INTENT)
        if found is None:
            return
        intent = _Intent.decode(found.content)
        branches = [
            branch for branch in repository.branches.all() if _can_follow(repository, intent, branch, lock)
        ]
        results, doubt = _carry_out(repository, intent, branches, lock)
    if doubt is not None:
        _require_done(repository, results, intent.branches, doubt)


def _can_follow(repository: Repository, intent: _Intent, branch: Branch, lock: CommitLock) -> bool:
    """Can a branch still get the schema? A writer may have changed it since the process died that had checked it;
    then the branch stays as it is, which a warning says."""
    if branch.name not in intent.branches:
        return False
    heal_branch(repository, branch.name, lock)
    try:
        change = SchemaChange(repository, intent.request(branch), frozenset(intent.branches))
        change.check(capture(repository, branch))
    except (MigrationError, ConstraintViolation, SchemaError, InvalidArgument, SharedRows) as error:
        text = f"branch '{branch.name}' has changed and cannot get the schema that others have got: {error}"
        warnings.warn(text, RuntimeWarning, stacklevel=4)
        return False
    return True


def _carry_out(
    repository: Repository, intent: _Intent, branches: list[Branch], lock: CommitLock
) -> tuple[list[SchemaResult], InDoubt | None]:
    """Change one branch after the other, as far as the store answers; one that has the schema is left alone."""
    results: list[SchemaResult] = []
    purged: set[str] = set()
    for branch in branches:
        change = SchemaChange(repository, intent.request(branch), frozenset(intent.branches))
        done = change.apply_holding(lock)
        if isinstance(done, InDoubt):
            return results, done
        results.append(done)
        purged |= change.purged
        hit("schema.between_branches")
    purge(repository, purged)
    repository.objects.delete(layout.SCHEMA_INTENT)
    return results, None


def _require_done(
    repository: Repository, results: list[SchemaResult], names: tuple[str, ...], doubt: InDoubt
) -> None:
    """Raise SchemaUnfinished: what becomes of the branch in doubt is found out, and the others are left."""
    done = [result.plan.branch for result in results]
    try:
        find_out(repository, doubt)
        done.append(doubt.sidecar.branch.name)
    except Exception as error:  # noqa: BLE001  whatever it is, the branch is one of those that are left
        reason = str(error)
    else:
        reason = str(doubt.cause)
    left = [name for name in names if name not in done]
    raise SchemaUnfinished(done, left, reason) from doubt.cause
