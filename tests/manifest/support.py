"""Small graphs for tests of the manifest, and the way a writer writes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.stores import Store

from omnigraph import failpoints
from omnigraph.errors import LockLost
from omnigraph.lang.schema.resolve import compile_schema
from omnigraph.manifest.publisher import BranchName, Change, CommitDraft
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository, create, open_existing
from omnigraph.manifest.state import ManifestState
from omnigraph.storage.address import Scheme, parse_address
from omnigraph.storage.locks import CommitLock

TRUNK = BranchName("main", None)
SCHEMA = "node Person { name: String @key }\nnode City { name: String @key }\nedge Knows: Person -> Person"


def schema(types: int) -> str:
    """A schema of so many node types, T0 and on."""
    return "\n".join(f"node T{i} {{ name: String @key }}" for i in range(types))


def new_graph(place: Path | Store, text: str = SCHEMA) -> Repository:
    """A fresh graph, in a folder of its own or on any store."""
    address = place.address if isinstance(place, Store) else parse_address(place)
    return create(address, compile_schema(text, "test.pg"), actor="ada")


def reopened(repository: Repository, *, read_only: bool = False) -> Repository:
    """The same graph with nothing cached, as another process sees it."""
    return open_existing(repository.address, read_only=read_only)


def move(state: ManifestState, *table_keys: str) -> tuple[Change, dict[str, int]]:
    """A change that puts tables one version further, and what it expects of them."""
    pins = {key: state.tables[key] for key in table_keys}
    moved = {key: replace(pin, table_version=pin.table_version + 1) for key, pin in pins.items()}
    return Change(moved), {key: pin.table_version for key, pin in pins.items()}


def publish(
    repository: Repository,
    *table_keys: str,
    branch: BranchName = TRUNK,
    kind: str = "load",
    actor: str | None = None,
) -> ManifestState:
    """Move tables in the way every writer does: capture, lock, publish."""
    change, expected = move(repository.manifest.latest(branch.native), *table_keys)
    with repository.locks.commit(branch.name) as lock:
        return repository.manifest.publish(branch, change, expected, CommitDraft(kind, actor_id=actor), lock)


def create_branch(repository: Repository, name: str, from_: str = "main") -> Branch:
    """Create a branch as its users do, under the control lock."""
    with repository.locks.control() as lock:
        return repository.branches.create(name, from_, lock)


def delete_branch(repository: Repository, name: str) -> Branch:
    """Delete a branch as its users do, under the control lock."""
    with repository.locks.control() as lock:
        return repository.branches.delete(name, lock)


def publish_unlocked(repository: Repository, *table_keys: str, branch: BranchName = TRUNK) -> ManifestState:
    """Move tables by the compare-and-swap alone."""
    change, expected = move(repository.manifest.latest(branch.native), *table_keys)
    return repository.manifest.publish(branch, change, expected, CommitDraft("load"))


@contextmanager
def interrupted(name: str, action: Callable[[], object], *, times: int = 1) -> Iterator[None]:
    """Let others act when this process comes to a failpoint, the first so many times."""
    left = [times]

    def act() -> None:
        if left and left[0]:
            turns = left.pop()
            action()
            left.append(turns - 1)

    with failpoints.armed(name, act):
        yield


class LostLock(CommitLock):
    """A lock that somebody else has by now."""

    def __init__(self) -> None:
        super().__init__([])

    def verify(self) -> None:
        raise LockLost("main")


def files(root: str | Path) -> dict[str, tuple[int, int, str]]:
    """Every file below a folder: its size, when it was written, and a digest of its content."""
    found = {}
    for path in sorted(Path(root).rglob("*")):
        if path.is_file():
            stat = path.stat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(root))] = (stat.st_size, stat.st_mtime_ns, digest)
    return found


def stored(store: Store) -> dict[str, object]:
    """Everything a store holds, to the last byte; on a disk also when it was written."""
    if store.address.scheme is Scheme.LOCAL:
        return dict(files(store.uri))
    objects = store.objects()
    return {key: objects.get(key) for key in objects.list("")}
