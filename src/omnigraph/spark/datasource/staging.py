"""What sinks have in common: tasks stage rows as data files, and what they report is committed beside the driver.

Spark calls a sink's `commit` in a process of its own that has no session; there everything is asked and committed
in memory. No process lives as long as the write, so nobody holds the lock of its job while its files wait: whoever
commits takes it, and looks whether they are all still there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from omnigraph.bulk.destinations import destination
from omnigraph.bulk.load.staging import BlockReader, SliceReport, StagePlan, in_order, stage_rows
from omnigraph.bulk.pieces import require_shared
from omnigraph.bulk.scratch import scratch_folder
from omnigraph.embed.client import configured_client
from omnigraph.embed.resumable import resumable
from omnigraph.errors import JobFailed, OmniError
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.jobs import JobRecord, announce, running
from omnigraph.storage import layout
from omnigraph.storage.address import Address
from omnigraph.storage.objects import open_objects
from omnigraph.write.base import capture

Task = TypeVar("Task")


@dataclass
class StagedPart(WriterCommitMessage):
    """What a task staged: under which job, for which folders, and what came of it; ``query`` is a stream's."""

    job: str
    folders: frozenset[str]
    outcome: SliceReport | OmniError
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Staging:
    """How the tasks of one sink stage rows for one branch, and how what they staged is found again."""

    address: Address
    branch: Branch
    plan: StagePlan
    locations: Mapping[str, str]
    kind: str
    actor: str | None

    @classmethod
    def of(cls, repository: Repository, branch: str, kind: str, actor: str | None) -> Staging:
        """For a branch as it is now."""
        repository.require_writable()
        require_shared(repository.address)
        found = repository.branches.find(branch)
        base = capture(repository, found)
        targets = {key: destination(repository, base, found, key) for key in base.snapshot.tables}
        locations = {key: pin.location for key, pin in sorted(base.snapshot.tables.items())}
        plan = StagePlan("", base.catalog, targets, configured_client())
        return cls(repository.address, found, plan, locations, kind, actor)

    @property
    def folders(self) -> frozenset[str]:
        """Where files are staged: those of another incarnation of the branch lie elsewhere."""
        return frozenset(target.folder for target in self.plan.targets.values())

    def plan_of(self, job: str) -> StagePlan:
        """The plan for the tasks of one job."""
        embedder = resumable(self.plan.embedder, self.address, scratch_folder(job))
        return replace(self.plan, job=job, embedder=embedder)

    def record(self, job: str) -> JobRecord:
        """The job as it is written down."""
        locations, now = tuple(sorted(self.locations.values())), dt.datetime.now(dt.UTC)
        return JobRecord(job, self.kind, self.branch.name, self.branch.native, locations, self.actor, now)

    def stage(
        self, job: str, read: BlockReader, title: str, partition: int, batches: Iterator[pa.RecordBatch]
    ) -> SliceReport | OmniError:
        """On a worker: stage the rows of a partition, of which the first come after the job is written down."""
        return stage_rows(self.plan_of(job), read, title, partition, self._announced(job, batches))

    def _announced(self, job: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        is_known = False
        for batch in batches:
            if batch.num_rows and not is_known:
                announce(open_objects(self.address), self.record(job))
                is_known = True
            yield batch

    def reports(self, repository: Repository, parts: Sequence[StagedPart]) -> list[SliceReport]:
        """What tasks staged, all of which has to be there."""
        reports = in_order(part.outcome for part in parts)
        for file in (file for report in reports for file in report.files):
            folder = layout.native_prefix(self.locations[file.table_key], self.branch.native)
            if not repository.objects.has(f"{folder}/data/{file.name}"):
                raise JobFailed(parts[0].job, "committing", f"staged file {file.name} was removed meanwhile")
        return reports

    def discard(self, repository: Repository, jobs: set[str]) -> None:
        """Remove what tasks staged that will not be committed."""
        for job in jobs:
            record = self.record(job)
            if repository.objects.has(record.key):
                with running(repository, record):
                    pass


def parts_of(messages: Sequence[WriterCommitMessage | None]) -> list[StagedPart]:
    """The messages of tasks that finished."""
    return [message for message in messages if isinstance(message, StagedPart)]
