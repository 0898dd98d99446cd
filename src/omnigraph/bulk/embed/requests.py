"""Requests to fill vectors: which rows lack one, and the change that fills them in the memory of this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import EmbeddingUnavailable, RequestError
from omnigraph.lang.schema.catalog import Catalog, NodeType
from omnigraph.lang.schema.lookup import node_type, unknown_name
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit
from omnigraph.settings import BulkSettings
from omnigraph.storage.unavailable import translated
from omnigraph.write.base import Base
from omnigraph.write.delta import TableDelta
from omnigraph.write.protocol import Prepared, WriteRequest, commit_write
from omnigraph.write.vectors import require_model, with_vectors

WRITER: Final = "embed"


@dataclass(frozen=True, slots=True)
class EmbedCounts:
    """The rows of one vector property: those whose vector was computed, those that had one, and those that have
    neither a vector nor a text."""

    embedded: int = 0
    present: int = 0
    without_text: int = 0

    def __add__(self, other: EmbedCounts) -> EmbedCounts:
        return EmbedCounts(
            self.embedded + other.embedded, self.present + other.present, self.without_text + other.without_text
        )


Counts = Mapping[str, EmbedCounts]
"""Counts by property."""


@dataclass(frozen=True, slots=True)
class EmbedTarget:
    """Vector properties of one type. With ``recompute`` vectors that exist are computed again."""

    node: NodeType
    properties: tuple[str, ...]
    recompute: bool = False

    @property
    def table_key(self) -> str:
        return self.node.table_key

    @property
    def columns(self) -> list[str]:
        """The columns that tell which rows need vectors."""
        sources = (self.node.embeds[name].source for name in self.properties)
        return list(dict.fromkeys([*sources, *self.properties]))

    @property
    def where(self) -> str:
        """The rows that need a vector, as a filter of Lance."""
        return " or ".join(f"({self._needing(name)})" for name in self.properties)

    def _needing(self, name: str) -> str:
        has_text = f"`{self.node.embeds[name].source}` is not null"
        return has_text if self.recompute else f"{has_text} and `{name}` is null"

    def needed(self, rows: pa.Table | pa.RecordBatch, name: str) -> pa.Array:
        """Which rows need a vector of one property."""
        has_text = pc.is_valid(rows[self.node.embeds[name].source])
        return has_text if self.recompute else pc.and_(has_text, pc.is_null(rows[name]))

    def count(self, batches: Iterable[pa.RecordBatch]) -> dict[str, EmbedCounts]:
        """How many rows need a vector, have one, or have no text."""
        counts = dict.fromkeys(self.properties, EmbedCounts())
        for batch in batches:
            for name in self.properties:
                needed = pc.sum(self.needed(batch, name)).as_py() or 0
                neither = pc.and_(pc.is_null(batch[self.node.embeds[name].source]), pc.is_null(batch[name]))
                without = pc.sum(neither).as_py() or 0
                counts[name] += EmbedCounts(needed, batch.num_rows - needed - without, without)
        return counts

    def fill(self, rows: pa.Table, client: EmbeddingClient) -> pa.Table:
        """The rows with the vectors they need; no other column changes."""
        for name in self.properties:
            positions = pc.indices_nonzero(self.needed(rows, name))
            if len(positions):
                prop = self.node.properties[name]
                rows = with_vectors(rows, prop, positions, rows[self.node.embeds[name].source], client)
        return rows


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """The vectors of a branch to fill, and the actor of the commit. ``state`` has the schema of the targets."""

    branch: Branch
    state: Snapshot
    targets: tuple[EmbedTarget, ...]
    actor: str | None = None
    settings: BulkSettings = field(default_factory=BulkSettings)

    @property
    def write(self) -> WriteRequest:
        return WriteRequest(WRITER, self.branch, self.actor, compiled_for=self.state)

    def counts(self, found: Mapping[str, Counts]) -> dict[str, EmbedCounts]:
        """Counts by table and property as `Type.property`, in the order of the schema."""
        return {
            f"{target.node.name}.{name}": found.get(target.table_key, {}).get(name, EmbedCounts())
            for target in self.targets
            for name in target.properties
        }


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """The counts of each `Type.property`, and the commit; None if no vector was missing."""

    branch: str
    model: str
    engine: str
    counts: Mapping[str, EmbedCounts]
    commit: Commit | None

    @property
    def embedded(self) -> int:
        """How many vectors were computed."""
        return sum(count.embedded for count in self.counts.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "model": self.model,
            "engine": self.engine,
            "properties": [
                {
                    "type": name.partition(".")[0],
                    "property": name.partition(".")[2],
                    "embedded": count.embedded,
                    "present": count.present,
                    "without_text": count.without_text,
                }
                for name, count in self.counts.items()
            ],
            "embedded": self.embedded,
            "commit": None if self.commit is None else self.commit.as_json(),
        }


def embed_targets(
    catalog: Catalog, types: Iterable[str] | None, properties: Iterable[str] | None, *, recompute: bool
) -> tuple[EmbedTarget, ...]:
    """The `@embed` properties of some types, or all of them; RequestError for a name that does not exist."""
    chosen = list(catalog.nodes) if types is None else list(dict.fromkeys(types))
    wanted = None if properties is None else set(properties)
    for name in chosen:
        if not node_type(catalog, name).embeds and types is not None:
            raise RequestError(f"{name} has no vector with @embed")
    computed = [name for type_name in chosen for name in catalog.nodes[type_name].embeds]
    for name in wanted or ():
        if name not in computed:
            raise unknown_name(f"@embed property of {', '.join(chosen)} called", name, computed)
    found = (
        (node, tuple(name for name in node.embeds if wanted is None or name in wanted))
        for node in (catalog.nodes[name] for name in sorted(chosen))
    )
    return tuple(EmbedTarget(node, names, recompute) for node, names in found if names)


def required_client(client: EmbeddingClient | None, targets: Iterable[EmbedTarget]) -> EmbeddingClient:
    """The client; EmbeddingUnavailable if there is none, or if the schema names another model for a property."""
    if client is None:
        raise EmbeddingUnavailable("no embedding provider is configured; set OMNIGRAPH_EMBED_PROVIDER")
    for target in targets:
        for name in target.properties:
            require_model(target.node, name, client)
    return client


def stored_batches(base: Base, table_key: str, columns: list[str], where: str | None) -> Iterator[pa.RecordBatch]:
    """Committed rows, batch by batch."""
    if base.is_empty(table_key):
        return
    with translated(base.repository.tables.shown(base.pin(table_key).location)):
        yield from base.repository.tables.scan(base.ref(table_key), columns, where)


def change_of(base: Base, target: EmbedTarget, client: EmbeddingClient) -> tuple[Counts, TableDelta | None]:
    """The change of one table as whole rows in memory; None if no row needs a vector."""
    counts = target.count(stored_batches(base, target.table_key, target.columns, None))
    if not any(count.embedded for count in counts.values()):
        return counts, None
    rows = base.whole_rows(target.table_key, target.where)
    return counts, TableDelta(target.table_key, target.fill(rows, client))


def embed_in_process(repository: Repository, request: EmbedRequest, client: EmbeddingClient) -> EmbedResult:
    """Fill the vectors in the memory of this process, as one commit.

    The change is prepared again if a table moves meanwhile, so the client should cache vectors.
    """

    def prepare(base: Base) -> Prepared[dict[str, Counts]]:
        found: dict[str, Counts] = {}
        delta: dict[str, TableDelta] = {}
        for target in request.targets:
            found[target.table_key], change = change_of(base, target, client)
            if change is not None:
                delta[target.table_key] = change
        return Prepared(delta, found, repeatable=True)

    written = commit_write(repository, request.write, prepare)
    counts = request.counts(written.result)
    return EmbedResult(request.branch.name, client.model, "local", counts, written.commit)
