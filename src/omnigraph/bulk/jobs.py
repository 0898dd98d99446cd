"""Jobs that stage files: their records, when they begin, and where the files of each table go."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType

from omnigraph.bulk.runner import Runner, RunnerChoice
from omnigraph.manifest.ids import fresh_id
from omnigraph.manifest.refs.branches import Branch, native_name
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import TablePin
from omnigraph.recovery.jobs import JobRecord, RunningJob, running
from omnigraph.storage import layout
from omnigraph.storage.files.datafiles import Destination
from omnigraph.write.base import Base


def job_record(
    job: str, kind: str, branch: Branch, pins: Iterable[TablePin], actor: str | None, *, forks: bool = False
) -> JobRecord:
    """The record of a job that begins now and stages files for these tables; with ``forks`` it makes the branch.

    A table that the branch shares with its parent is forked at this version or a later one.
    """
    versions = {pin.location: pin.table_version for pin in pins}
    now = dt.datetime.now(dt.UTC)
    return JobRecord(job, kind, branch.name, branch.native, tuple(sorted(versions)), actor, now, versions, forks)


def planned_branch(repository: Repository, name: str, parent: str) -> Branch:
    """A branch that a job is about to fork, with the native name that it will have, so that the job's record can
    say which branch is its own, and its files can lie in the branch's tree."""
    trimmed, _ = repository.branches.check_create(name, parent)
    incarnation = fresh_id()
    return Branch(trimmed, native_name(trimmed, incarnation), incarnation, parent)


class LateJob:
    """A job on a branch that begins with its first task, because most runs need none.

    Its end removes the files that its tasks have written and no table refers to.
    """

    def __init__(
        self, repository: Repository, runners: RunnerChoice, kind: str, branch: Branch, actor: str | None
    ) -> None:
        self._repository = repository
        self._runners = runners
        self._kind = kind
        self._branch = branch
        self._actor = actor
        self._stack = ExitStack()
        self._begun: tuple[Runner, RunningJob] | None = None

    @property
    def running(self) -> RunningJob | None:
        """The job, if it has begun."""
        return None if self._begun is None else self._begun[1]

    def begin(self) -> tuple[Runner, RunningJob]:
        """The runner of the tasks, and the job whose files they write."""
        if self._begun is None:
            runner = self._runners.start()
            pins = self._repository.manifest.latest(self._branch.native).tables.values()
            record = job_record(runner.job, self._kind, self._branch, pins, self._actor)
            self._begun = runner, self._stack.enter_context(running(self._repository, record))
        return self._begun

    def verify(self) -> None:
        """Raise LockLost if the job has lost its lock: the process that took it may have removed staged files."""
        if self._begun is not None:
            self._begun[1].lock.verify()

    def end(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the job, if it has begun, as the end of a `with` block."""
        self._stack.__exit__(kind, error, trace)


def destination(base: Base, branch: Branch, table_key: str) -> Destination:
    """Where a table's files go that are to be committed to a branch, which may be one that is yet to be forked."""
    pin, address = base.pin(table_key), base.repository.address
    folder = f"{address.lance_root}/{layout.native_prefix(pin.location, branch.native)}"
    version = str(base.open(table_key).data_storage_version)
    return Destination(table_key, address, folder, base.schema(table_key), version)


def destinations(base: Base, branch: Branch) -> dict[str, Destination]:
    """Where the files of every table go."""
    return {table_key: destination(base, branch, table_key) for table_key in base.snapshot.tables}
