"""Requests for something that does not exist, or that cannot be done: change the request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.errors.base import OmniError


class RequestError(OmniError):
    """A request for something that does not exist, or that cannot be done this way."""


class InvalidArgument(RequestError):
    """An argument of the wrong type, or with a value that cannot be used."""

    def __init__(self, argument: str, reason: str) -> None:
        super().__init__(argument, reason)
        self.argument = argument
        self.reason = reason

    def __str__(self) -> str:
        return f"the argument '{self.argument}' cannot be used: {self.reason}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "argument": self.argument}


class InvalidAddress(RequestError):
    """An address at which no graph can be."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason

    def __str__(self) -> str:
        shown = self.address if len(self.address) <= 200 else self.address[:200] + "…"
        return f"'{shown}' is not the address of a graph: {self.reason}"


class _GraphError(RequestError):
    """An error about one graph. ``template`` is its message, with a place for the address."""

    template = ""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address

    def __str__(self) -> str:
        return self.template.format(self.address)


class GraphExists(_GraphError):
    """`init` at an address that has a graph already."""

    template = "{} is a graph already; open it, or choose another place"


class GraphNotFound(_GraphError):
    """`open` at an address that has no graph."""

    template = "there is no graph at {}; create one with `omnigraph init`"


class ReadOnlyGraph(_GraphError):
    """A write to a graph that was opened read-only."""

    template = "{} was opened read-only; open it without read_only to write"


class GraphClosed(_GraphError):
    """A graph that is used after it was closed."""

    template = "{} was closed here; open it again to use it"


class ForkedProcess(RequestError):
    """A graph in a child process that was forked after its parent had opened one."""

    def __init__(self, address: str, opened_in: int, used_in: int) -> None:
        super().__init__(address, opened_in, used_in)
        self.address = address
        self.opened_in = opened_in
        self.used_in = used_in

    def __str__(self) -> str:
        return (
            f"process {self.used_in} cannot use {self.address}: it was forked from process {self.opened_in} after "
            "that one had opened a graph; start child processes with 'spawn' or 'forkserver', or before the "
            "parent opens its first graph, and open the graph in each of them"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "opened_in": self.opened_in, "used_in": self.used_in}


class NotAGraph(RequestError):
    """`open` at an address that holds something else, or a graph whose creation was interrupted."""

    def __init__(self, address: str, reason: str, remedy: str) -> None:
        super().__init__(address, reason, remedy)
        self.address = address
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.address} is not a graph: {self.reason}; {self.remedy}"


class CopyUnfinished(RequestError):
    """`open` at an address that holds only a part of a copy."""

    def __init__(self, address: str, source: str) -> None:
        super().__init__(address, source)
        self.address = address
        self.source = source

    def __str__(self) -> str:
        return (
            f"{self.address} is a copy of {self.source} that is not finished; wait for the command that copies, "
            "or run it again: it goes on where it was interrupted"
        )


class CopyRefused(RequestError):
    """A place that cannot take a copy, because there is something else."""

    def __init__(self, target: str, reason: str, remedy: str) -> None:
        super().__init__(target, reason, remedy)
        self.target = target
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"cannot copy to {self.target}: {self.reason}; {self.remedy}"


class BackupNotFound(RequestError):
    """No backup has that id, or there is none at all."""

    def __init__(self, address: str, wanted: str | None) -> None:
        super().__init__(address, wanted)
        self.address = address
        self.wanted = wanted

    def __str__(self) -> str:
        if self.wanted is None:
            return f"there is no backup at {self.address}; check the address, or make one with `omnigraph backup`"
        return f"there is no backup {self.wanted} at {self.address}; `omnigraph backups` lists those there are"


class GraphMoved(RequestError):
    """A branch of a graph that was moved, or copied by hand, and still names files at the graph's old place."""

    def __init__(
        self,
        address: str,
        root: str,
        remedy: str = "open the graph for writing once to give it its new place",
    ) -> None:
        super().__init__(address, root, remedy)
        self.address = address
        self.root = root
        self.remedy = remedy

    def __str__(self) -> str:
        return (
            f"{self.address} was moved or copied from {self.root}, where its branches still look for their files. "
            f"Main can be read; {self.remedy}"
        )


class InvalidBranchName(RequestError):
    """A branch name that breaks the rules for names, or clashes with another branch."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"'{self.name}' cannot be the name of a branch: {self.reason}"


class BranchExists(RequestError):
    """A new branch with a name that is taken."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"branch '{self.name}' exists already; delete it first, or choose another name"


class BranchNotFound(RequestError):
    """A branch that does not exist. ``suggestion`` is the existing branch with the nearest name."""

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        super().__init__(name, suggestion)
        self.name = name
        self.suggestion = suggestion

    def __str__(self) -> str:
        listing = "`omnigraph branch list` shows the branches"
        remedy = f"did you mean '{self.suggestion}'?" if self.suggestion else listing
        return f"there is no branch '{self.name}'; {remedy}"


