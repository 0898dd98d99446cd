"""What merges have brought from a branch that was deleted, for a merge whose best base was on that branch.

The state of the base is gone, but the merges by which either side got it are not: on top of an older base, what
they changed tells what it was. Without it, a side that has taken such a change back would look as if it had never
had it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.columns import columns_of
from omnigraph.history.diff import ChangeFilter, Op, TableDiff, diff, pin_of
from omnigraph.history.tables import RowChanges, RowDeltas, changes_between, followed
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.tables import Tables


def brought(
    tables: Tables, base: Snapshot, merges: Sequence[tuple[Snapshot, Snapshot]], terms: Snapshot
) -> Mapping[str, RowChanges]:
    """By table, the rows that merges have changed, as they are in a base and as the merges make them.

    Each merge is the state before and the state after it. Only the properties that it changed are taken from it.
    ``terms`` is the state whose schema the rows have.
    """
    found: dict[str, RowChanges] = {}
    for before, after in merges:
        for table in diff(tables, before, after, ChangeFilter(), terms=terms).tables:
            key = table.table_key
            old, new = pin_of(base, terms, key), pin_of(after, terms, key)
            if old is None or new is None:
                continue
            columns = columns_of(tables, terms.catalog, terms.entity(key), (terms, base, after))
            rows = changes_between(tables, old.ref, new.ref, columns, RowDeltas(tables))
            earlier = found.get(key)
            known = rows.before if earlier is None else followed(earlier.reverse, rows).before
            added = _on_top(known, table)
            found[key] = added if earlier is None else followed(earlier, added)
    return found


def _on_top(known: pa.Table, merged: TableDiff) -> RowChanges:
    """What a merge changed, done to rows of an older state."""
    found = pc.index_in(merged.ids, value_set=known["id"].combine_chunks())
    kept = pc.not_equal(merged.ops, Op.DELETE.value)
    wanted, places = merged.after.filter(kept), found.filter(kept)
    is_known = pc.is_valid(places).to_numpy(zero_copy_only=False)
    ours, theirs = pc.fill_null(places, 0).to_numpy(), len(known) + np.arange(len(wanted))
    both = pa.concat_tables([known, wanted.cast(known.schema)])
    columns = []
    for name in known.column_names:
        stays = is_known.copy()
        if name in merged.changed:
            stays &= ~merged.changed[name].filter(kept).to_numpy(zero_copy_only=False)
        columns.append(both[name].take(pa.array(np.where(stays, ours, theirs))))
    return RowChanges(known.take(found.drop_null()), pa.Table.from_arrays(columns, schema=known.schema))
