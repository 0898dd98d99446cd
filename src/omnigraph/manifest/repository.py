"""The repository: a graph on a store with all its parts, as `create` makes and `open_existing` opens it."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.errors import (
    BranchNotFound,
    GraphExists,
    GraphNotFound,
    HistoryReclaimed,
    NotAGraph,
    ReadOnlyGraph,
    StorageError,
)
from omnigraph.failpoints import hit
from omnigraph.formats.columns import table_schema
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.lang.schema.identity import SchemaIR, first_identities
from omnigraph.manifest.cleanups import Cleanups
from omnigraph.manifest.commits import Commits
from omnigraph.manifest.ids import fresh_id
from omnigraph.manifest.places import note_place, require_readable, settle_place
from omnigraph.manifest.publisher import Manifest
from omnigraph.manifest.refs.branches import Branch, Branches
from omnigraph.manifest.refs.names import in_utc, moment_named
from omnigraph.manifest.refs.tags import Tags
from omnigraph.manifest.schemas import Schemas
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import MAIN, ManifestState, TablePin, encode
from omnigraph.records import dataclass
from omnigraph.settings import WRITE_DEFAULTS, WriteSettings
from omnigraph.storage import layout
from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.control.sealed import digest, seal
from omnigraph.storage.locking.process import require_process, use_here
from omnigraph.storage.locks import Locks
from omnigraph.storage.objects import ObjectStore, open_objects, require_conditional_put
from omnigraph.storage.rows.small import SmallTables
from omnigraph.storage.tables import Tables
from omnigraph.storage.together import in_shares

if TYPE_CHECKING:
    from omnigraph.lang.schema.resolve import CompiledSchema
    from omnigraph.policy.guard import Guard

_FOLDERS = (layout.SCHEMAS, layout.NODES, layout.EDGES, layout.COMMITS, layout.RECOVERIES, "_refs")
_ARTIFACTS = (*layout.SCHEMA_FILES, layout.PLACE, *_FOLDERS)


@dataclass(frozen=True)
class Repository:
    """One graph, opened: its objects, tables, locks, manifest, branches, tags, commits, schemas and cleanups."""

    address: Address
    objects: ObjectStore
    tables: Tables
    small_tables: SmallTables
    locks: Locks
    manifest: Manifest
    branches: Branches
    tags: Tags
    commits: Commits
    schemas: Schemas
    cleanups: Cleanups
    process: int
    read_only: bool = False
    settings: WriteSettings = WRITE_DEFAULTS
    guard: Guard | None = None
    """Asks a policy about each write; None if the graph was opened without one."""

    @classmethod
    def at(cls, address: Address, *, read_only: bool = False) -> Repository:
        """The parts of a graph at an address; nothing is read or written yet."""
        process = use_here(str(address))
        objects = open_objects(address)
        tables = Tables(address, objects)
        manifest = Manifest(tables, objects)
        tags = Tags(objects, address.scheme)
        branches = Branches(manifest, tables, objects, tags)
        return cls(
            address,
            objects,
            tables,
            SmallTables(tables),
            Locks(address, objects),
            manifest,
            branches,
            tags,
            Commits(manifest, branches, tags),
            Schemas(objects, str(address)),
            Cleanups(),
            process,
            read_only,
        )

    def snapshot(self, branch: Branch, state: ManifestState | None = None) -> Snapshot:
        """A state of a branch, the newest one by default, with everything that reading its tables takes."""
        found = self.manifest.latest(branch.native) if state is None else state
        return Snapshot.of(self.address, self.schemas.catalog(found.schema), branch.name, found)

    def snapshot_at(self, branch: Branch, at: str | int | dt.datetime | None) -> Snapshot:
        """The newest state of a branch, or the one at a manifest version, a moment, a commit or a tag.

        A commit may be on another branch; the snapshot is then of that one. So is that of a moment at which the
        branch had not been made yet.
        """
        if at is None:
            return self.snapshot(branch)
        if isinstance(at, int):
            return self.snapshot(branch, self.commits.state_of(branch, at))
        moment = in_utc(at) if isinstance(at, dt.datetime) else moment_named(at.strip())
        if moment is not None:
            commit = self.commits.as_of(branch, moment)
        else:
            assert isinstance(at, str)  # noqa: S101  a moment is None only for a text
            commit = self.commits.find(at, branch)
        owner, state = self.commits.state_at(commit)
        return self.snapshot(owner, replace(state, commits=(commit,)))

    def require_there(self, snapshot: Snapshot) -> None:
        """Raise HistoryReclaimed if a snapshot that is held for long has been cleaned away; a read failed then."""
        with suppress(StorageError):
            if snapshot.commit is None:
                self.commits.state_of(self.branches.find(snapshot.branch), snapshot.manifest_version)
            else:
                self.commits.require_kept(snapshot.commit)

    def catalog(self, branch: str, or_of: str | None = None) -> Catalog:
        """The newest schema of a branch; that of ``or_of``, if it is given and the branch does not exist."""
        try:
            found = self.branches.find(branch)
        except BranchNotFound:
            if or_of is None:
                raise
            found = self.branches.find(or_of)
        return self.schemas.catalog(self.manifest.latest(found.native).schema)

    def require_process(self) -> None:
        """Raise ForkedProcess in a child that was forked since the graph was opened."""
        require_process(self.process, str(self.address))

    def require_writable(self) -> None:
        """Raise ReadOnlyGraph unless the graph was opened for writing."""
        if self.read_only:
            raise ReadOnlyGraph(str(self.address))


def open_existing(address: Address, *, read_only: bool) -> Repository:
    """Open a graph. Opening for writing migrates a manifest of an older release; reading never writes."""
    repository = Repository.at(address, read_only=read_only)
    if not can_hold_tables(address):
        raise why_not_a_graph(repository)
    place = require_readable(address, repository.objects)
    try:
        repository.manifest.latest(None)
    except HistoryReclaimed:
        raise why_not_a_graph(repository) from None
    if read_only:
        return repository
    _require_trusted_store(repository)
    settle_place(address, repository.objects, repository.locks, repository.branches, repository.schemas, place)
    from omnigraph.manifest.migrations import Migrator

    migrator = Migrator(repository.manifest, repository.branches, repository.tables, repository.objects)
    if migrator.is_needed():
        with repository.locks.control():
            migrator.migrate()
    return repository


def can_hold_tables(address: Address) -> bool:
    """Can tables be opened here? Where a file is instead of a folder, Lance would retry for seconds."""
    return address.scheme is not Scheme.LOCAL or Path(address.root).is_dir()


def why_not_a_graph(repository: Repository) -> GraphNotFound | NotAGraph:
    """The error about a place that has no manifest."""
    address = str(repository.address)
    if repository.objects.has(layout.INIT_CLAIM):
        return NotAGraph(address, "its creation was interrupted", "run `omnigraph init` again")
    if repository.objects.exists(""):
        return NotAGraph(address, f"it has no {layout.MANIFEST}", "check the address")
    return GraphNotFound(address)


def create(
    address: Address, schema: CompiledSchema, *, actor: str | None = None, force: bool = False
) -> Repository:
    """Create a graph. The manifest is written last: without it there is no graph, and creation can be repeated.

    ``force`` lets it replace schema files that belong to no graph; it never replaces a graph.
    """
    from omnigraph.manifest.publisher import CommitDraft, initial_state

    repository = Repository.at(address)
    _refuse_existing(repository, force)
    _require_trusted_store(repository)
    with repository.locks.control() as lock:
        _refuse_existing(repository, force)
        for leftover in _ARTIFACTS:
            if repository.objects.exists(leftover):
                repository.objects.delete_prefix(leftover)
                repository.objects.delete(leftover)
        claim = {"created_at": dt.datetime.now(dt.UTC).isoformat(), "actor": actor}
        repository.objects.put(layout.INIT_CLAIM, seal(claim))
        hit("init.after_claim")
        ir = first_identities(schema, domain=fresh_id())
        pins = _create_tables(repository, Catalog(ir))
        _write_schema(repository, schema, ir)
        note_place(address, repository.objects, ir.domain)
        hit("init.before_manifest")
        lock.verify()
        first = initial_state(pins, CommitDraft("init", actor_id=actor, message="create the graph"))
        repository.tables.create_filled(layout.MANIFEST, encode(first, MAIN))
        hit("init.after_manifest")
        repository.manifest.note_newest(None, first.version)
        repository.objects.delete(layout.INIT_CLAIM)
    return repository


def _refuse_existing(repository: Repository, force: bool) -> None:
    """Raise if there is a graph, or files that may belong to one.

    Another process may be creating one. It makes its claim before any file, and removes it after the manifest is
    there, so files, claim and manifest are looked for in this order: a creation that ends in between is a graph.
    """
    objects, address = repository.objects, str(repository.address)
    found = [name for name in _ARTIFACTS if objects.exists(name)]
    is_claimed = objects.has(layout.INIT_CLAIM)
    if can_hold_tables(repository.address) and repository.tables.newest(layout.MANIFEST) is not None:
        raise GraphExists(address)
    if found and not force and not is_claimed:
        raise NotAGraph(
            address, f"it has {', '.join(found)} but no {layout.MANIFEST}", "remove them, or use --force"
        )


def _require_trusted_store(repository: Repository) -> None:
    """Probe a store at an endpoint of its own: StoreUnsupported if it does not enforce conditional puts."""
    if repository.address.scheme is Scheme.S3 and repository.address.endpoint is not None:
        require_conditional_put(repository.objects, repository.address, fresh_id())


def _create_tables(repository: Repository, catalog: Catalog) -> dict[str, TablePin]:
    entities: list[EntityType] = [*catalog.nodes.values(), *catalog.edges.values()]

    def created(entity: EntityType) -> TablePin:
        location = layout.table_location(entity.table_key)
        ref = repository.tables.create(location, table_schema(entity))
        hit("init.after_table")
        return TablePin(entity.table_key, location, ref.version)

    return {pin.table_key: pin for pin in in_shares(created, entities)}


def _write_schema(repository: Repository, schema: CompiledSchema, ir: SchemaIR) -> None:
    contents = {layout.SCHEMA_SOURCE: schema.source.text.encode(), layout.SCHEMA_IR: ir.dumps().encode()}
    state = {
        "shape_hash": ir.shape.hash,
        "next_identity_id": ir.next_identity_id,
        "digests": {key: digest(content) for key, content in contents.items()},
    }
    for key, content in contents.items():
        repository.objects.put(key, content)
    repository.objects.put(layout.SCHEMA_STATE, seal(state))
    hit("init.after_schema")
