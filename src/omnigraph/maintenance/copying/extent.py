"""What a copy of a graph consists of: the newest version of each copied branch, and all that belongs to it.

An extent is taken at one moment, without a lock: everything it names is immutable, so that writers can go on while
it is copied. What a writer has committed to a table and not published is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from omnigraph.errors import CopyRefused, HistoryReclaimed
from omnigraph.maintenance.cleanup.bases import merge_states
from omnigraph.manifest.lineage import history
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.refs.objects import decode_ref, encode_ref
from omnigraph.manifest.refs.tags import Tag, decode_tag, encode_tag
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.retained import (
    Retained,
    RetainedStates,
    decode_retained,
    encode_retained,
    read_retained,
)
from omnigraph.manifest.stamp import INTERNAL_SCHEMA_VERSION
from omnigraph.manifest.state import MAIN, Commit, ManifestState
from omnigraph.storage import layout
from omnigraph.storage.control.place import read_place, root_of
from omnigraph.storage.control.sealed import number, optional_text, text, texts

LOGS: Final = (layout.COMMITS, layout.RECOVERIES)
"""Tables that only grow, of which the newest version has everything."""

_ROUNDS: Final = 16
_NAMES: Final = (layout.SCHEMA_SOURCE, layout.SCHEMA_IR, layout.SCHEMA_STATE)

Versions = Mapping[tuple[str, str | None], tuple[int, ...]]
"""Versions by table and native branch, sorted."""


@dataclass(frozen=True, slots=True)
class Head:
    """A branch, and the version of its manifest and the commit at which it ends in a copy."""

    branch: Branch
    version: int
    graph_commit_id: str | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which part of a graph is to be copied: a branch or all, up to a manifest version or the newest one, and with
    or without the states before."""

    branch: str | None = None
    version: int | None = None
    history: bool = True


