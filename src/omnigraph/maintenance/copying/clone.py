"""`clone`: a copy of a graph that is a graph of its own.

The target is claimed first, and its last object makes it a graph: whatever is there before is recognised as a part
of a copy, and copying again goes on. An earlier copy is brought up to date in the same way; it can be read
meanwhile, because nothing that it refers to is changed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

from omnigraph.errors import CopyRefused, GraphExists, ObjectDamaged, SnapshotNotFound
from omnigraph.failpoints import hit
from omnigraph.maintenance.copying.extent import Extent, Wanted, take_extent
from omnigraph.maintenance.copying.plan import make_plan, require_copied
from omnigraph.maintenance.copying.transfer import Listener, transfer
from omnigraph.manifest.refs.objects import encode_ref
from omnigraph.manifest.refs.tags import encode_tag
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.retained import write_retained
from omnigraph.manifest.state import MAIN
from omnigraph.storage import layout
from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.control.place import Place, PlaceState, read_place, root_of, write_place
from omnigraph.storage.files.transfers import FileStore, open_files
from omnigraph.storage.locks import CommitLock
from omnigraph.storage.objects import ObjectStore

_ATTEMPTS: Final = 3
"""How often a copy is begun if cleanup removes parts of the source meanwhile."""


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What was copied. ``files_kept`` counts the files that an earlier copy had; ``commits`` counts the states
    that can be read in the copy, ``branches`` has the head commit of each branch."""

    source: str
    target: str
    files: int
    bytes: int
    files_kept: int
    branches: Mapping[str, str | None]
    commits: int
    tags: tuple[str, ...]
    history: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "target": self.target,
            "files": self.files,
            "bytes": self.bytes,
            "files_kept": self.files_kept,
            "branches": dict(self.branches),
            "commits": self.commits,
            "tags": list(self.tags),
            "history": self.history,
        }


def clone(repository: Repository, target: Address, wanted: Wanted, listener: Listener | None = None) -> CopyReport:
    """Copy a graph, or a part of it, to a place where nothing is, or bring an earlier copy there up to date."""
    require_apart(repository.address, target)
    source = open_files(repository.address)

    def attempt(extent: Extent, sizes: Mapping[str, int]) -> CopyReport:
        def check(place: Place) -> None:
            require_ancestor(repository, extent, place.copied.get("heads", {}), str(target))

        return copy_to_graph(extent, source, sizes, target, check, listener)

    return with_retries(repository, wanted, source, attempt)


def with_retries(
    repository: Repository,
    wanted: Wanted,
    source: FileStore,
    attempt: Callable[[Extent, Mapping[str, int]], CopyReport],
) -> CopyReport:
    """Copy what is wanted; again, if files were removed from the source meanwhile, as cleanup does."""
    for number in range(1, _ATTEMPTS + 1):
        sizes: dict[str, int] = {}
        extent = take_extent(repository, wanted, partial(_listed, source, sizes))
        try:
            return attempt(extent, sizes)
        except ObjectDamaged:
            if number == _ATTEMPTS or sizes.keys() <= source.sizes().keys():
                raise
    raise AssertionError("the last attempt returns or raises")


def _listed(source: FileStore, into: dict[str, int]) -> Mapping[str, int]:
    into |= source.sizes()
    return into


def require_apart(source: Address, target: Address) -> None:
    """Raise CopyRefused for a target that is the source, or lies inside it or around it."""
    one, other = PurePosixPath(source.root), PurePosixPath(target.root)
    if source.endpoint == target.endpoint and (one == other or one in other.parents or other in one.parents):
        reason = "it is the graph itself" if one == other else f"it and {source} would lie in each other"
        raise CopyRefused(str(target), reason, "choose another place")


def copy_to_graph(
    extent: Extent,
    source: FileStore,
    sizes: Mapping[str, int],
    target: Address,
    check: Callable[[Place], None],
    listener: Listener | None,
) -> CopyReport:
    """Make a graph of an extent. ``check`` raises if a copy that is there, or was begun, cannot be continued."""
    copy = Repository.at(target)
    files = open_files(target)
    _require_free(copy, extent, check)
    with copy.locks.control() as lock:
        place = _require_free(copy, extent, check)
        claim = Place(
            extent.graph_id,
            root_of(target),
            PlaceState.COPYING if place is None or place.state is PlaceState.COPYING else PlaceState.UPDATING,
            tuple(origin for origin in extent.origins if origin != root_of(target)),
            _noted(extent) if place is None else place.copied,
        )
        write_place(copy.objects, claim)
        hit("copy.after_claim")
        report = copy_files(extent, source, sizes, files, str(target), root_of(target), lock, listener)
        _archive(copy, extent, lock)
        _write_refs(copy, extent, lock)
        _require_readable(copy, extent)
        lock.verify()
        hit("copy.before_end")
        write_place(copy.objects, replace(claim, state=PlaceState.WHOLE, copied=_noted(extent)))
    return report


def copy_files(
    extent: Extent,
    source: FileStore,
    sizes: Mapping[str, int],
    target: FileStore,
    shown: str,
    root: str | None,
    lock: CommitLock,
    listener: Listener | None,
) -> CopyReport:
    """Copy the files that are missing at a target, those that make versions last, and check that all are there."""
    plan = make_plan(extent, source, sizes, target.sizes(), root)
    written = transfer("files", source, target, plan.content, listener)
    lock.verify()
    hit("copy.after_content")
    written |= transfer("versions", source, target, plan.versions, listener)
    require_copied(written, target.sizes(), shown)
    lock.verify()
    hit("copy.after_versions")
    states = 0
    for head in extent.heads:
        found = extent.versions[layout.MANIFEST, head.branch.native]
        states += sum(version > (head.branch.fork_version or 0) for version in found)
    return CopyReport(
        extent.source,
        shown,
        len(written),
        sum(written.values()),
        plan.kept,
        extent.commits,
        states,
        tuple(tag.name for tag in extent.tags),
        extent.history,
    )


