"""Blobs that records name by an address: those that may not be read make their records unreadable, the bytes of
the others take their place."""

from __future__ import annotations

from dataclasses import replace

import lance
import numpy as np
import pyarrow as pa

from omnigraph.formats.jsonl.blocks import Block, TypedRecords, Unreadable
from omnigraph.formats.rows import addresses_of
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.storage.external.sources import BlobSources, Reading


def without_refused(block: Block, sources: BlobSources) -> Block:
    """The block, with records that name an address which may not be read among the unreadable ones."""
    records: dict[str, TypedRecords] = {}
    refused: list[Unreadable] = []
    for key, found in block.records.items():
        reasons = _refusals(found.entity, found.rows, sources)
        if not reasons:
            records[key] = found
            continue
        refused += [Unreadable(int(found.lines[at]), 1, reason) for at, reason in reasons.items()]
        kept = np.setdiff1d(np.arange(len(found.lines)), np.array(list(reasons), np.int64))
        if len(kept):
            records[key] = TypedRecords(found.entity, found.rows.take(pa.array(kept)), found.lines[kept])
    if not refused:
        return block
    unreadable = sorted([*block.unreadable, *refused], key=lambda bad: bad.line)
    return replace(block, records=records, unreadable=unreadable)


def _refusals(entity: EntityType, rows: pa.Table, sources: BlobSources) -> dict[int, str]:
    """Why rows are refused, by position: the first reason of each."""
    found: dict[int, str] = {}
    for name in _blobs_of(entity):
        for at, uri in _addresses(rows, name).items():
            reason = sources.refusal(uri)
            if reason is not None:
                found.setdefault(at, f"{name}: {reason}")
    return dict(sorted(found.items()))


def with_bytes(entity: EntityType, rows: pa.Table, reading: Reading) -> pa.Table:
    """The rows with bytes where they have addresses."""
    for name in _blobs_of(entity):
        addresses = _addresses(rows, name)
        if not addresses:
            continue
        data = rows[name].combine_chunks().storage.field("data").to_pylist()
        for at, uri in addresses.items():
            data[at] = reading.fetch(name, uri)
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), lance.blob_array(data))
    reading.forget()
    return rows


def _blobs_of(entity: EntityType) -> list[str]:
    return [prop.name for prop in entity.properties.values() if prop.type.is_blob]


def _addresses(rows: pa.Table, name: str) -> dict[int, str]:
    """The addresses in a Blob column by position."""
    addresses = addresses_of(rows[name].combine_chunks())
    if addresses.null_count == len(addresses):
        return {}
    return {at: uri for at, uri in enumerate(addresses.to_pylist()) if uri is not None}
