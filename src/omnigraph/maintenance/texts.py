"""Saving the words of large text properties, so that the first search of a process does not cut up their texts."""

from __future__ import annotations

from typing import Final

from omnigraph.errors import StorageError
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.data.cache import Cache, QueryCache, default_limit
from omnigraph.read.data.layout import Placement
from omnigraph.read.data.rows import WholeTable
from omnigraph.read.data.saved.postings import SavedPostings, segment_in
from omnigraph.read.data.saved.shelf import postings_keys, save_postings, saved_postings
from omnigraph.read.data.saved.versions import SavedTable
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.text.postings import Postings
from omnigraph.settings import ReadSettings

_SHARE: Final = 10
"""Saved words are replaced when the table has more than one in so many rows beside theirs."""

_TIMES: Final = 8
"""About how many times the memory of the texts it takes to cut them into words."""


def save_texts(repository: Repository, branch: Branch, settings: ReadSettings) -> list[str]:
    """Save the words of the large String properties with `@index` whose tables a branch owns, where none are saved
    that are nearly up to date; the properties, with their types. A store that refuses it is left without: words
    are derived when they are needed."""
    snapshot = repository.snapshot(branch)
    saved = []
    for entity in snapshot.catalog.nodes.values():
        pin = snapshot.tables[entity.table_key]
        if pin.row_count < settings.save_texts_from or pin.table_branch != branch.native:
            continue
        for name in searched_properties(entity):
            try:
                if _save(repository, snapshot, entity, name, settings):
                    saved.append(f"{entity.name}.{name}")
            except StorageError:
                continue
    return saved


def searched_properties(entity: NodeType) -> list[str]:
    """The properties of a type whose words are saved: texts with an index, but neither keys nor enums."""
    named = {name for group in entity.indexes for name in group} - set(entity.key)
    texts = (prop for prop in entity.properties.values() if prop.type.is_string and prop.type.members is None)
    return [prop.name for prop in texts if prop.name in named]


def _save(repository: Repository, snapshot: Snapshot, entity: NodeType, name: str, settings: ReadSettings) -> bool:
    """Save the words of one property, unless that was done, or would take more memory than queries may keep."""
    cache = QueryCache(Cache())
    table = GraphTables(snapshot, repository.tables, cache, settings).nodes(entity.name)
    column = table.placement.columns.get(name)
    if column is None or _is_saved(repository, table, column):
        return False
    texts = table.column(name).arrow
    if texts.nbytes * _TIMES > default_limit():
        return False
    saved = SavedPostings(SavedTable.of(table.placement), column, Postings.of(texts, settings=settings))
    return save_postings(repository.tables, saved)


def _is_saved(repository: Repository, table: WholeTable, column: int) -> bool:
    """Are the words of a property saved for the branch, but for those of a few rows?"""
    if not postings_keys(repository.tables, table.ref.location, table.ref.branch, column):
        return False
    saved = saved_postings(repository.tables, table.ref, column)
    segment = None if saved is None else segment_in(saved, table.placement)
    return segment is not None and _SHARE * _rows_beside(table.placement, segment.stop) <= segment.stop


def _rows_beside(placement: Placement, stop: int) -> int:
    return sum(stretch.piece.rows for stretch in placement.stretches if stretch.start >= stop)
