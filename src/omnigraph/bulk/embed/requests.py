"""Filling the vectors that an existing graph lacks: which rows want one, and the change that gives it to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import EmbeddingUnavailable, RequestError
from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.schema.catalog import Catalog, NodeType
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit
from omnigraph.storage.unavailable import translated
from omnigraph.write.base import Base
from omnigraph.write.delta import TableDelta
from omnigraph.write.protocol import Prepared, WriteRequest, commit_write
from omnigraph.write.vectors import require_model, with_vectors

WRITER: Final = "embed"


@dataclass(frozen=True, slots=True)
class EmbedCounts:
    """The rows of one vector property: those that got a vector, those that keep the one they have, and those that
    have neither a vector nor a text to compute it from."""

    embedded: int = 0
    present: int = 0
    without_text: int = 0

    def __add__(self, other: EmbedCounts) -> EmbedCounts:
        return EmbedCounts(
            self.embedded + other.embedded, self.present + other.present, self.without_text + other.without_text
        )


Counts = Mapping[str, EmbedCounts]
"""By property."""


@dataclass(frozen=True, slots=True)
class EmbedTarget:
    """Vector properties of one type. ``again`` computes also those that are there."""

    node: NodeType
    properties: tuple[str, ...]
    again: bool = False

    @property
    def table_key(self) -> str:
        return self.node.table_key

    @property
    def columns(self) -> list[str]:
        """The columns that say which rows want vectors."""
        sources = (self.node.embeds[name].source for name in self.properties)
        return list(dict.fromkeys([*sources, *self.properties]))

    @property
    def where(self) -> str:
        """The rows that want a vector, in the dialect of Lance's filters."""
        return " or ".join(f"({self._wanting(name)})" for name in self.properties)

    def _wanting(self, name: str) -> str:
        has_text = f"`{self.node.embeds[name].source}` is not null"
        return has_text if self.again else f"{has_text} and `{name}` is null"

    def wanted(self, rows: pa.Table | pa.RecordBatch, name: str) -> pa.Array:
        """Which rows want a vector of one property."""
        has_text = pc.is_valid(rows[self.node.embeds[name].source])
        return has_text if self.again else pc.and_(has_text, pc.is_null(rows[name]))

    def count(self, batches: Iterable[pa.RecordBatch]) -> dict[str, EmbedCounts]:
        """How many rows want a vector, have one, or cannot have one."""
        counts = dict.fromkeys(self.properties, EmbedCounts())
        for batch in batches:
            for name in self.properties:
                wanted = pc.sum(self.wanted(batch, name)).as_py() or 0
                neither = pc.and_(pc.is_null(batch[self.node.embeds[name].source]), pc.is_null(batch[name]))
                without = pc.sum(neither).as_py() or 0
                counts[name] += EmbedCounts(wanted, batch.num_rows - wanted - without, without)
        return counts

    def fill(self, rows: pa.Table, client: EmbeddingClient) -> pa.Table:
        """The rows with the vectors they want; nothing else of them changes."""
        for name in self.properties:
            positions = pc.indices_nonzero(self.wanted(rows, name))
            if len(positions):
                prop = self.node.properties[name]
                rows = with_vectors(rows, prop, positions, rows[self.node.embeds[name].source], client)
        return rows


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Which vectors of which branch are to be filled, and who wants it."""

    branch: Branch
    targets: tuple[EmbedTarget, ...]
    actor: str | None = None

    @property
    def write(self) -> WriteRequest:
        return WriteRequest(WRITER, self.branch, self.actor)

    def counts(self, found: Mapping[str, Counts]) -> dict[str, EmbedCounts]:
        """Counts by table and property as `Type.property`, in the order of the schema."""
        return {
            f"{target.node.name}.{name}": found.get(target.table_key, {}).get(name, EmbedCounts())
            for target in self.targets
            for name in target.properties
        }


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """What was filled, by `Type.property`. ``commit`` is None if nothing was missing."""

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
    catalog: Catalog, types: Iterable[str] | None, properties: Iterable[str] | None, *, again: bool
) -> tuple[EmbedTarget, ...]:
    """The properties that were asked for, all computed ones by default; RequestError for a name that has none."""
    chosen = list(catalog.nodes) if types is None else list(dict.fromkeys(types))
    wanted = None if properties is None else set(properties)
    for name in chosen:
        if name not in catalog.nodes:
            raise _unknown("node type", name, catalog.nodes)
        if types is not None and not catalog.nodes[name].embeds:
            raise RequestError(f"{name} has no vector with @embed")
    computed = [name for type_name in chosen for name in catalog.nodes[type_name].embeds]
    for name in wanted or ():
        if name not in computed:
            raise _unknown(f"@embed property of {', '.join(chosen)} called", name, computed)
    found = (
        (node, tuple(name for name in node.embeds if wanted is None or name in wanted))
        for node in (catalog.nodes[name] for name in sorted(chosen))
    )
    return tuple(EmbedTarget(node, names, again) for node, names in found if names)


def _unknown(what: str, name: str, known: Iterable[str]) -> RequestError:
    remedy = suggest(name, known)
    return RequestError(f"there is no {what} '{name}'" + (f"; {remedy}" if remedy else ""))


def required_client(client: EmbeddingClient | None, targets: Iterable[EmbedTarget]) -> EmbeddingClient:
    """The client, if there is one and it has the model that the schema names everywhere."""
    if client is None:
        raise EmbeddingUnavailable("no embedding provider is configured; set OMNIGRAPH_EMBED_PROVIDER")
    for target in targets:
        for name in target.properties:
            require_model(target.node, name, client)
    return client


def stored_batches(base: Base, table_key: str, columns: list[str], where: str | None) -> Iterator[pa.RecordBatch]:
    """Committed rows, never all of them at once."""
    if base.is_empty(table_key):
        return
    with translated(base.repository.tables.shown(base.pin(table_key).location)):
        yield from base.repository.tables.scan(base.ref(table_key), columns, where)


def change_of(base: Base, target: EmbedTarget, client: EmbeddingClient) -> tuple[Counts, TableDelta | None]:
    """The change of one table as whole rows in memory; None if no row wants a vector."""
    counts = target.count(stored_batches(base, target.table_key, target.columns, None))
    if not any(count.embedded for count in counts.values()):
        return counts, None
    rows = base.whole_rows(target.table_key, target.where)
    return counts, TableDelta(target.table_key, target.fill(rows, client))


def embed_here(repository: Repository, request: EmbedRequest, client: EmbeddingClient) -> EmbedResult:
    """Fill the vectors in this process, as one commit.

    The change is prepared again if a table moves meanwhile, so the client had better remember what it was asked.
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
