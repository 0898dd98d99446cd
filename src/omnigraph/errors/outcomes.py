"""Writes and branch changes whose outcome is unknown, because the store stopped answering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.errors.base import OmniError, Outcome


class OutcomeUnknown(OmniError):
    """A write that the store may or may not have made, because it stopped answering after the sidecar was written.

    Recovery finishes or undoes it at the next write to the branch, or at `Graph.refresh`. If it is finished,
    `Graph.commit` finds the commit ``graph_commit_id``.
    """

    outcome = Outcome.UNKNOWN

    def __init__(self, branch: str, graph_commit_id: str, reason: str) -> None:
        super().__init__(branch, graph_commit_id, reason)
        self.branch = branch
        self.graph_commit_id = graph_commit_id
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"it is not known whether commit {self.graph_commit_id} was made on branch '{self.branch}':"
            f" {self.reason}. Do not repeat the write yet: once Graph.refresh() succeeds,"
            f" `omnigraph commit show {self.graph_commit_id}` or Graph.commit(id) finds the commit if it was made"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "error": str(self),
            "branch": self.branch,
            "graph_commit_id": self.graph_commit_id,
            "reason": self.reason,
        }


class BatchOutcomeUnknown(OmniError):
    """A stream's micro-batch without rows was to be marked as done, and the store did not answer whether it was.

    To write the batch again is safe: if it is done, that raises BatchDone.
    """

    outcome = Outcome.UNKNOWN

    def __init__(self, stream: str, branch: str, batch: int, reason: str) -> None:
        super().__init__(stream, branch, batch, reason)
        self.stream = stream
        self.branch = branch
        self.batch = batch
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"it is not known whether batch {self.batch} of stream '{self.stream}', which has no rows, was marked"
            f" as done on branch '{self.branch}': {self.reason}. Restart the stream, or write the batch again: it"
            " is not written twice"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "error": str(self),
            "stream": self.stream,
            "branch": self.branch,
            "batch": self.batch,
            "reason": self.reason,
        }


class SchemaUnfinished(OmniError):
    """A schema was accepted by some branches and not yet by others, because the store stopped answering.

    It is finished when the graph is opened for writing the next time, or when the same schema is applied again.
    """

    outcome = Outcome.UNKNOWN

    def __init__(self, done: Sequence[str], left: Sequence[str], reason: str) -> None:
        super().__init__(list(done), list(left), reason)
        self.done = list(done)
        self.left = list(left)
        self.reason = reason

    def __str__(self) -> str:
        done = f"accepted by {', '.join(self.done)}" if self.done else "not known to be accepted by any branch"
        return (
            f"the schema is {done}, and not yet by {', '.join(self.left)}: {self.reason}."
            " It is finished when the graph is opened for writing, or when it is applied again"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "done": self.done, "left": self.left, "reason": self.reason}


class MergeUnfinished(OmniError):
    """The target of a merge has adopted the source's schema, by the commit ``schema_commit``, and the merge of the
    rows behind it failed. To merge again finishes it.
    """

    outcome = Outcome.UNKNOWN

    def __init__(self, source: str, target: str, schema_commit: str, reason: str) -> None:
        super().__init__(source, target, schema_commit, reason)
        self.source = source
        self.target = target
        self.schema_commit = schema_commit
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"'{self.target}' has adopted the schema of '{self.source}' (commit {self.schema_commit}), and its"
            f" rows are not merged yet: {self.reason}. Merge again to finish"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "error": str(self),
            "source": self.source,
            "target": self.target,
            "schema_commit": self.schema_commit,
            "reason": self.reason,
        }


class _RefOutcomeUnknown(OmniError):
    """A branch or a tag that the store may or may not have created or deleted. ``what`` says which of the two, and
    ``listing`` is the command that lists them."""

    outcome = Outcome.UNKNOWN
    what = ""
    listing = ""

    def __init__(self, name: str, action: str, reason: str) -> None:
        super().__init__(name, action, reason)
        self.name = name
        self.action = action
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"it is not known whether {self.what} '{self.name}' was {self.action}: {self.reason}."
            f" When the store answers again, {self.listing} shows whether the {self.what} exists"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), self.what: self.name, "action": self.action, "reason": self.reason}


class BranchOutcomeUnknown(_RefOutcomeUnknown):
    """A branch that the store may or may not have created or deleted, because it stopped answering."""

    what = "branch"
    listing = "`omnigraph branch list`"


class TagOutcomeUnknown(_RefOutcomeUnknown):
    """A tag that the store may or may not have created or deleted, because it stopped answering."""

    what = "tag"
    listing = "`omnigraph tag list`"
