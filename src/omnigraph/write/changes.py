"""What goes through the protocol of a write: the request, the change that a writer prepares, the staged change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from omnigraph.manifest.drafts import SchemaMove
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit
from omnigraph.manifest.streams import Batch
from omnigraph.recovery.sidecar import TableMove
from omnigraph.storage.stage.changes import ROWS_PER_FILE, Staged
from omnigraph.storage.tables import TableRef
from omnigraph.write.base import Base
from omnigraph.write.committing.entry import Entry
from omnigraph.write.delta import TableDelta
from omnigraph.write.rules import SHOWN

Result = TypeVar("Result")
"""What a writer finds out while it prepares: counts, a plan, a report."""


@dataclass(frozen=True, slots=True)
class StagedTable:
    """The staged change of one table, and how many rows the table has with it.

    ``files`` names the data files that a bulk job wrote before and that the change refers to.
    """

    staged: Staged
    rows: int
    files: frozenset[str] = frozenset()


Fold = Callable[[TableRef, Staged, str], tuple[Staged, ...]]
"""Folds small files of a table, given its staged change and the id of the operation: what to commit after it."""

Stage = Callable[[TableRef, str], StagedTable]
"""Stages the change of one table, given where the table is and the id of the operation. No table moves."""


@dataclass(frozen=True, slots=True)
class Prepared(Generic[Result]):
    """A change that is ready to be validated and staged, and what the writer found out while preparing it.

    A ``repeatable`` change may be prepared again when a table has moved; any other fails with the conflict. A
    change of no table is committed only if it is ``lineage_only``.
    """

    delta: Mapping[str, TableDelta]
    """Rows by table. They are validated, then staged."""

    result: Result
    """Given back in `Written`."""

    repeatable: bool
    lineage_only: bool = False
    is_blind: bool = False
    """Was it computed without looking at any row of the graph?"""
    stages: Mapping[str, Stage] = field(default_factory=dict)
    """Tables that the writer has validated and stages itself."""

    reads: frozenset[str] = frozenset()
    """Tables whose rows the writer relied on to validate ``stages``."""

    schema: SchemaMove | None = None
    """A change of the schema that is published together with the tables."""

    message: str | None = None
    """The commit's message, if not the one of the request."""

    limit: int = SHOWN
    """How many violations an error lists."""

    @property
    def tables(self) -> set[str]:
        """The tables that change."""
        return {*self.delta, *self.stages}

    @property
    def is_empty(self) -> bool:
        """Is there nothing to commit?"""
        return not self.tables and not self.lineage_only and self.schema is None


@dataclass(frozen=True, slots=True)
class Written(Generic[Result]):
    """What became of a write: its commit, None if there was nothing to change, and the writer's own result.

    ``files`` names the data files of a bulk job that the commit refers to.
    """

    commit: Commit | None
    result: Result
    files: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """Who writes to which branch, and on which condition: ``if_commit`` names the commit the branch must be at.

    A ``batch`` of a stream is written once, and only after the batch before it. ``rows_per_file`` is the size of
    the data files that the protocol stages itself.
    """

    writer: str
    branch: Branch
    actor: str | None = None
    message: str | None = None
    if_commit: str | None = None
    batch: Batch | None = None
    merged_parents: tuple[str, ...] = ()
    """Heads of other branches that the commit brings into this one."""
    rows_per_file: int = ROWS_PER_FILE
    graph_commit_id: str | None = None
    """The id that the commit gets, chosen by the caller; CommitDone if the branch has it already."""
    entry: Entry | None = None
    """The branch as it was found when the request was made, if that was just now."""
    is_quick: bool = False
    """Is the change prepared within milliseconds, so that other writers can wait for it?"""
    compiled_for: Snapshot | None = None
    """The state with whose schema the change was compiled; SchemaChanged if the branch has another schema. None
    for a change that is computed from its base alone."""


@dataclass(frozen=True, slots=True)
class StagedMove:
    """One staged table: the versions to commit one after the other, and the move from the table's version now to
    the last of them. The first has the change, the others rearrange files."""

    table: StagedTable
    versions: tuple[Staged, ...]
    move: TableMove


@dataclass(frozen=True, slots=True)
class Ready(Generic[Result]):
    """A change that keeps every rule, and the state it was prepared against."""

    base: Base
    prepared: Prepared[Result]
    staged: list[StagedMove]
    cleanups: int = 0
    """The newest mark of a cleanup before anything of the write was staged."""

    @property
    def is_staged(self) -> bool:
        """Are its files written? If not, another thread may write them along with its own."""
        return bool(self.staged) or not self.prepared.tables


Prepare = Callable[[Base], Prepared[Result]]
"""A writer's own part: computes its change over one state of the branch. It is called again for a retry."""
