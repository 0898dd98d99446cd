"""From staged files to the transactions of the write protocol: one per table, whatever its change is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.schema import LanceSchema

from omnigraph.bulk.deletions import Deletion, delete_replaced
from omnigraph.bulk.load.checks import Ground
from omnigraph.bulk.load.merging import Matches
from omnigraph.bulk.load.options import Mode
from omnigraph.bulk.pieces import open_tables
from omnigraph.bulk.runner import Done, Runner
from omnigraph.bulk.scratch import MatchFile, read_matches
from omnigraph.errors import NotOnSpark
from omnigraph.storage.files.datafiles import StagedFile, column_ids, read_file, row_id_text, write_file
from omnigraph.storage.staging import (
    Shrunk,
    stage_appended_files,
    stage_changed_files,
    stage_replacing_files,
)
from omnigraph.storage.tables import TableRef
from omnigraph.write.protocol import Stage, StagedTable


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """A staged file that cannot be committed as it is: rows of it are not to be loaded, or replace others."""

    ground: Ground
    job: str
    file: StagedFile
    matches: tuple[MatchFile, ...]


def staged_tables(runner: Runner, ground: Ground, replaced: Matches) -> Mapping[str, Stage]:
    """How each table of a load is staged."""
    return {key: partial(_stage_table, runner, ground, replaced, key) for key in ground.files}


def _stage_table(
    runner: Runner, ground: Ground, replaced: Matches, table_key: str, ref: TableRef, operation: str
) -> StagedTable:
    handle = open_tables(ground.graph.address).open(ref)
    matches = replaced.get(table_key, ())
    files = _final_files(runner, ground, matches, table_key)
    names = frozenset(file.name for file in files)
    version = ground.targets[table_key].version
    rows = sum(file.rows for file in files)
    if ground.mode is Mode.OVERWRITE:
        schema = ground.targets[table_key].schema
        fresh = column_ids(LanceSchema.from_pyarrow(schema))
        fragments = [file.fragment(fresh, version) for file in files]
        staged = stage_replacing_files(handle, ref.location, ref.branch, schema, fragments, operation)
        return StagedTable(staged, rows, names)
    ids = column_ids(handle.lance_schema)
    fragments = [file.fragment(ids, version) for file in files]
    committed = ground.graph.rows(table_key)
    if not matches:
        staged = stage_appended_files(handle, ref.location, ref.branch, fragments, operation)
        return StagedTable(staged, committed + rows, names)
    deletions = [Deletion(ground.graph.address, ref, match) for match in matches]
    shrunk = Shrunk.together(runner.run("deleting replaced rows", delete_replaced, deletions))
    staged = stage_changed_files(handle, ref.location, ref.branch, shrunk, fragments, operation)
    return StagedTable(staged, committed + rows - sum(file.rows for file in matches), names)


def _final_files(
    runner: Runner, ground: Ground, matches: tuple[MatchFile, ...], table_key: str
) -> list[StagedFile]:
    """The files of a table as they are committed; those with rows that go or replace others are written anew."""
    files = ground.files[table_key]
    concerned = {name for match in matches for name in match.files} | set(ground.drops.masks)
    rewrites = [
        _Rewrite(ground, runner.job, file, tuple(match for match in matches if file.name in match.files))
        for file in files
        if file.name in concerned
    ]
    if rewrites and ground.targets[table_key].has_blobs:
        raise NotOnSpark(f"replacing or leaving out rows of {table_key}, which has blobs,", "use engine='local'")
    written = dict(
        zip((r.file.name for r in rewrites), runner.run("merging rows", _rewrite, rewrites), strict=True)
    )
    final = [written.get(file.name, file) for file in files]
    return [file for file in final if file is not None]


def _rewrite(task: _Rewrite) -> Done:
    """Write the rows of a file that are to be loaded: first those that replace others, with the ids of those."""
    ground, file = task.ground, task.file
    target = ground.targets[file.table_key]
    rows = read_file(target, file.name)
    dropped = ground.drops.mask(file)
    pairs = read_matches(ground.graph.address, task.matches)
    mine = pairs.filter(pc.equal(pairs["file"], file.name)).sort_by("row")
    replacing = mine["row"].to_numpy()
    is_new = np.ones(file.rows, bool) if dropped is None else ~dropped
    is_new[replacing] = False
    order = np.concatenate([replacing, np.flatnonzero(is_new)])
    if not len(order):
        return Done(None)
    name, size = write_file(target, task.job, rows.take(pa.array(order)))
    row_ids = row_id_text(mine["row_id"].to_pylist()) if len(replacing) else None
    return Done(StagedFile(file.table_key, name, len(order), size, row_ids=row_ids), rows=len(order))