class BranchInUse(RequestError):
    """A branch that cannot be deleted because other branches were forked from it."""

    def __init__(self, name: str, descendants: Sequence[str]) -> None:
        super().__init__(name, tuple(descendants))
        self.name = name
        self.descendants = tuple(descendants)

    def __str__(self) -> str:
        return f"branch '{self.name}' is the parent of {', '.join(self.descendants)}; delete those first"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "branch": self.name, "descendants": list(self.descendants)}


class BranchProtected(RequestError):
    """A branch that must not be deleted: the main branch, or the one that the handle works on."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"branch '{self.name}' cannot be deleted: {self.reason}"


class SharedRows(RequestError):
    """Rows that a change of the schema would purge, and that another branch still has."""

    def __init__(self, table_key: str, branch: str) -> None:
        super().__init__(table_key, branch)
        self.table_key = table_key
        self.branch = branch

    def __str__(self) -> str:
        return (
            f"{self.table_key} cannot be purged: branch '{self.branch}' has it too. Delete that branch, change all"
            " branches (--all-branches), or drop without --allow-data-loss"
        )


class BranchTagged(RequestError):
    """A branch that cannot be deleted because tags name its commits, whose states would be lost."""

    def __init__(self, name: str, tags: Sequence[str]) -> None:
        super().__init__(name, tuple(tags))
        self.name = name
        self.tags = tuple(tags)

    def __str__(self) -> str:
        listed = ", ".join(self.tags)
        return (
            f"branch '{self.name}' holds the states that these tags name: {listed}; "
            "delete the tags first, with `omnigraph tag delete`"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "branch": self.name, "tags": list(self.tags)}


class InvalidTagName(RequestError):
    """A tag name that breaks the rules for names, or is taken by a branch."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"'{self.name}' cannot be the name of a tag: {self.reason}"


class TagExists(RequestError):
    """A new tag with a name that is taken. Tags do not move."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"tag '{self.name}' exists already; delete it first, or choose another name"


class TagNotFound(RequestError):
    """A tag that does not exist. ``suggestion`` is the existing tag with the nearest name."""

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        super().__init__(name, suggestion)
        self.name = name
        self.suggestion = suggestion

    def __str__(self) -> str:
        remedy = f"did you mean '{self.suggestion}'?" if self.suggestion else "`omnigraph tag list` shows the tags"
        return f"there is no tag '{self.name}'; {remedy}"


class SnapshotNotFound(RequestError):
    """A commit or manifest version that does not exist."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted

    def __str__(self) -> str:
        return f"there is no {self.wanted}; `omnigraph commit list` shows the history"


class HistoryReclaimed(RequestError):
    """A commit or manifest version whose files are gone from the store."""

    def __init__(self, wanted: str, remedy: str = "choose a newer one") -> None:
        super().__init__(wanted, remedy)
        self.wanted = wanted
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.wanted} existed, but its files are gone from the store; {self.remedy}"


class ParentlessCommit(RequestError):
    """The first commit of a graph, which has no state before it to compare it with."""

    def __init__(self, graph_commit_id: str) -> None:
        super().__init__(graph_commit_id)
        self.graph_commit_id = graph_commit_id

    def __str__(self) -> str:
        return f"commit {self.graph_commit_id} created the graph and has no parent; choose a later commit"

    def as_json(self) -> dict[str, Any]:
        refused = {"reason": "parentless_commit", "graph_commit_id": self.graph_commit_id}
        return {"error": str(self), "change_diff_refusal": refused}


class CursorRejected(RequestError):
    """A cursor or page token that is damaged, or was given for something else."""

    def __init__(self, reason: str, remedy: str = "start from a baseline, or anew") -> None:
        super().__init__(reason, remedy)
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"change cursor rejected: {self.reason}; {self.remedy}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "reason": self.reason}


class ChangeFeedGap(RequestError):
    """History that a consumer of changes has not read yet, and that is gone from the store.

    ``cursor`` is the one that was given, if any, and ``graph_commit_id`` the first commit that cannot be read, if
    it is known.
    """

    def __init__(self, branch: str, cursor: str | None, graph_commit_id: str | None) -> None:
        super().__init__(branch, cursor, graph_commit_id)
        self.branch = branch
        self.cursor = cursor
        self.graph_commit_id = graph_commit_id

    def __str__(self) -> str:
        lost = "the next commit" if self.graph_commit_id is None else f"commit {self.graph_commit_id}"
        return (
            f"the changes of '{self.branch}' have a gap: the files of {lost} are gone from the store; write "
            "a baseline (`omnigraph changes baseline`) and go on from its cursor"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "error": str(self),
            "branch": self.branch,
            "change_feed_gap": {"cursor": self.cursor, "first_unreadable_commit_id": self.graph_commit_id},
        }


class MissingExtra(RequestError):
    """An optional package that is not installed. ``extra`` is the extra of omnigraph that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(package, extra, purpose)
        self.package = package
        self.extra = extra
        self.purpose = purpose

    def __str__(self) -> str:
        remedy = f"run pip install 'omnigraph[{self.extra}]'"
        return f"{self.purpose} needs {self.package}, which is not installed; {remedy}"
