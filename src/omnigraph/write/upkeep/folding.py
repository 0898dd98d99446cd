"""Folding: a writer puts small files of a table that it changes together, in tiers, as the table's next version.

Every write of a few rows adds a file. Files are sorted into tiers by their rows (with the usual settings 1–7,
8–63, 64–511 and so on), and as soon as a tier has enough of them, they are written again as one of the next tier.
So a table of any age has few files, and each row is written again a few times in its life, whatever the number of
writes.

The exchange of the files is staged with the write's own change and committed after it, under the same sidecar and
as part of the same commit. It changes no row, and is done without if anything is in its way. Files that an index
answers for are left to `optimize`, which brings the index along. `tails` indexes files that are large enough.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from lance import LanceDataset

from omnigraph.errors import OmniError, RequestError
from omnigraph.settings import WriteSettings
from omnigraph.storage import layout
from omnigraph.storage.files.datafiles import has_blobs
from omnigraph.storage.files.names import name_of
from omnigraph.storage.stage.changes import Staged, shrunk_fragments
from omnigraph.storage.stage.compaction import Rewritten
from omnigraph.storage.stage.folds import (
    Fragment,
    Shrunk,
    fits,
    indexed_fragments,
    rewrite_fragments,
    smaller_fragments,
    stage_fold,
)
from omnigraph.storage.stage.indexes import BuiltSegment, discard_segments
from omnigraph.storage.tables import TableRef, Tables
from omnigraph.write.changes import Fold
from omnigraph.write.upkeep.discarding import discard_data
from omnigraph.write.upkeep.tails import index_tail, stage_tail

VARIABLE: Final = "OMNIGRAPH_FOLD"

MOST_FILES: Final = 64
"""How many files one write puts together at most, however many a tier has."""

BORROWED_WEIGHT: Final = 32
"""A file of the branch that this one forked from is copied by folding it: it counts for so many times its size."""

BYTES_PER_DELETION: Final = 4
"""What a deleted row takes in a deletion file of its fragment; every further deletion writes the file again."""


def is_on(settings: WriteSettings) -> bool:
    """Do writers fold? What the settings say, unless the variable says no."""
    wanted = os.environ.get(VARIABLE, "").strip().lower()
    if wanted not in ("", "on", "off"):
        raise RequestError(f"{VARIABLE}={wanted} is neither 'on' nor 'off'; give one of them, or none")
    return settings.fold and wanted != "off"


def choose(fragments: Sequence[Fragment], settings: WriteSettings) -> list[int]:
    """The fragments to write again as one: those of the lowest tier that has enough, or else a single one whose
    deletion files have cost more than writing its rows again. None if nothing is worth it.
    """
    tiers: defaultdict[int, list[Fragment]] = defaultdict(list)
    for each in fragments:
        if each.rows * 2 <= settings.fold_rows:
            tiers[_tier(each.rows, settings.fold_files)].append(each)
    for tier in sorted(tiers):
        if len(tiers[tier]) >= settings.fold_files:
            chosen = _fitting(tiers[tier], settings)
            if len(chosen) > 1:
                return [each.number for each in chosen]
    for each in fragments:
        costly = each.deleted**2 * BYTES_PER_DELETION > 2 * (each.size or 0)
        if costly and _fitting([each], settings):
            return [each.number]
    return []


def _tier(rows: int, base: int) -> int:
    tier = 0
    while rows >= base:
        rows //= base
        tier += 1
    return tier


def _fitting(members: Iterable[Fragment], settings: WriteSettings) -> list[Fragment]:
    """As many of these fragments, from the oldest on, as one write may put together."""
    chosen: list[Fragment] = []
    rows, size = settings.fold_rows, settings.fold_bytes
    for each in members:
        if each.size is not None and len(chosen) < MOST_FILES:
            weight = each.size * (BORROWED_WEIGHT if each.is_borrowed else 1)
            if each.rows <= rows and weight <= size:
                chosen.append(each)
                rows -= each.rows
                size -= weight
    return chosen


_folded_now: set[tuple[str, str, str | None]] = set()
"""The tables that writers of this process fold: the graph, the location and the native branch."""

_mutex = threading.Lock()


class Folding:
    """What one write folds: at most one group of files per table, written during its first attempt.

    A later attempt uses what is written already, if those files of the table are still as they were.
    """

    def __init__(self, tables: Tables, settings: WriteSettings) -> None:
        self._tables = tables
        self._settings = settings
        self._seen: dict[tuple[str, str | None], Rewritten | None] = {}
        self._used: set[tuple[str, str | None]] = set()
        self._tails: dict[tuple[str, str | None], list[BuiltSegment]] = {}
        self._claimed: set[tuple[str, str, str | None]] = set()

    def begin(self) -> None:
        """A new attempt begins, and uses nothing yet. What was indexed is of no use for it."""
        self._used.clear()
        for (location, branch), built in self._tails.items():
            discard_segments(self._tables.objects, TableRef(location, branch, 0), built)
        self._tails.clear()

    def forget(self) -> None:
        """What was written is gone; the next attempt writes it again."""
        self._seen.clear()

    def fold(self, ref: TableRef, change: Staged, operation: str) -> tuple[Staged, ...]:
        """Write small files of a table again, beside a staged change of its rows: what is to be committed after
        the change. Nothing if there is nothing to fold, or it fails."""
        shrunk = shrunk_fragments(change)
        if shrunk is not None and self._begin_at(ref, shrunk):
            return self._behind(ref, change, operation)
        return self.reuse(ref, change, operation)

    def beside(self, refs: Iterable[TableRef]) -> Fold:
        """Write small files of tables again, as they are in these versions, for changes that will be put on top of
        later ones, which only add files."""
        begun = {(ref.location, ref.branch): ref for ref in refs if self._begin_at(ref, {})}

        def fold(ref: TableRef, change: Staged, operation: str) -> tuple[Staged, ...]:
            there = begun.get((ref.location, ref.branch))
            return () if there is None else self._behind(there, change, operation)

        return fold

    def _begin_at(self, ref: TableRef, shrunk: Shrunk) -> bool:
        """Write small files of a table again and index what is large enough, if this write has not been there and
        no other one is."""
        place = ref.location, ref.branch
        if place in self._seen or not is_on(self._settings) or not self._is_alone(place):
            return False
        self._seen[place] = None
        with suppress(OmniError):
            self._seen[place] = self._write(ref, shrunk)
        with suppress(OmniError):
            self._tails[place] = index_tail(self._tables, ref, shrunk, self._settings)
        return True

    def _behind(self, ref: TableRef, change: Staged, operation: str) -> tuple[Staged, ...]:
        """What was written of a table, as versions after a change."""
        place = ref.location, ref.branch
        rewritten = self._seen.get(place)
        folded: tuple[Staged, ...] = ()
        with suppress(OmniError):
            folded = () if rewritten is None else self._use(place, change, rewritten, operation)
        with suppress(OmniError):
            return self._with_tail(ref, change, folded, operation)
        return folded

    def _use(
        self, place: tuple[str, str | None], change: Staged, rewritten: Rewritten, operation: str
    ) -> tuple[Staged, ...]:
        """What was written again, as the version after a change that leaves its rows as they were written. It is
        used once: of several changes in a row the first takes it."""
        if place in self._used:
            return ()
        self._used.add(place)
        return (stage_fold(change, rewritten, operation),)

    def _is_alone(self, place: tuple[str, str | None]) -> bool:
        """Does no other writer of this process fold the same table now? One of the two would work in vain."""
        with _mutex:
            folded = (str(self._tables.address), *place)
            if folded in _folded_now:
                return False
            _folded_now.add(folded)
            self._claimed.add(folded)
        return True

    def end(self) -> None:
        """The write is over; others may fold its tables."""
        with _mutex:
            _folded_now.difference_update(self._claimed)
            self._claimed.clear()

    def _with_tail(
        self, ref: TableRef, change: Staged, folded: tuple[Staged, ...], operation: str
    ) -> tuple[Staged, ...]:
        """What was folded, and then the segments of indexes that were built in this attempt."""
        built = self._tails.get((ref.location, ref.branch))
        if not built:
            return folded
        last = folded[-1] if folded else change
        return (*folded, stage_tail(self._tables, ref, last, built, operation))

    def reuse(self, ref: TableRef, change: Staged, operation: str) -> tuple[Staged, ...]:
        """What an attempt has folded, if it fits the table as it is now; nothing is written."""
        place = ref.location, ref.branch
        rewritten, shrunk = self._seen.get(place), shrunk_fragments(change)
        if rewritten is None or shrunk is None:
            return ()
        with suppress(OmniError):
            if fits(rewritten, self._tables.open(ref), shrunk):
                return self._use(place, change, rewritten, operation)
        return ()

    def _write(self, ref: TableRef, shrunk: Shrunk) -> Rewritten | None:
        handle = self._tables.open(ref)
        small = smaller_fragments(handle, self._settings.fold_rows // 2, shrunk)
        if not choose(small, self._settings):
            return None
        indexed = indexed_fragments(handle)
        small = [each for each in small if each.number not in indexed]
        if has_blobs(handle.schema):
            small = [each for each in small if not self._has_blob_files(ref, handle, each)]
        chosen = choose(small, self._settings)
        if not chosen:
            return None
        self._tables.verify_fragments(ref, chosen)
        limits = self._settings
        return rewrite_fragments(handle, chosen, shrunk, limits.fold_rows, limits.exact_rows)

    def _has_blob_files(self, ref: TableRef, handle: LanceDataset, fragment: Fragment) -> bool:
        """Do blobs lie in files beside those of the fragment? They would be copied, and may be of any size."""
        found = handle.get_fragment(fragment.number)
        folder = f"{layout.native_prefix(ref.location, ref.branch)}/data"
        names = [] if found is None else [name_of(file).removesuffix(".lance") for file in found.data_files()]
        return fragment.is_borrowed or any(self._tables.objects.list(f"{folder}/{name}") for name in names)

    def discard_unused(self) -> None:
        """Remove the files that the last attempt has no use for."""
        for (location, branch), rewritten in self._seen.items():
            if rewritten is not None and (location, branch) not in self._used:
                discard_data(self._tables, location, branch, rewritten.files, has_blobs=False)
        self._seen.clear()