@dataclass(frozen=True, slots=True)
class Extent:
    """A part of a graph, as of one moment.

    ``objects`` are the keys of small objects that are copied as they are: schemas, and states that cleanup kept.
    ``origins`` are the roots that the graph has had; ``intent`` is a change of all branches' schemas that was not
    finished. ``archived`` has the commits that belong into the archive of a part of a graph; None if the archive
    is copied as it is.
    """

    graph_id: str
    source: str
    heads: tuple[Head, ...]
    tags: tuple[Tag, ...]
    versions: Versions
    objects: tuple[str, ...]
    origins: tuple[str, ...]
    history: bool = True
    intent: bytes | None = field(default=None, repr=False)
    archived: tuple[Commit, ...] | None = field(default=None, repr=False)
    retained: Retained = field(default_factory=Retained, repr=False)

    @property
    def commits(self) -> dict[str, str | None]:
        """The head commit of each branch."""
        return {head.branch.name: head.graph_commit_id for head in self.heads}

    @property
    def ends(self) -> dict[str, list[Any]]:
        """Where each branch ends, as a copy notes it: its native branch, its manifest version and its commit."""
        return {head.branch.name: [head.branch.native, head.version, head.graph_commit_id] for head in self.heads}

    def as_json(self) -> dict[str, Any]:
        return {
            "graph_id": self.graph_id,
            "source": self.source,
            "heads": [_encoded_head(head) for head in self.heads],
            "tags": {tag.name: encode_tag(tag).decode() for tag in self.tags},
            "versions": [[*place, _ranges(versions)] for place, versions in self.versions.items()],
            "objects": list(self.objects),
            "origins": list(self.origins),
            "history": self.history,
            "intent": None if self.intent is None else self.intent.decode(),
            "retained": encode_retained(self.retained),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Extent:
        intent = optional_text(stored["intent"])
        return cls(
            text(stored["graph_id"]),
            text(stored["source"]),
            tuple(_decoded_head(head) for head in stored["heads"]),
            tuple(decode_tag(name, text(content).encode()) for name, content in stored["tags"].items()),
            {(text(of), optional_text(on)): _versions(ranges) for of, on, ranges in stored["versions"]},
            texts(stored["objects"]),
            texts(stored["origins"]),
            stored["history"] is True,
            None if intent is None else intent.encode(),
            retained=decode_retained(stored["retained"]),
        )


def take_extent(repository: Repository, wanted: Wanted, sizes: Callable[[], Mapping[str, int]]) -> Extent:
    """The wanted part of a graph as it is now. ``sizes`` lists the graph's files; it is called after the branches
    were read, so that all files of what was read are in it."""
    intents = [_intent(repository)]
    states = _states(repository, wanted)
    intents.append(_intent(repository))
    for _, state in states:
        for pin in state.tables.values():
            repository.tables.check_version(pin.ref)
    listed = sizes()
    natives = {branch.native for branch, _ in states}
    present: dict[tuple[str, str | None], list[int]] = {}
    for key in listed:
        made = layout.version_place(key)
        if made is not None and made[1] in natives:
            present.setdefault(made[:2], []).append(made[2])
    place = read_place(repository.objects)
    versions = _kept(wanted, states, present) if wanted.history else _newest(repository, states, present)
    _require_heads(states, versions)
    return Extent(
        repository.schemas.catalog(None).ir.domain,
        str(repository.address),
        tuple(_head(branch, state) for branch, state in states),
        _tags(repository, states) if wanted.history else (),
        versions,
        _objects(listed, states),
        tuple(dict.fromkeys((*(() if place is None else place.origins), root_of(repository.address)))),
        wanted.history,
        next((intent for intent in intents if intent is not None), None) if wanted.branch is None else None,
        None if wanted.branch is None else _ancestors(repository, states),
        _retained(repository, states) if wanted.history else _newest_only(states, versions),
    )


def _require_heads(states: list[tuple[Branch, ManifestState]], versions: Versions) -> None:
    """Raise HistoryReclaimed if a state at which a branch is to end is only kept for others, by cleanup."""
    for branch, state in states:
        if state.version not in versions.get((layout.MANIFEST, branch.native), ()):
            wanted = f"manifest version {state.version} of branch {branch.name}"
            raise HistoryReclaimed(wanted, "copy all branches, or a newer state")


def _objects(listed: Iterable[str], states: list[tuple[Branch, ManifestState]]) -> tuple[str, ...]:
    """The schemas, and the states of copied branches that cleanup has kept."""
    ends = {branch.native or MAIN: state.version for branch, state in states}
    found = [key for key in listed if key in _NAMES or key.startswith(f"{layout.SCHEMAS}/")]
    for key in listed:
        if key.startswith(f"{layout.KEPT_STATES}/"):
            native, _, version = key.removeprefix(f"{layout.KEPT_STATES}/").removesuffix(".json").rpartition("/")
            if version.isdecimal() and int(version) <= ends.get(native, 0):
                found.append(key)
    return tuple(sorted(found))


def _retained(repository: Repository, states: list[tuple[Branch, ManifestState]]) -> Retained:
    """What cleanup has left of the copied branches."""
    natives = {branch.native or MAIN for branch, _ in states}
    left = read_retained(repository.objects).branches
    return Retained({native: found for native, found in left.items() if native in natives})


def _newest_only(states: list[tuple[Branch, ManifestState]], versions: Versions) -> Retained:
    """What is left of branches of which the newest states are copied."""
    left = {}
    for branch, state in states:
        commit = None if state.head is None else state.head.graph_commit_id
        older = frozenset(versions[layout.MANIFEST, branch.native]) - {state.version}
        left[branch.native or MAIN] = RetainedStates(state.version, commit, older)
    return Retained(left)


def _ancestors(repository: Repository, states: list[tuple[Branch, ManifestState]]) -> tuple[Commit, ...]:
    """The commits that led to some states and are in none of them, oldest first."""
    tails = {commit.graph_commit_id for _, state in states for commit in state.commits}
    _, newest = states[-1]
    found = history(newest.head, repository.commits.ancestry(*(branch for branch, _ in states)))
    return tuple(commit for commit in found if commit.graph_commit_id not in tails)[::-1]


def _intent(repository: Repository) -> bytes | None:
    found = repository.objects.get(layout.SCHEMA_INTENT)
    return None if found is None else found.content


def _states(repository: Repository, wanted: Wanted) -> list[tuple[Branch, ManifestState]]:
    """The copied branches, main first, each with the state at which it ends."""
    if repository.manifest.latest(None).stamp < INTERNAL_SCHEMA_VERSION:
        reason = f"{repository.address} has the format of an older release"
        raise CopyRefused("a copy", reason, "open it for writing once, which brings it up to date")
    if wanted.branch is not None:
        return _line(repository, repository.branches.find(wanted.branch), wanted.version)
    branches, unreadable = repository.branches.listed()
    if unreadable:
        raise unreadable[0]
    states = {branch.name: (branch, repository.manifest.latest(branch.native)) for branch in branches}
    for _ in range(_ROUNDS):
        late = _overtaken(repository, list(states.values()))
        if not late:
            break
        states |= {branch.name: (branch, state) for branch, state in late}
    return list(states.values())


def _line(repository: Repository, branch: Branch, version: int | None) -> list[tuple[Branch, ManifestState]]:
    """A branch and those it descends from, each up to where the next one left it."""
    line = []
    while branch.parent is not None and version is not None and version < (branch.fork_version or 0):
        branch = repository.branches.find(branch.parent)
    while True:
        newest = repository.manifest.latest(branch.native)
        line.append((branch, newest if version is None else repository.manifest.at(branch.native, version)))
        if branch.parent is None:
            return line[::-1]
        version, branch = branch.fork_version, repository.branches.find(branch.parent)


def _overtaken(
    repository: Repository, states: Iterable[tuple[Branch, ManifestState]]
) -> list[tuple[Branch, ManifestState]]:
    """The branches of which another branch has merged a commit that was made after they were read, as they were
    after that commit."""
    read = list(states)
    known = {commit.graph_commit_id for _, state in read for commit in state.commits}
    merged = {parent for _, state in read for commit in state.commits for parent in commit.parents[1:]} - known
    if not merged:
        return []
    late = []
    for branch, state in read:
        newer = repository.manifest.latest(branch.native)
        made = [c for c in newer.commits if c.graph_commit_id in merged and c.manifest_version > state.version]
        if made:
            version = max(commit.manifest_version for commit in made)
            late.append((branch, repository.manifest.at(branch.native, version)))
    return late


def _head(branch: Branch, state: ManifestState) -> Head:
    return Head(branch, state.version, None if state.head is None else state.head.graph_commit_id)


def _tags(repository: Repository, states: Iterable[tuple[Branch, ManifestState]]) -> tuple[Tag, ...]:
    """The tags of commits that are copied."""
    ends = {branch.name: state.version for branch, state in states}
    return tuple(tag for tag in repository.tags.pinned() if tag.manifest_version <= ends.get(tag.branch, 0))


def _kept(
    wanted: Wanted,
    states: list[tuple[Branch, ManifestState]],
    present: Mapping[tuple[str, str | None], list[int]],
) -> Versions:
    """All versions up to those that the copied branches end at. A table that a branch had once, and has no longer,
    is copied whole; a fork of a table that its branch does not refer to yet is left out."""
    ends: dict[tuple[str, str | None], int] = {}
    located = {branch.native: {pin.location for pin in state.tables.values()} for branch, state in states}
    for branch, state in states:
        ends[layout.MANIFEST, branch.native] = state.version
        for pin in state.tables.values():
            place = pin.location, pin.table_branch
            ends[place] = max(ends.get(place, 0), pin.table_version)
    found: dict[tuple[str, str | None], tuple[int, ...]] = {}
    for place, versions in sorted(present.items(), key=lambda item: (item[0][0], item[0][1] or "")):
        location, native = place
        if location in LOGS:
            if wanted.branch is None or location != layout.COMMITS:
                found[place] = (max(versions),)
        elif place in ends or location not in located[native]:
            end = ends.get(place)
            found[place] = tuple(sorted(v for v in versions if end is None or v <= end))
    return found


def _newest(
    repository: Repository,
    states: list[tuple[Branch, ManifestState]],
    present: Mapping[tuple[str, str | None], list[int]],
) -> Versions:
    """The versions of the states at which the branches end, and of those at which they left each other or were
    merged last, without which they could not be merged."""
    wanted: dict[tuple[str, str | None], set[int]] = {}
    by_name = {branch.name: branch for branch, _ in states}
    kept = list(states)
    for branch, _ in states:
        if branch.parent in by_name and branch.fork_version is not None:
            parent = by_name[branch.parent]
            kept.append((parent, repository.manifest.at(parent.native, branch.fork_version)))
            wanted.setdefault((layout.MANIFEST, branch.native), set()).add(branch.fork_version)
    for base in _merge_bases(repository, states):
        branch = by_name[base.branch]
        kept.append((branch, repository.manifest.at(branch.native, base.manifest_version)))
    for branch, state in kept:
        wanted.setdefault((layout.MANIFEST, branch.native), set()).add(state.version)
        for pin in state.tables.values():
            ref = pin.ref
            wanted.setdefault((ref.location, ref.branch), set()).add(ref.version)
            while (left := repository.tables.left_from(ref)) is not None:
                wanted.setdefault((ref.location, ref.branch), set()).add(left.version)
                wanted.setdefault((left.location, left.branch), set()).add(left.version)
                ref = left
    there = {
        place: tuple(sorted(wanted[place] & set(found))) for place, found in present.items() if place in wanted
    }
    return dict(sorted(there.items(), key=lambda item: (item[0][0], item[0][1] or "")))


def _merge_bases(repository: Repository, states: list[tuple[Branch, ManifestState]]) -> list[Commit]:
    """The commits of copied branches from which they would be merged, as far as their states are there."""
    branches = [branch for branch, _ in states]
    heads = {branch.name: state.head for branch, state in states if state.head is not None}

    def is_readable(commit: Commit) -> bool:
        try:
            repository.commits.require_kept(commit)
        except HistoryReclaimed:
            return False
        return commit.branch in heads

    found = merge_states(heads, branches, repository.commits.ancestry(*branches), is_readable)
    return [commit for commit in found if is_readable(commit)]


def _encoded_head(head: Head) -> dict[str, Any]:
    ref = None if head.branch.native is None else encode_ref(head.branch).decode()
    return {
        "branch": head.branch.name,
        "ref": ref,
        "version": head.version,
        "graph_commit_id": head.graph_commit_id,
    }


def _decoded_head(stored: Mapping[str, Any]) -> Head:
    name, ref = text(stored["branch"]), optional_text(stored["ref"])
    branch = Branch(name, None) if ref is None else decode_ref(name, ref.encode())
    return Head(branch, number(stored["version"]), optional_text(stored["graph_commit_id"]))


def _ranges(versions: Iterable[int]) -> list[list[int]]:
    """Sorted numbers as runs of consecutive ones."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and runs[-1][1] == version - 1:
            runs[-1][1] = version
        else:
            runs.append([version, version])
    return runs


def _versions(ranges: Iterable[Iterable[object]]) -> tuple[int, ...]:
    runs = [tuple(number(end) for end in run) for run in ranges]
    return tuple(version for first, last in runs for version in range(first, last + 1))
