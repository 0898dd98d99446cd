"""The internal schema stamp: bringing manifests of older releases up to this one, a step at a time.

Every step can be run again, and ends by writing its stamp; a crash between two leaves the older stamp and the next
read-write open goes on from there. Readers never migrate. Nothing outside this module asks for the stamp's value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa
from ulid import ULID

from omnigraph.failpoints import hit
from omnigraph.manifest.branches import Branches, encode_ref, legacy_branches
from omnigraph.manifest.publisher import COMMIT_TAIL, BranchName, Manifest
from omnigraph.manifest.stamp import INTERNAL_SCHEMA_VERSION, STAMP
from omnigraph.manifest.state import MAIN, MANIFEST_SCHEMA, ManifestState
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
        self._steps: Mapping[int, Callable[[BranchName, ManifestState], None]] = {
            1: self._annotate_key,
            2: self._sweep_runs,
            3: self._move_lineage,
        }

    def is_needed(self) -> bool:
        """Is the main branch's manifest of an older release? Refuses one of a newer release."""
        return self._manifest.latest(None).stamp < INTERNAL_SCHEMA_VERSION

    def migrate(self) -> None:
        """Bring every branch up to date; main goes last, because it says whether work is left."""
        trunk = BranchName(MAIN, None)
        others = [branch.ref for branch in self._branches.all() if branch.native is not None]
        for branch in (*others, trunk):
            state = self._manifest.latest(branch.native)
            while state.stamp < INTERNAL_SCHEMA_VERSION:
                self._steps[state.stamp](branch, state)
                hit("migrate.between_steps")
                state = self._manifest.latest(branch.native)

    def _annotate_key(self, branch: BranchName, state: ManifestState) -> None:
        """1 → 2: `object_id` is marked as the key."""
        self._rewrite(branch, state, stamp=2)

    def _sweep_runs(self, branch: BranchName, state: ManifestState) -> None:
        """2 → 3: the staging branches of interrupted runs go."""
        if branch.native is None:
            for name in self._tables.native_branches(layout.MANIFEST):
                if name.startswith(_RUN_BRANCHES):
                    self._tables.drop_branch(layout.MANIFEST, name)
        self._rewrite(branch, state, stamp=3)

    def _move_lineage(self, branch: BranchName, state: ManifestState) -> None:
        """3 → 4: the history moves into the manifest, and branches get refs."""
        commits = sorted(
            self._manifest.archive.read().values(),
            key=lambda c: (c.manifest_version, c.created_at, c.graph_commit_id),
        )
        if branch.native is None:
            self._manifest.archive.replace(commits)
            for found in legacy_branches(self._tables, set()):
                ref = replace(found, incarnation=str(ULID()))
                self._objects.put_if_absent(layout.branch_ref(found.name), encode_ref(ref))
        own = [c for c in commits if c.branch in (branch.name, MAIN) and c.manifest_version <= state.version]
        self._manifest.write(
            branch,
            replace(
                state,
                version=state.version + 1,
                commits=tuple(own[-COMMIT_TAIL:]),
                stamp=INTERNAL_SCHEMA_VERSION,
            ),
        )

    def _rewrite(self, branch: BranchName, state: ManifestState, stamp: int) -> None:
        """Write the rows as they are under the present columns and another stamp."""
        rows = self._tables.scan(TableRef(layout.MANIFEST, branch.native, state.version)).read_all()
        schema = MANIFEST_SCHEMA.with_metadata({STAMP: str(stamp)})
        columns = [rows.column(field.name).cast(field.type) for field in schema]
        self._manifest.write_rows(branch.native, pa.Table.from_arrays(columns, schema=schema), state.version + 1)
