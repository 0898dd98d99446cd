"""Small loads: records that are read, checked and committed in memory, in one piece."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omnigraph.arguments import described, shortened
from omnigraph.bulk.engines import SMALL_LOAD, names_a_file
from omnigraph.bulk.load.changes import LoadChange, Places, change_of, read_records
from omnigraph.bulk.load.forks import discard_branch
from omnigraph.bulk.load.options import LoadResult, Mode
from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import (
    BadValue,
    BranchExists,
    BranchNotFound,
    ConstraintViolation,
    InvalidArgument,
    ResourceLimit,
    StorageUnavailable,
)
from omnigraph.formats.jsonl.blocks import TypedRecords
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.write.base import capture
from omnigraph.write.evaluator import validate
from omnigraph.write.protocol import Prepared, WriteRequest, commit_write
from omnigraph.write.rules import SHOWN
from omnigraph.write.vectors import warn_unembedded

Data = str | bytes | os.PathLike[str] | Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class PreparedLoad:
    """Records that were read and understood, and the change they make. Of errors the first ``most`` are listed."""

    mode: Mode
    records: Mapping[str, TypedRecords]
    change: LoadChange
    most: int = SHOWN

    def counts(self, kind: str) -> dict[str, int]:
        """How many records there were of each type of a kind."""
        return {
            found.entity.name: len(found.lines)
            for key, found in sorted(self.records.items())
            if key.startswith(f"{kind}:")
        }


def prepare_load(
    repository: Repository,
    data: Data,
    mode: Mode,
    embedder: EmbeddingClient | None,
    max_errors: int | None = None,
) -> PreparedLoad:
    """Read the records of a load; nothing is written. Up to ``max_errors`` bad records are listed."""
    most = max_errors or SHOWN
    content, source = _content(data)
    records = read_records(content.removeprefix(BOM_UTF8), repository.catalog, source, most)
    return PreparedLoad(mode, records, change_of(records, mode, embedder, source, most), most)


def load(
    repository: Repository,
    branch: Branch,
    prepared: PreparedLoad,
    *,
    actor: str | None,
    message: str | None = None,
) -> LoadResult:
    """Commit a prepared load."""
    repeatable = prepared.mode is not Mode.OVERWRITE
    change = Prepared(prepared.change.delta, None, repeatable, lineage_only=True, limit=prepared.most)
    with _placing(prepared.change.places):
        commit = commit_write(repository, WriteRequest("load", branch, actor, message), lambda _: change).commit
    assert commit is not None  # noqa: S101  a load always commits
    warn_unembedded(prepared.change.unembedded)
    return LoadResult(
        branch.name,
        prepared.mode.value,
        prepared.counts("node"),
        prepared.counts("edge"),
        commit,
        warnings=prepared.change.unembedded,
    )


def load_into_fork(
    repository: Repository,
    name: str,
    parent: str,
    prepared: PreparedLoad,
    *,
    actor: str | None,
    message: str | None = None,
) -> LoadResult:
    """Commit a prepared load to a branch that is forked if it is missing, once the load is known to fit.

    A branch that another load forked and takes back, because it has failed, is forked again.
    """
    try:
        branch, created = repository.branches.find(name), False
    except BranchNotFound:
        branch, created = _forked(repository, name, parent, prepared, actor)
    try:
        done = load(repository, branch, prepared, actor=actor, message=message)
    except BranchNotFound:
        if created:
            raise
        return load_into_fork(repository, name, parent, prepared, actor=actor, message=message)
    except BaseException:
        if created:
            discard_branch(repository, branch)
        raise
    return replace(done, base_branch=parent, branch_created=created)


def _forked(
    repository: Repository, name: str, parent: str, prepared: PreparedLoad, actor: str | None
) -> tuple[Branch, bool]:
    """A new branch for a load that fits, and True; or the one that another writer made meanwhile, and False."""
    try:
        repository.branches.check_create(name, parent)
        with _placing(prepared.change.places):
            validate(prepared.change.delta, capture(repository, repository.branches.find(parent)), prepared.most)
        with repository.locks.control() as lock:
            return repository.branches.create(name, parent, lock, actor), True
    except BranchExists:
        return repository.branches.find(name), False


@contextmanager
def _placing(places: Places) -> Iterator[None]:
    """Say of violations at which line of the load they are."""
    try:
        yield
    except ConstraintViolation as error:
        raise places.given_to(error) from None


def _content(data: Data) -> tuple[bytes, str]:
    """The bytes of a load and what to call them: a path is read, text and records are taken as they are."""
    if isinstance(data, bytes):
        return _limited(data), "<data>"
    if isinstance(data, str) and names_a_file(data):
        data = Path(data)
    if isinstance(data, str):
        return _limited(data.encode(errors="surrogatepass")), "<data>"
    if isinstance(data, os.PathLike):
        path = Path(data)
        try:
            size = path.stat().st_size
            if size > SMALL_LOAD:
                raise ResourceLimit(f"bytes of {path} loaded in this process", SMALL_LOAD, size)
            return path.read_bytes(), str(path)
        except OSError as error:
            raise StorageUnavailable(str(path), error.strerror or str(error)) from error
        except ValueError as error:
            raise StorageUnavailable(shortened(str(path)), str(error)) from error
    if not isinstance(data, Iterable):
        raise InvalidArgument("data", f"it is records, a text, bytes or a path, not {described(data)}")
    lines: list[bytes] = []
    size = 0
    for record in data:
        line = json.dumps(record, ensure_ascii=False, default=_plain).encode(errors="surrogatepass")
        size += len(line) + 1
        if size > SMALL_LOAD:
            raise ResourceLimit("bytes loaded in this process", SMALL_LOAD, size)
        lines.append(line)
    return b"\n".join(lines), "<records>"


def _plain(value: Any) -> Any:
    """A Python value that JSON does not have, as the records of a file would write it."""
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return f"base64:{base64.b64encode(value).decode()}"
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise BadValue(f"a record cannot hold a {type(value).__name__}: {value!r:.60}")


def _limited(content: bytes) -> bytes:
    if len(content) > SMALL_LOAD:
        raise ResourceLimit("bytes loaded in this process", SMALL_LOAD, len(content))
    return content
