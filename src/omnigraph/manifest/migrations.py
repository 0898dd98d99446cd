"""Migrating manifests of older releases to the format of this one, one step per internal schema version.

Every step can be repeated, and ends by writing its stamp. After a crash between two steps the next read-write open
continues from the older stamp. Readers never migrate: they understand every older format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

import pyarrow as pa

from omnigraph.failpoints import hit
from omnigraph.manifest.ids import fresh_id
from omnigraph.manifest.publisher import COMMIT_TAIL, Manifest
from omnigraph.manifest.refs.branches import Branch, Branches, encode_ref, legacy_branches
from omnigraph.manifest.stamp import INTERNAL_SCHEMA_VERSION, STAMP
from omnigraph.manifest.state import MANIFEST_SCHEMA, Commit, ManifestState
from omnigraph.storage import layout
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables import TableRef, Tables

_RUN_BRANCHES: Final = "__run__"


class Migrator:
    """Migrates every branch of one graph. The caller holds the control lock."""

    def __init__(self, manifest: Manifest, branches: Branches, tables: Tables, objects: ObjectStore) -> None:
        self._manifest = manifest
        self._branches = branches
        self._tables = tables
        self._objects = objects
        self._steps: Mapping[int, Callable[[Branch, ManifestState], None]] = {
            1: self._annotate_key,
            2: self._sweep_runs,
            3: self._move_lineage,
        }

    def is_needed(self) -> bool:
        """Is the main branch's manifest of an older release? UpgradeRequired if it is of a newer one."""
        return self._manifest.latest(None).stamp < INTERNAL_SCHEMA_VERSION

    def migrate(self) -> None:
        """Migrate every branch; main goes last, because its stamp says whether work is left."""
        main, *others = self._branches.all()
        for branch in (*others, main):
            state = self._manifest.latest(branch.native)
            while state.stamp < INTERNAL_SCHEMA_VERSION:
                self._steps[state.stamp](branch, state)
                hit("migrate.between_steps")
                state = self._manifest.latest(branch.native)

    def _annotate_key(self, branch: Branch, state: ManifestState) -> None:
        """1 → 2: `object_id` is marked as the key."""
        self._rewrite(branch, state, stamp=2)

    def _sweep_runs(self, branch: Branch, state: ManifestState) -> None:
        """2 → 3: the branches that interrupted runs left are dropped."""
        if branch.native is None:
            for name in self._tables.native_branches(layout.MANIFEST):
                if name.startswith(_RUN_BRANCHES):
                    self._tables.drop_branch(layout.MANIFEST, name)
        self._rewrite(branch, state, stamp=3)

    def _move_lineage(self, branch: Branch, state: ManifestState) -> None:
        """3 → 4: the history moves into the manifest, and branches get refs."""
        commits = self._manifest.archive.read()
        if branch.native is None:
            self._manifest.archive.replace(list(commits.values()))
            for found in legacy_branches(self._tables, set()):
                self._write_ref(found, commits)
        head = self._branches.head_among(branch, state.version, commits.values())
        tail = tuple(islice(_made_on_the_way(head, commits), COMMIT_TAIL))[::-1]
        successor = replace(state, version=state.version + 1, commits=tail, stamp=INTERNAL_SCHEMA_VERSION)
        self._manifest.write(branch.ref, successor)
        self._manifest.note_newest(branch.native, successor.version)

    def _write_ref(self, branch: Branch, commits: Mapping[str, Commit]) -> None:
        fork = self._branches.head_among(branch, branch.fork_version or 0, commits.values())
        fork_commit = None if fork is None else fork.graph_commit_id
        ref = replace(branch, incarnation=fresh_id(), fork_commit=fork_commit)
        self._objects.put_if_absent(layout.branch_ref(branch.name), encode_ref(ref))

    def _rewrite(self, branch: Branch, state: ManifestState, stamp: int) -> None:
        """Write the same rows again with the columns of this release and another stamp."""
        rows = self._tables.scan(TableRef(layout.MANIFEST, branch.native, state.version)).read_all()
        schema = MANIFEST_SCHEMA.with_metadata({STAMP: str(stamp)})
        columns = [rows.column(field.name).cast(field.type) for field in schema]
        self._manifest.write_rows(branch.native, pa.Table.from_arrays(columns, schema=schema), state.version + 1)
        self._manifest.note_newest(branch.native, state.version + 1)


def _made_on_the_way(head: Commit | None, known: Mapping[str, Commit]) -> Iterator[Commit]:
    """A head and its first parents, newest first; merged commits stay in the archive."""
    while head is not None:
        yield head
        head = known.get(head.parents[0]) if head.parents else None
