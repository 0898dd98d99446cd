"""Deletion vectors for committed rows that staged ones replace, written by tasks."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.bulk.pieces import open_tables
from omnigraph.bulk.runner import Done
from omnigraph.bulk.scratch import MatchFile, read_matches
from omnigraph.storage.address import Address
from omnigraph.storage.staging import delete_rows
from omnigraph.storage.tables import TableRef


@dataclass(frozen=True, slots=True)
class Deletion:
    """Committed rows that go: those that the pairs of one file name. Each fragment is in one such file only."""

    address: Address
    ref: TableRef
    matches: MatchFile


def delete_replaced(task: Deletion) -> Done:
    """Write the deletion vectors of one file of pairs; the fragments that vanish, and those that shrink."""
    handle = open_tables(task.address).open(task.ref)
    pairs = read_matches(task.address, [task.matches])
    return Done(delete_rows(handle, pairs["row_address"].combine_chunks()), rows=pairs.num_rows)
