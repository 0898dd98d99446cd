"""Stream marks: the last micro-batch of each stream that a branch has, stored in the branch's own state.

A stream writes batches 0, 1, 2, … to a branch, each as one commit. The state of the branch has, for each stream, a
mark with the number of its last batch. The commit of batch n and the mark n are one version of the manifest, so a
crash cannot separate them, and a writer that holds the branch's commit lock knows from the newest state whether
batch n is done. A mark is part of the state, not of the history: it stays when its commit is archived or removed.

A mark belongs to one incarnation of a branch. Forks inherit the rows of their parent but not its marks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from omnigraph.errors import BatchDone, RequestError, StreamOutOfStep
from omnigraph.records import dataclass

_LONGEST_NAME: Final = 128


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch of a stream. ``query`` is the Spark query that numbers the batches, from its checkpoint."""

    stream: str
    number: int
    query: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"stream": self.stream, "number": self.number, "query": self.query}


@dataclass(frozen=True, slots=True)
class StreamMark:
    """The last batch of a stream that is done, its native branch, and the stream's last commit with rows."""

    batch: Batch
    native: str | None
    graph_commit_id: str | None

    def as_json(self) -> dict[str, Any]:
        return {**self.batch.as_json(), "native": self.native, "graph_commit_id": self.graph_commit_id}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> StreamMark:
        batch = Batch(stored["stream"], stored["number"], stored["query"])
        return cls(batch, stored["native"], stored["graph_commit_id"])


Marks = Mapping[str, StreamMark]
"""The marks of a state by the names of their streams."""


def check_stream_name(name: str) -> str:
    """The name of a stream; RequestError if it is not allowed."""
    if not name or len(name) > _LONGEST_NAME or name != name.strip() or not name.isprintable():
        raise RequestError(
            f"a stream is named by 1 to {_LONGEST_NAME} printable characters, no space around; not {name!r}"
        )
    return name


def own_marks(marks: Marks, native: str | None) -> dict[str, StreamMark]:
    """The marks of one incarnation of a branch, without those it inherited."""
    return {name: mark for name, mark in marks.items() if mark.native == native}


def is_done(marks: Marks, native: str | None, batch: Batch) -> bool:
    """Is a batch, or a later one of its stream, marked as done on this incarnation of a branch?"""
    mark = own_marks(marks, native).get(batch.stream)
    return mark is not None and batch.number <= mark.batch.number


def require_next(marks: Marks, branch: str, native: str | None, batch: Batch) -> None:
    """Raise BatchDone if a batch is done, StreamOutOfStep if it is not the next one."""
    mark = own_marks(marks, native).get(batch.stream)
    last = -1 if mark is None else mark.batch.number
    known = None if mark is None else mark.batch.query
    if known is not None and batch.query is not None and known != batch.query:
        raise StreamOutOfStep(
            batch.stream,
            branch,
            batch.number,
            f"its batches up to {last} came through another checkpoint, that of query {known}, and"
            f" this one, of query {batch.query}, counts its own; go on with that one, or use another name",
        )
    if batch.number <= last:
        raise BatchDone(batch.stream, branch, batch.number)
    if batch.number > last + 1:
        behind = "it has none of those before" if mark is None else f"it has them up to {last}"
        remedy = "start with a new checkpoint" + ("" if mark is None else " and another name")
        reason = f"{behind}, so rows would be missing; {remedy}"
        raise StreamOutOfStep(batch.stream, branch, batch.number, reason)


def marked(marks: Marks, native: str | None, batch: Batch | None, graph_commit_id: str | None) -> Marks:
    """The marks of a branch after a batch; ``graph_commit_id`` is its commit, None if it had no rows."""
    own = own_marks(marks, native)
    if batch is not None:
        before = own.get(batch.stream)
        commit = graph_commit_id or (None if before is None else before.graph_commit_id)
        own[batch.stream] = StreamMark(batch, native, commit)
    return dict(sorted(own.items()))
