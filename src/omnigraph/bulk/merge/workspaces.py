"""Where the tasks of a large merge put their files: in the graph, to be committed, or aside, for a preview."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from omnigraph.bulk.jobs import destination, job_record
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.jobs import RunningJob, announce, running
from omnigraph.storage import layout
from omnigraph.storage.address import Address, parse_address
from omnigraph.storage.files.datafiles import Destination
from omnigraph.storage.objects import open_objects
from omnigraph.write.base import Base


@dataclass(frozen=True, slots=True)
class Workspace:
    """The place of one job: the address that its folder lies below, and the job, if its files can be committed."""

    address: Address
    job: RunningJob | None = None

    def destination(self, base: Base, branch: Branch, table_key: str) -> Destination:
        """Where the files of a table go."""
        place = destination(base, branch, table_key)
        if self.address == base.repository.address:
            return place
        folder = f"{self.address.lance_root}/{layout.native_prefix(base.pin(table_key).location, None)}"
        return replace(place, address=self.address, folder=folder)


OpenWorkspace = Callable[[str], AbstractContextManager[Workspace]]
"""Makes the workspace of a job, given its id. What is not committed is removed at the end."""


def in_graph(repository: Repository, branch: Branch, kind: str, actor: str | None) -> OpenWorkspace:
    """Workspaces in the graph itself, which every worker reaches."""
    return partial(_in_graph, repository, branch, kind, actor)


def aside(branch: Branch) -> OpenWorkspace:
    """Workspaces in a temporary directory of this machine: the graph may be one that can only be read."""
    return partial(_aside, branch)


@contextmanager
def _in_graph(
    repository: Repository, branch: Branch, kind: str, actor: str | None, job: str
) -> Iterator[Workspace]:
    pins = repository.manifest.latest(branch.native).tables.values()
    with running(repository, job_record(job, kind, branch, pins, actor)) as running_job:
        yield Workspace(repository.address, running_job)


@contextmanager
def _aside(branch: Branch, job: str) -> Iterator[Workspace]:
    with tempfile.TemporaryDirectory(prefix="omnigraph-merge-", ignore_cleanup_errors=True) as folder:
        address = parse_address(folder)
        announce(open_objects(address), job_record(job, "preview", branch, (), None))
        yield Workspace(address)