def is_taken(address: Address, objects: ObjectStore) -> bool:
    """Is there anything but the locks of those who copy? A file, where a graph would be a folder, too."""
    if address.scheme is Scheme.LOCAL and Path(address.root).is_file():
        return True
    return any(not key.startswith(f"{layout.LOCKS}/") for key in objects.list(""))


def _noted(extent: Extent) -> dict[str, Any]:
    copied_at = dt.datetime.now(dt.UTC).isoformat()
    is_whole = extent.archived is None
    return {"source": extent.source, "heads": extent.ends, "copied_at": copied_at, "is_whole": is_whole}


def _require_free(copy: Repository, extent: Extent, check: Callable[[Place], None]) -> Place | None:
    """What lies at the target: nothing, or a copy of the same graph to which nothing was written."""
    place = read_place(copy.objects)
    shown = str(copy.address)
    if place is None:
        if copy.objects.has(layout.SCHEMA_STATE) or copy.objects.exists(layout.MANIFEST):
            raise GraphExists(shown)
        if is_taken(copy.address, copy.objects):
            raise CopyRefused(shown, "there is something else", "choose another place")
        return None
    if place.graph_id != extent.graph_id or not place.copied:
        raise CopyRefused(shown, "there is a graph that is no copy of this one", "choose another place")
    if place.root != root_of(copy.address):
        raise CopyRefused(shown, "it was moved since it was copied", "open it for writing once before")
    if place.copied.get("is_whole", True) != (extent.archived is None):
        one, other = ("a part", "all") if extent.archived is None else ("all", "a part")
        raise CopyRefused(shown, f"it is a copy of {one} of the graph, not of {other}", "choose another place")
    check(place)
    if place.state is PlaceState.WHOLE:
        _require_unchanged(copy, place)
    return place


def _require_unchanged(copy: Repository, place: Place) -> None:
    """Raise CopyRefused if a copy was written to since it was made."""
    found = {}
    for branch in copy.branches.all():
        state = copy.manifest.latest(branch.native)
        commit = None if state.head is None else state.head.graph_commit_id
        found[branch.name] = [branch.native, state.version, commit]
    if found != place.copied.get("heads"):
        remedy = "merge what is there by hand, and choose another place for the copy"
        raise CopyRefused(str(copy.address), "it was written to since it was copied", remedy)


def require_ancestor(repository: Repository, extent: Extent, noted: Mapping[str, Any], shown: str) -> None:
    """Raise CopyRefused unless all that an earlier copy has is in the history of the graph, and in what is copied.

    ``noted`` says where each branch of the earlier copy ends. Two copies of one graph that were both written to
    have versions of the same numbers, and must not be mixed.
    """
    main = repository.branches.find(MAIN)
    ends = {head.branch.native: head.version for head in extent.heads}
    live = {branch.native for branch in repository.branches.all()}
    for name, (native, version, commit) in noted.items():
        try:
            known = commit is None or repository.commits.find(commit, main).graph_commit_id == commit
        except SnapshotNotFound:
            known = False
        if not known:
            reason = f"its branch {name} has commit {commit}, which {extent.source} does not have"
            raise CopyRefused(shown, reason, "choose another place")
        if native in live and ends.get(native, 0) < version:
            raise CopyRefused(shown, f"it has more of branch {name} than is to be copied", "choose another place")


def _archive(copy: Repository, extent: Extent, lock: CommitLock) -> None:
    """Add the commits to the archive that belong there and are not in it, where it is not copied as it is."""
    if extent.archived is None:
        return
    known = copy.manifest.archive.read()
    missing = [commit for commit in extent.archived if commit.graph_commit_id not in known]
    lock.verify()
    if missing:
        copy.manifest.archive.append(missing)


def _write_refs(copy: Repository, extent: Extent, lock: CommitLock) -> None:
    """Write the refs of the branches and tags, and remove those that the source does not have any more."""
    refs = {layout.branch_ref(h.branch.name): encode_ref(h.branch) for h in extent.heads if h.branch.native}
    refs |= {layout.tag_ref(tag.name): encode_tag(tag) for tag in extent.tags}
    lock.verify()
    for folder in (layout.BRANCH_REFS, layout.TAG_REFS):
        for key in copy.objects.list(folder):
            if key not in refs:
                copy.objects.retire(key)
    for key, content in refs.items():
        copy.objects.put(key, content)
    for head in extent.heads:
        copy.manifest.note_newest(head.branch.native, head.version)
    if extent.retained.branches:
        write_retained(copy.objects, extent.retained)
    else:
        copy.objects.delete(layout.RETAINED)
    if extent.intent is not None:
        copy.objects.put(layout.SCHEMA_INTENT, extent.intent)
    else:
        copy.objects.delete(layout.SCHEMA_INTENT)


def _require_readable(copy: Repository, extent: Extent) -> None:
    """Read the newest state of each branch of a copy, and open its tables."""
    for head in extent.heads:
        state = copy.manifest.latest(head.branch.native)
        found = None if state.head is None else state.head.graph_commit_id
        if (state.version, found) != (head.version, head.graph_commit_id):
            raise ObjectDamaged(
                f"{copy.address}/{layout.MANIFEST}", f"branch {head.branch.name} ends at manifest {state.version}"
            )
        for pin in state.tables.values():
            copy.tables.open(pin.ref)
