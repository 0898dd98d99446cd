"""Graphs as a streaming source: `spark.readStream.format("omnigraph")` with a start, one row per change.

Offsets are cursors of the change feed, so that a checkpoint knows its graph and its branch. The driver plans which
versions of the branch a micro-batch has; tasks compare the tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from omnigraph.bulk.pieces import require_shared
from omnigraph.errors import HistoryReclaimed, RequestError
from omnigraph.history.diff import ChangeFilter, Op, TableDiff
from omnigraph.history.feed.blocks import moved_types
from omnigraph.history.feed.line import BranchLine
from omnigraph.history.feed.positions import commit_in, cursor_behind, version_at, version_behind
from omnigraph.history.feed.tokens import Scope, branch_scope
from omnigraph.history.feed.windows import TableWindows
from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import MAIN, Commit
from omnigraph.read.result.cells import json_value
from omnigraph.spark.datasource.opening import STORAGE, entity_of, opened
from omnigraph.spark.frames import arrow_type, as_spark, spark_types

_OPTIONS: Final = ("path", "branch", "start", "cursor", "type", "edge", "commits")
_COMMITS: Final = 1_000
_TASKS: Final = 64
"""How many tasks a micro-batch has at most."""
_CAUSE: Final = {
    "graph_commit_id": "string",
    "manifest_version": "bigint",
    "created_at": "timestamp",
    "actor_id": "string",
}
_CHANGE: Final = {"op": "string", "kind": "string", "type": "string", "id": "string", "changed": "array<string>"}
_IMAGES: Final = {"before": "string", "after": "string"}
_TYPED: Final = {f"_{name}": kind for name, kind in {"op": "string", "changed": "array<string>", **_CAUSE}.items()}


def wants_changes(options: Mapping[str, str]) -> bool:
    """Do options ask for changes? Spark does not tell a source whether it is read as a stream."""
    return "start" in options or "cursor" in options


@dataclass(frozen=True)
class ChangeSource:
    """Which changes a stream reads: of all types, as JSON, or of one, with its columns."""

    options: Mapping[str, str]
    branch: str
    entity: EntityType | None
    types: dict[str, str]
    commits: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ChangeSource:
        """The stream that options describe."""
        for name in options:
            if name not in _OPTIONS and not name.startswith(STORAGE):
                raise RequestError(f"there is no option '{name}'; {suggest(name, _OPTIONS)}")
        if not options.get("path"):
            raise RequestError("which graph? give its address: load(path) or option('path', …)")
        for one, other in (("type", "edge"), ("start", "cursor")):
            if one in options and other in options:
                raise RequestError(f"give option('{one}', …) or option('{other}', …), not both")
        repository = opened(options, read_only=True)
        require_shared(repository.address)
        branch = repository.branches.find(options.get("branch", MAIN))
        commit_in(options.get("start", "now"))
        is_typed = "type" in options or "edge" in options
        entity = entity_of(options, repository.catalog(branch.name)) if is_typed else None
        return cls(dict(options), branch.name, entity, _types(entity), _commits(options))

    @property
    def wanted(self) -> ChangeFilter:
        if self.entity is None:
            return ChangeFilter()
        return ChangeFilter(tables=frozenset({self.entity.table_key}), types=frozenset({self.entity.id}))


def _types(entity: EntityType | None) -> dict[str, str]:
    if entity is None:
        return {**_CAUSE, **_CHANGE, **_IMAGES}
    own = spark_types(entity, entity.columns)
    for name in own:
        if name in _TYPED:
            raise RequestError(f"{entity.name} has a property '{name}', and so has every change; rename it")
    return {**own, **_TYPED}


def _commits(options: Mapping[str, str]) -> int:
    given = options.get("commits", str(_COMMITS))
    if not (given.isascii() and given.isdecimal() and 0 < int(given) < 2**31):
        raise RequestError(f"the option 'commits' is how many commits a micro-batch may have, not '{given}'")
    return int(given)


@dataclass(frozen=True, slots=True)
class _Span:
    """The versions that one task reads, from the first to the last."""

    branch: Branch
    first: int
    last: int


class ChangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans the micro-batches of one query, and reads them on the workers."""

    def __init__(self, source: ChangeSource) -> None:
        self._source = source
        self._first: dict[str, Any] | None = None
        self._last_version: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """What workers get: they open the graph themselves."""
        return ChangeReader, (self._source,)

    @cached_property
    def _repository(self) -> Repository:
        return opened(self._source.options, read_only=True)

    def _line(self, cursor: str | None = None) -> BranchLine:
        return BranchLine(self._repository, self._repository.branches.find(self._source.branch), cursor)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Where a query without a checkpoint begins."""
        line, cursor = self._line(), self._source.options.get("cursor")
        if cursor is not None:
            self._version({"cursor": cursor})
            return {"cursor": cursor}
        start = self._source.options["start"]
        self._first = self._offset(line, version_at(line, start))
        return self._first

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Where the next micro-batch ends.

        The first one of a query that starts now ends where it begins. Only then does the checkpoint know the
        place; were the query killed before, what `now` means would have changed, and changes would be lost.
        """
        if start == self._first and self._source.options.get("start") == "now":
            self._first = None
            return start
        line, begin = self._line(), self._version(start)
        end = line.head().version if self._last_version is None else self._last_version
        if isinstance(limit, ReadMaxFiles):
            end = min(end, begin + limit.max_files)
        return start if end <= begin else self._offset(line, end)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        """The most commits of a micro-batch; Spark has no limit of that name."""
        return ReadMaxFiles(self._source.commits)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """The head, for the progress of the query."""
        line = self._line()
        return self._offset(line, line.head().version)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """Take the present head for the last version that the query reads."""
        self._last_version = self._line().head().version

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of a micro-batch."""
        first, last = self._version(start) + 1, self._version(end)
        count, branch = last - first + 1, self._line().branch
        if count <= 0:
            return []
        tasks = min(count, _TASKS)
        edges = [first + count * task // tasks for task in range(tasks + 1)]
        return [InputPartition(_Span(branch, begin, end - 1)) for begin, end in pairwise(edges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """On a worker: the changes of some commits."""
        span: _Span | None = partition.value
        if span is None:  # how Spark says that there are no partitions
            return
        repository = opened(self._source.options, read_only=True)
        line = BranchLine(repository, span.branch)
        for version in range(span.first, span.last + 1):
            step = line.step(version)
            if step is not None and step.before is not None:
                yield from self._rows(repository, line, step.commit, step.before, step.after)

    def _rows(
        self, repository: Repository, line: BranchLine, commit: Commit, before: Snapshot, after: Snapshot
    ) -> Iterator[pa.RecordBatch]:
        for table_key in moved_types(before, after, self._source.wanted):
            try:
                for found in TableWindows(repository.tables, (before, after), table_key, None).all():
                    shown = _as_json(found) if self._source.entity is None else _as_columns(found)
                    yield _with_cause(shown, commit, self._source.types)
            except HistoryReclaimed:
                raise line.reclaimed(commit) from None

    def _version(self, offset: Mapping[str, Any]) -> int:
        cursor = str(offset["cursor"])
        line = self._line(cursor)
        return version_behind(line, self._scope(line), cursor)

    def _offset(self, line: BranchLine, version: int) -> dict[str, Any]:
        return {"cursor": cursor_behind(line, self._scope(line), version)}

    def _scope(self, line: BranchLine) -> Scope:
        return branch_scope(self._repository.catalog(line.branch.name), line.branch, self._source.wanted)


def _as_columns(found: TableDiff) -> dict[str, pa.Array]:
    """Changes of one type as its columns: the rows as they are, or for a delete as they were."""
    count = len(found.ids)
    is_delete = pc.equal(found.ops, Op.DELETE.value).to_numpy(zero_copy_only=False)
    at = pa.array(np.arange(count) + np.where(is_delete, 0, count))
    columns = {
        name: pa.chunked_array([*old.chunks, *found.after[name].cast(old.type).chunks], old.type)
        for name, old in zip(found.before.column_names, found.before.columns, strict=True)
    }
    taken = {name: both.take(at).combine_chunks() for name, both in columns.items()}
    return {**taken, "_op": found.ops, "_changed": _changed(found)}


def _as_json(found: TableDiff) -> dict[str, pa.Array]:
    """Changes of any type, with their rows before and after as JSON objects."""
    kind, _, name = found.table_key.partition(":")
    changes = list(found.rows())
    return {
        "op": found.ops,
        "kind": pa.repeat(kind, len(changes)),
        "type": pa.repeat(name, len(changes)),
        "id": found.ids,
        "changed": _changed(found),
        "before": pa.array([_json_text(change.before) for change in changes], pa.string()),
        "after": pa.array([_json_text(change.after) for change in changes], pa.string()),
    }


def _json_text(image: Mapping[str, Any] | None) -> str | None:
    if image is None:
        return None
    return json.dumps({name: json_value(value) for name, value in image.items()}, ensure_ascii=False)


def _changed(found: TableDiff) -> pa.Array:
    """The names of the properties that updates changed, as a list per change."""
    is_update = pc.equal(found.ops, Op.UPDATE.value).to_numpy(zero_copy_only=False)
    masks = [mask.to_numpy(zero_copy_only=False) & is_update for mask in found.changed.values()]
    differing = np.array(masks, bool).reshape(len(masks), len(found.ids)).T
    offsets = np.concatenate([[0], np.cumsum(differing.sum(axis=1))]).astype(np.int32)
    names = pa.array(list(found.changed), pa.string()).take(pa.array(np.nonzero(differing)[1]))
    return pa.ListArray.from_arrays(offsets, names)


def _with_cause(shown: Mapping[str, pa.Array], commit: Commit, types: dict[str, str]) -> pa.RecordBatch:
    """Changes with the columns that name their commit, in the order and with the types of the DataFrame."""
    count = len(next(iter(shown.values())))
    prefix = "_" if "_op" in types else ""
    cause = {
        f"{prefix}{name}": pa.repeat(pa.scalar(getattr(commit, name), arrow_type(kind)), count)
        for name, kind in _CAUSE.items()
    }
    columns = {**shown, **cause}
    return as_spark(pa.RecordBatch.from_pydict({name: columns[name] for name in types}), types)
