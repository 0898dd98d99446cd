"""Creating and opening graphs, and making them from backups."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from omnigraph.arguments import LONGEST_ACTOR, optional_text, text_argument
from omnigraph.graph import Graph
from omnigraph.lang.source import Source
from omnigraph.manifest.repository import Repository, open_existing
from omnigraph.read.data.cache import Cache
from omnigraph.settings import Settings
from omnigraph.storage import layout
from omnigraph.storage.address import Address, parse_address

if TYPE_CHECKING:
    from omnigraph.embed.client import EmbeddingClient
    from omnigraph.maintenance.copying.backup import Backup
    from omnigraph.maintenance.copying.clone import CopyReport
    from omnigraph.maintenance.copying.transfer import CopyEvent
    from omnigraph.maintenance.doctor.report import DoctorReport, ProgressListener
    from omnigraph.policy.guard import Guard
    from omnigraph.policy.policy import Policy


def init(
    uri: str | os.PathLike[str],
    schema: str,
    *,
    actor: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    force: bool = False,
    settings: Settings | None = None,
) -> Graph:
    """Create a graph with a schema. Refuses a place that holds a graph."""
    return create_graph(
        uri,
        Source(text_argument("schema", schema), "<schema>"),
        actor=actor,
        storage_options=storage_options,
        force=force,
        settings=settings,
    )


def create_graph(
    uri: str | os.PathLike[str],
    schema: Source,
    *,
    actor: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    force: bool = False,
    settings: Settings | None = None,
) -> Graph:
    """Create a graph with a schema whose mistakes are to be shown under the schema's own name."""
    from omnigraph.lang.schema.resolve import compile_schema
    from omnigraph.manifest.repository import create

    optional_text("actor", actor, LONGEST_ACTOR)
    address = parse_address(uri, storage_options)
    compiled = compile_schema(schema.text, schema.name)
    return Graph(create(address, compiled, actor=actor, force=force), actor=actor, settings=settings)


def open(  # noqa: A001  the public name is omnigraph.open
    uri: str | os.PathLike[str],
    *,
    read_only: bool = False,
    actor: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    embedder: EmbeddingClient | None = None,
    cache_bytes: int | None = None,
    settings: Settings | None = None,
    policy: Policy | str | os.PathLike[str] | None = None,
) -> Graph:
    """Open a graph. Read-only never writes to the store; otherwise interrupted writes are resolved first.

    ``cache_bytes`` is the memory that queries may keep between them: without it what `OMNIGRAPH_CACHE_BYTES` says,
    or a quarter of the machine's. ``settings`` are sizes at which the engine changes its ways. A ``policy``, or
    the file of one, decides about all that is done with the graph; it has to know the ``actor`` then.
    """
    optional_text("actor", actor, LONGEST_ACTOR)
    guard = None if policy is None else _guard(policy)
    repository = open_existing(parse_address(uri, storage_options), read_only=read_only)
    if not read_only:
        _resolve_interrupted(repository)
    cache = Cache(cache_bytes)
    return Graph(repository, actor=actor, embedder=embedder, cache=cache, settings=settings, guard=guard)


def _guard(policy: Policy | str | os.PathLike[str]) -> Guard:
    from omnigraph.policy.guard import Guard
    from omnigraph.policy.policy import Policy, read_policy

    return Guard(policy if isinstance(policy, Policy) else read_policy(policy))


def _resolve_interrupted(repository: Repository) -> None:
    """Finish or undo the writes and the changes of the schema that dead processes left."""
    from omnigraph.recovery.heal import sweep

    sweep(repository)
    if repository.objects.has(layout.SCHEMA_INTENT):
        from omnigraph.write.evolution.branches import finish_intent

        finish_intent(repository)


def doctor(
    uri: str | os.PathLike[str],
    *,
    quick: bool = False,
    branch: str | None = None,
    checks: Iterable[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    listener: ProgressListener | None = None,
) -> DoctorReport:
    """Examine a graph as `Graph.doctor` does, also one that is too damaged to be opened."""
    from omnigraph.maintenance.doctor.doctor import examine

    address = parse_address(uri, storage_options)
    wanted = optional_text("branch", branch)
    return examine(address, quick=quick, branch=wanted, checks=checks, listener=listener)


def restore(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    backup: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    target_options: Mapping[str, str] | None = None,
    listener: Callable[[CopyEvent], None] | None = None,
) -> CopyReport:
    """Make a graph from a backup: the newest one at an address, or the one of an id.

    ``storage_options`` are those of the backups, and of the target too, unless it has ``target_options``.
    """
    from omnigraph.maintenance.copying.backup import restore

    options = storage_options if target_options is None else target_options
    wanted = optional_text("backup", backup)
    return restore(parse_address(source, storage_options), parse_address(target, options), wanted, listener)


def backups(uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> list[Backup]:
    """The backups at an address, oldest first."""
    from omnigraph.maintenance.copying.backup import backups

    return backups(parse_address(uri, storage_options))


def reopened(
    address: Address,
    read_only: bool,
    branch: str,
    actor: str | None,
    embedder: EmbeddingClient | None,
    cache_bytes: int,
    settings: Settings,
    guard: Guard | None,
) -> Graph:
    """Open a graph that was pickled, in the process that unpickles it."""
    repository = open_existing(address, read_only=read_only)
    cache = Cache(cache_bytes)
    return Graph(
        repository, branch=branch, actor=actor, embedder=embedder, cache=cache, settings=settings, guard=guard
    )
