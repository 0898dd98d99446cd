"""One examination of a graph: the branches, the tables and the tagged states that the checks look at.

It opens the graph anew, so that nothing is taken from what a process has cached, and it takes no lock. Each branch
is looked at as it is when the examination begins; writers go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from omnigraph.errors import BranchNotFound, GraphMoved, OmniError, UpgradeRequired
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.maintenance.doctor.report import DoctorProgress, Finding, ProgressListener, Severity
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.refs.tags import Tag
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import ManifestState, TablePin
from omnigraph.storage import layout
from omnigraph.storage.tables import TableRef

RESTORE = "restore it from a backup of the graph"
UPGRADE = "upgrade omnigraph first"


@dataclass(frozen=True, slots=True)
class ExaminedTable:
    """One version of a table that a state of the graph names. ``entity`` is None if the schema cannot be read."""

    shown: str
    """The branch, or the tag, through which the version is seen first."""
    pin: TablePin
    entity: EntityType | None
    schema: str | None
    """What names the schema of that state."""

    @property
    def table_key(self) -> str:
        return self.pin.table_key


@dataclass(frozen=True, slots=True)
class ExaminedBranch:
    """A branch and its newest state. ``catalog`` is None if its schema cannot be read."""

    branch: Branch
    state: ManifestState
    catalog: Catalog | None

    def snapshot(self, repository: Repository) -> Snapshot:
        """The state as readers see it."""
        assert self.catalog is not None  # noqa: S101  only branches with a schema are read
        return Snapshot.of(repository.address, self.catalog, self.branch.name, self.state)


@dataclass
class Examination:
    """What the checks share. ``unreadable`` are versions with damage, which later checks do not read again."""

    repository: Repository
    quick: bool = False
    only_branch: str | None = None
    listener: ProgressListener | None = None
    branches: list[ExaminedBranch] = field(default_factory=list)
    tagged: list[tuple[Tag, ManifestState]] = field(default_factory=list)
    unreadable: set[TableRef] = field(default_factory=set)

    def begin(self) -> Iterator[Finding]:
        """Read the newest state of every branch, and the states that tags keep; what cannot be read is found."""
        yield from self._read_branches()
        yield from self._read_tags()

    def _read_branches(self) -> Iterator[Finding]:
        repository = self.repository
        try:
            listed, damaged = repository.branches.listed()
        except OmniError as error:
            yield self._unreadable_state("main", error)
            return
        for broken in damaged:
            yield Finding("ref_damaged", Severity.ERROR, str(broken), broken.remedy, file=broken.key)
        for branch in listed:
            if self.only_branch not in (None, branch.name):
                continue
            try:
                state = repository.manifest.latest(branch.native)
            except BranchNotFound:
                if repository.branches.has(branch.ref):
                    yield Finding(
                        "ref_dangling",
                        Severity.ERROR,
                        f"branch '{branch.name}' has a ref, but no manifest",
                        f"{RESTORE}, or run `omnigraph branch delete {branch.name}`",
                        branch.name,
                    )
            except OmniError as error:
                yield self._unreadable_state(branch.name, error)
            else:
                self.branches.append(ExaminedBranch(branch, state, self._catalog(state)))

    def _unreadable_state(self, branch: str, error: OmniError) -> Finding:
        if isinstance(error, UpgradeRequired):
            return Finding("newer_release", Severity.ERROR, str(error), UPGRADE, branch)
        if isinstance(error, GraphMoved):
            return Finding("moved_directory", Severity.ERROR, str(error), error.remedy, branch)
        file = getattr(error, "key", None)
        return Finding("manifest_unreadable", Severity.ERROR, str(error), RESTORE, branch, file=file)

    def _read_tags(self) -> Iterator[Finding]:
        repository = self.repository
        tags, damaged = repository.tags.listed()
        for broken in damaged:
            yield Finding("tag_damaged", Severity.ERROR, str(broken), broken.remedy, file=broken.key)
        for tag in tags:
            if self.only_branch not in (None, tag.branch):
                continue
            try:
                branch = repository.branches.find(tag.branch)
                _, state = repository.commits.state_at(repository.commits.find(tag.graph_commit_id, branch))
            except OmniError as error:
                if repository.tags.get(tag.name) == tag:
                    yield Finding(
                        "tag_dangling",
                        Severity.ERROR,
                        f"tag '{tag.name}' names commit {tag.graph_commit_id}, whose state is not there: {error}",
                        f"{RESTORE}, or run `omnigraph tag delete {tag.name}`",
                        tag.branch,
                    )
            else:
                self.tagged.append((tag, state))

    def _catalog(self, state: ManifestState) -> Catalog | None:
        try:
            return self.repository.schemas.catalog(state.schema)
        except OmniError:
            return None  # the check of control objects says why

    def gone(self) -> set[str]:
        """The branches that were deleted since the examination began, or of which a cleanup has removed the state
        that was examined; what is missing of these is not damage."""
        return {each.branch.name for each in self.branches if self._is_gone(each)}

    def _is_gone(self, examined: ExaminedBranch) -> bool:
        repository, branch = self.repository, examined.branch
        try:
            if not repository.branches.has(branch.ref):
                return True
            state = TableRef(layout.MANIFEST, branch.native, examined.state.version)
            return not repository.tables.exists(state) and repository.tables.moved(state)
        except OmniError:
            return False

    def heads(self, check: str) -> Iterator[ExaminedTable]:
        """The tables of the newest states, each version once however many branches of one schema share it."""
        seen = {(table.table_key, table.pin.ref, table.schema): table for table in reversed(self._of_branches())}
        yield from self._progressed(check, list(reversed(seen.values())))

    def pinned(self, check: str) -> Iterator[ExaminedTable]:
        """The tables of the newest states and of tagged ones, each version once."""
        seen = {table.pin.ref: table for table in reversed([*self._of_branches(), *self._of_tags()])}
        yield from self._progressed(check, list(reversed(seen.values())))

    def _of_branches(self) -> list[ExaminedTable]:
        return [
            ExaminedTable(each.branch.name, pin, _entity(each.catalog, key), each.state.schema)
            for each in self.branches
            for key, pin in each.state.tables.items()
        ]

    def _of_tags(self) -> list[ExaminedTable]:
        return [
            ExaminedTable(tag.branch, pin, _entity(self._catalog(state), key), state.schema)
            for tag, state in self.tagged
            for key, pin in state.tables.items()
        ]

    def _progressed(self, check: str, tables: list[ExaminedTable]) -> Iterator[ExaminedTable]:
        for done, table in enumerate(tables):
            self.progress(check, done, len(tables))
            yield table
        self.progress(check, len(tables), len(tables))

    def progress(self, check: str, done: int, tables: int) -> None:
        """Tell the listener how far a check is."""
        if self.listener is not None:
            self.listener(DoctorProgress(check, done, tables))


def _entity(catalog: Catalog | None, table_key: str) -> EntityType | None:
    if catalog is None:
        return None
    kind, _, name = table_key.partition(":")
    return catalog.nodes.get(name) if kind == "node" else catalog.edges.get(name)
