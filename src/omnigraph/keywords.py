"""What the methods of `Graph` take: the types of their keywords, and names that callers give as text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from omnigraph.arguments import optional_text, shortened
from omnigraph.errors import InvalidArgument, RequestError
from omnigraph.manifest.refs.names import in_utc, is_commit_id
from omnigraph.manifest.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.bulk.engines import Engine
    from omnigraph.bulk.load.options import Mode
    from omnigraph.bulk.load.sources.description import Location, Rows
    from omnigraph.bulk.runner import Listener
    from omnigraph.read.limits import Cancellation

At = str | int | dt.datetime | Snapshot | None
"""A state of the graph: a commit id, tag, manifest version, moment or snapshot taken earlier; None is the newest.
At a moment a branch stands where its newest commit from then or before has put it; without a zone it is in UTC."""

Side = Literal["ours", "theirs"]
EngineName = Literal["auto", "local", "spark"]
LoadMode = Literal["overwrite", "append", "merge"]
ChangeKind = Literal["node", "edge"]
ChangeOp = Literal["insert", "update", "delete"]


class LoadKeywords(TypedDict, total=False):
    """Keywords of `Graph.load` that `Graph.ingest` passes on."""

    nodes: Mapping[str, Rows]
    edges: Mapping[str, Rows]
    actor: str | None
    message: str | None
    engine: Literal["auto", "local", "spark"]
    spark: SparkSession | str | None
    max_errors: int | None
    bad_records: Location | None
    skip_bad: bool
    graph_commit_id: str | None
    listener: Listener | None
    cancellation: Cancellation | None


class LogKeywords(TypedDict, total=False):
    """Keywords of `Graph.commits` and `Graph.log`. Times without a zone are in UTC."""

    actor: str | None
    kind: str | None
    since: dt.datetime | str | None
    until: dt.datetime | str | None
    limit: int
    after: str | None


class ApplyKeywords(TypedDict, total=False):
    """Keywords of `Graph.apply_merge`."""

    actor: str | None
    message: str | None
    engine: EngineName
    spark: SparkSession | str | None
    listener: Listener | None
    cancellation: Cancellation | None


class UndoKeywords(ApplyKeywords, total=False):
    """Keywords of `Graph.revert`, `Graph.cherry_pick` and `Graph.reset`."""

    strict: bool
    resolve: Side | None
    choices: Mapping[tuple[str, str], Side] | None
    if_commit: str | None
    graph_commit_id: str | None


class MergeKeywords(UndoKeywords, total=False):
    """Keywords of `Graph.merge` and `Graph.preview_merge`."""

    squash: bool


class ChangeKeywords(TypedDict, total=False):
    """Keywords of `Graph.changes` that `Graph.change_pages` passes on."""

    start: str | None
    cursor: str | None
    kinds: Sequence[ChangeKind] | None
    types: Iterable[str] | None
    ops: Sequence[ChangeOp] | None
    limit: int
    limit_bytes: int
    limit_commits: int


def mode_named(name: str) -> Mode:
    """The mode of a load that a caller named."""
    from omnigraph.bulk.load.options import Mode

    try:
        return Mode(name)
    except ValueError:
        raise InvalidArgument("mode", f"'{name}' is no mode of a load; there are {', '.join(Mode)}") from None


def shown_state(at: str | int | dt.datetime | Snapshot) -> str | int:
    """What a result calls the state that was read."""
    if isinstance(at, dt.datetime):
        return in_utc(at).isoformat()
    if isinstance(at, Snapshot):
        return at.graph_commit_id or at.manifest_version
    return at


def commit_id_argument(value: str | None) -> str | None:
    """The id that a caller chose for a commit."""
    chosen = optional_text("graph_commit_id", value)
    if chosen is not None and not is_commit_id(chosen):
        raise InvalidArgument("graph_commit_id", f"'{shortened(chosen)}' is not a ULID")
    return chosen


def engine_named(name: str) -> Engine:
    """The engine that a caller named."""
    from omnigraph.bulk.engines import Engine

    try:
        return Engine(name)
    except ValueError:
        raise RequestError(f"'{name}' is no engine; there are {', '.join(Engine)}") from None
