"""Mutations as users request them: one query, its parameters, one commit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.embed.client import EmbeddingClient
from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit
from omnigraph.write.base import Base
from omnigraph.write.mutations.execution import execute
from omnigraph.write.protocol import Prepared, WriteRequest, commit_write
from omnigraph.write.vectors import warn_unembedded


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What a mutation did. ``commit`` is None if it changed nothing."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    commit: Commit | None
    actor_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "query_name": self.query_name,
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            "actor_id": self.actor_id,
            "commit": None if self.commit is None else self.commit.as_json(),
        }


def mutate(
    repository: Repository,
    branch: Branch,
    query: CompiledQuery,
    values: Mapping[str, Value],
    *,
    actor: str | None,
    if_commit: str | None,
    embedder: EmbeddingClient | None,
) -> MutationResult:
    """Run a mutation as one commit, or none if it changes nothing."""
    mutation = query.ir
    assert isinstance(mutation, ir.MutationIR)  # noqa: S101  the caller compiled it as one
    bound = {**values, ir.NOW: _now()}
    counted = [0, 0]
    skipped: set[str] = set()

    def prepare(base: Base) -> Prepared:
        run = execute(mutation, bound, base, embedder)
        counted[:] = [run.affected_nodes, run.affected_edges]
        skipped.update(run.unembedded)
        return Prepared(run.staging.delta(), repeatable=_inserts_only(mutation))

    request = WriteRequest("mutation", branch, actor, if_commit=if_commit)
    commit = commit_write(repository, request, prepare)
    warn_unembedded(skipped)
    return MutationResult(branch.name, query.name, counted[0], counted[1], commit, actor)


def _inserts_only(mutation: ir.MutationIR) -> bool:
    return all(isinstance(op, ir.InsertOp) for op in mutation.ops)


def _now() -> dt.datetime:
    """This instant, to the millisecond, once per mutation."""
    now = dt.datetime.now(dt.UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)
