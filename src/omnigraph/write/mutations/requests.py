"""`mutate`: one mutation query with its parameters becomes one commit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.embed.client import EmbeddingClient
from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.query.compile import CompiledMutation
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit
from omnigraph.settings import WriteSettings
from omnigraph.write.base import Base
from omnigraph.write.committing.entry import Entry
from omnigraph.write.mutations.execution import Executed, execute
from omnigraph.write.protocol import Prepared, WriteRequest, commit_write
from omnigraph.write.vectors import warn_unembedded


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What a mutation changed. ``commit`` is None if it changed nothing."""

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
    entry: Entry,
    query: CompiledMutation,
    values: Mapping[str, Value],
    *,
    actor: str | None,
    if_commit: str | None,
    graph_commit_id: str | None,
    embedder: EmbeddingClient | None,
    settings: WriteSettings,
    copied: Mapping[str, bytes],
) -> MutationResult:
    """Run a mutation as one commit on a branch, or none if it changes nothing.

    The query was compiled for the schema of the state that the branch was found at: SchemaChanged if the branch
    has another by now. ``copied`` has the bytes at the addresses that it assigns to blobs.
    """
    bound = {**values, ir.NOW: _now()}

    def prepare(base: Base) -> Prepared[Executed]:
        run = execute(query.ir, bound, base, embedder, settings.mutation_bytes, copied)
        inserts_only = _inserts_only(query.ir)
        return Prepared(run.pending.delta(), run, repeatable=inserts_only, is_blind=inserts_only)

    branch, state = entry.branch, entry.snapshot
    request = WriteRequest(
        "mutation",
        branch,
        actor,
        if_commit=if_commit,
        graph_commit_id=graph_commit_id,
        entry=entry,
        is_quick=embedder is None or not _embeds(query.ir, state.catalog),
        compiled_for=state,
    )
    written = commit_write(repository, request, prepare)
    run = written.result
    warn_unembedded(run.unembedded)
    return MutationResult(branch.name, query.name, run.affected_nodes, run.affected_edges, written.commit, actor)


def _inserts_only(mutation: ir.MutationIR) -> bool:
    return all(isinstance(op, ir.InsertOp) for op in mutation.ops)


def _embeds(mutation: ir.MutationIR, catalog: Catalog) -> bool:
    """Are there types among those it writes whose vectors are computed?"""
    return any(op.type_name in catalog.nodes and catalog.nodes[op.type_name].embeds for op in mutation.ops)


def _now() -> dt.datetime:
    """The current time, to the millisecond that a DateTime can hold."""
    now = dt.datetime.now(dt.UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)
