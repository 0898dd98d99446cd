"""Vectors of `@embed` properties, computed from the texts of rows by the configured embedding provider."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import EmbeddingUnavailable
from omnigraph.lang.schema.catalog import NodeType, Property


def fill_vectors(
    node: NodeType, rows: pa.Table, given: Mapping[str, bool], client: EmbeddingClient | None
) -> tuple[pa.Table, list[str]]:
    """The rows with the `@embed` vectors that they lack, and the names of properties that stay null.

    ``given`` says of a property whether its vectors came with the rows: those are kept, any others are computed
    anew. Without a client nullable vectors stay null, and required ones raise EmbeddingUnavailable.
    """
    skipped: list[str] = []
    for name, embed in node.embeds.items():
        if not given.get(name, False):
            rows = _without_values(rows, name)
        sources = rows[embed.source]
        wanted = pc.and_(pc.is_valid(sources), pc.is_null(rows[name]))
        positions = pc.indices_nonzero(wanted)
        if not len(positions):
            continue
        prop = node.properties[name]
        if client is None:
            if not prop.type.nullable:
                raise EmbeddingUnavailable(
                    f"{node.name}.{name} is required and computed from {embed.source}, but no embedding provider "
                    "is configured; set OMNIGRAPH_EMBED_PROVIDER, or give the vector"
                )
            skipped.append(f"{node.name}.{name}")
            continue
        require_model(node, name, client)
        rows = with_vectors(rows, prop, positions, sources, client)
    return rows, skipped


def require_model(node: NodeType, name: str, client: EmbeddingClient) -> None:
    """Raise EmbeddingUnavailable if the schema names another model for a vector than the client's."""
    wanted = node.embeds[name].model
    if wanted is not None and wanted != client.model:
        raise EmbeddingUnavailable(
            f"{node.name}.{name} is computed by model {wanted}, and the configured one is {client.model}"
        )


def _without_values(rows: pa.Table, name: str) -> pa.Table:
    """The rows with nulls in one column."""
    index = rows.schema.get_field_index(name)
    field = rows.schema.field(index)
    return rows.set_column(index, field, pa.nulls(rows.num_rows, field.type))


def with_vectors(
    rows: pa.Table, prop: Property, positions: pa.Array, sources: pa.ChunkedArray, client: EmbeddingClient
) -> pa.Table:
    """The rows with new vectors of a property at some positions, computed from the texts in ``sources``."""
    dimension = prop.type.dimension or 0
    texts = sources.take(positions).to_pylist()
    vectors = client.embed(texts, dimension, "document")
    flat = pa.array(vectors.reshape(-1), pa.float32())
    computed = pa.FixedSizeListArray.from_arrays(flat, dimension)
    index = rows.schema.get_field_index(prop.name)
    present = rows.column(index).combine_chunks()
    where = pa.array(np.arange(rows.num_rows))
    pick = pc.index_in(where, value_set=positions.cast(pa.int64()))
    both = pa.concat_arrays([computed, present])
    chosen = both.take(pc.coalesce(pick.cast(pa.int64()), pc.add(where, len(computed))))
    return rows.set_column(index, rows.schema.field(index), chosen)


def warn_unembedded(names: Iterable[str]) -> None:
    """Warn once that vectors stayed null; the warning points to the line that called `Graph`."""
    shown = sorted(set(names))
    if shown:
        warnings.warn(
            f"{', '.join(shown)} stayed null: no embedding provider is configured; set OMNIGRAPH_EMBED_PROVIDER",
            UserWarning,
            stacklevel=4,
        )
