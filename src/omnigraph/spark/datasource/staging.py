"""What the batch and the streaming sink share: tasks stage rows as data files, and a process of Spark commits.

Spark calls a sink's `commit` in a process of its own that has no session, so every check runs in its memory. No
process lives as long as the write, so the lock of its job is free while its files wait; `commit` takes the lock
and makes sure that all files are still there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from omnigraph.bulk.jobs import destinations, job_record
from omnigraph.bulk.load.staging.stager import BlockReader, SliceReport, StagePlan, in_order, stage_rows
from omnigraph.bulk.pieces import require_shared
from omnigraph.embed.client import configured_client
from omnigraph.embed.resumable import resumable
from omnigraph.errors import JobFailed, OmniError
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import TablePin
from omnigraph.recovery.jobs import JobRecord, announce, running
from omnigraph.storage import layout
from omnigraph.storage.address import Address
from omnigraph.storage.objects import open_objects
from omnigraph.write.base import capture


@dataclass
class StagedPart(WriterCommitMessage):
    """The result of a task: its job, the folders it staged for, its report or error, and the streaming query."""

    job: str
    folders: frozenset[str]
    outcome: SliceReport | OmniError
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Staging:
    """How the tasks of one sink stage rows for one branch, and how their files are found again."""

    address: Address
    branch: Branch
    plan: StagePlan
    pins: Mapping[str, TablePin]
    kind: str
    actor: str | None

    @classmethod
    def of(cls, repository: Repository, branch: str, kind: str, actor: str | None) -> Staging:
        """The staging for the present state of a branch."""
        repository.require_writable()
        require_shared(repository.address)
        found = repository.branches.find(branch)
        base = capture(repository, found)
        pins = dict(sorted(base.snapshot.tables.items()))
        plan = StagePlan(
            "", base.catalog, base.snapshot.schema_digest, destinations(base, found), configured_client()
        )
        return cls(repository.address, found, plan, pins, kind, actor)

    @property
    def folders(self) -> frozenset[str]:
        """Where files are staged. Another incarnation of the branch has other folders."""
        return frozenset(target.folder for target in self.plan.targets.values())

    def plan_of(self, job: str) -> StagePlan:
        """The plan for the tasks of one job."""
        embedder = resumable(self.plan.embedder, self.address, layout.job_folder(job))
        return replace(self.plan, job=job, embedder=embedder)

    def record(self, job: str) -> JobRecord:
        """The record of a job."""
        return job_record(job, self.kind, self.branch, self.pins.values(), self.actor)

    def stage(
        self, job: str, read: BlockReader, title: str, partition: int, batches: Iterator[pa.RecordBatch]
    ) -> SliceReport | OmniError:
        """On a worker: stage the rows of a partition. The record of the job is written before the first row."""
        return stage_rows(self.plan_of(job), read, title, partition, self._announced(job, batches))

    def _announced(self, job: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        is_known = False
        for batch in batches:
            if batch.num_rows and not is_known:
                announce(open_objects(self.address), self.record(job))
                is_known = True
            yield batch

    def reports(self, repository: Repository, parts: Sequence[StagedPart]) -> list[SliceReport]:
        """The reports of tasks. JobFailed if one of their files is missing."""
        reports = in_order(part.outcome for part in parts)
        for file in (file for report in reports for file in report.files):
            folder = layout.native_prefix(self.pins[file.table_key].location, self.branch.native)
            if not repository.objects.has(f"{folder}/data/{file.name}"):
                raise JobFailed(parts[0].job, "committing", f"staged file {file.name} was removed meanwhile")
        return reports

    def discard(self, repository: Repository, jobs: set[str]) -> None:
        """Remove the files that tasks of some jobs staged and that will not be committed."""
        for job in jobs:
            record = self.record(job)
            if repository.objects.has(record.key):
                with running(repository, record):
                    pass


def parts_of(messages: Sequence[WriterCommitMessage | None]) -> list[StagedPart]:
    """The messages of tasks that finished."""
    return [message for message in messages if isinstance(message, StagedPart)]
