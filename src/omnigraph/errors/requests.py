"""Asking for something that is not there, or that cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.errors.base import OmniError


class RequestError(OmniError):
    """What was asked for is not there, or cannot be had that way."""


class InvalidArgument(RequestError):
    """An argument that is not what it should be."""

    def __init__(self, argument: str, reason: str) -> None:
        super().__init__(argument, reason)
        self.argument = argument
        self.reason = reason

    def __str__(self) -> str:
        return f"the argument '{self.argument}' cannot be used: {self.reason}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "argument": self.argument}


class InvalidAddress(RequestError):
    """A graph's address that leads nowhere."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason

    def __str__(self) -> str:
        shown = self.address if len(self.address) <= 200 else self.address[:200] + "…"
        return f"'{shown}' is not the address of a graph: {self.reason}"


class _AtGraph(RequestError):
    """An error about one graph, known by its address."""

    said = ""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address

    def __str__(self) -> str:
        return self.said.format(self.address)


class GraphExists(_AtGraph):
    """There is a graph where one was to be created."""

    said = "{} is a graph already; open it, or choose another place"


class GraphNotFound(_AtGraph):
    """There is nothing where a graph was to be opened."""

    said = "there is no graph at {}; create one with `omnigraph init`"


class ReadOnlyGraph(_AtGraph):
    """A write through a graph that was opened for reading."""

    said = "{} was opened read-only; open it without read_only to write"


class GraphClosed(_AtGraph):
    """A graph that was closed is used."""

    said = "{} was closed here; open it again to use it"


class ForkedProcess(RequestError):
    """A graph that a forked child inherited, or opened although its parent had used one."""

    def __init__(self, address: str, opened_in: int, used_in: int) -> None:
        super().__init__(address, opened_in, used_in)
        self.address = address
        self.opened_in = opened_in
        self.used_in = used_in

    def __str__(self) -> str:
        return (
            f"process {self.used_in} cannot use {self.address}: it was forked from process {self.opened_in} when "
            "that one had opened a graph; start children with 'spawn' or 'forkserver', or before the parent opens "
            "its first graph, and open the graph in each of them"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "opened_in": self.opened_in, "used_in": self.used_in}


class NotAGraph(RequestError):
    """There is something where a graph was expected, but it is none."""

    def __init__(self, address: str, reason: str, remedy: str) -> None:
        super().__init__(address, reason, remedy)
        self.address = address
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.address} is not a graph: {self.reason}; {self.remedy}"


class InvalidBranchName(RequestError):
    """A branch name that breaks the rules."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"'{self.name}' cannot be the name of a branch: {self.reason}"


class _AtBranch(RequestError):
    """An error about one branch, known by its name."""

    said = ""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return self.said.format(self.name)


class BranchExists(_AtBranch):
    """A branch was to be created under a name that is taken."""

    said = "branch '{}' exists already; delete it first, or choose another name"


class BranchNotFound(RequestError):
    """A branch that does not exist, and the one that was perhaps meant."""

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        super().__init__(name, suggestion)
        self.name = name
        self.suggestion = suggestion

    def __str__(self) -> str:
        remedy = f"did you mean '{self.suggestion}'?" if self.suggestion else "`omnigraph branch list` shows them"
        return f"there is no branch '{self.name}'; {remedy}"


class BranchInUse(RequestError):
    """A branch that cannot be deleted, because others descend from it."""

    def __init__(self, name: str, descendants: Sequence[str]) -> None:
        super().__init__(name, tuple(descendants))
        self.name = name
        self.descendants = tuple(descendants)

    def __str__(self) -> str:
        return f"branch '{self.name}' is the parent of {', '.join(self.descendants)}; delete those first"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "branch": self.name, "descendants": list(self.descendants)}


class BranchProtected(RequestError):
    """A branch that must not be deleted."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"branch '{self.name}' cannot be deleted: {self.reason}"


class SnapshotNotFound(RequestError):
    """A commit or manifest version that never existed here."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted

    def __str__(self) -> str:
        return f"there is no {self.wanted}; `omnigraph commit list` shows the history"


class HistoryReclaimed(RequestError):
    """A commit or manifest version that existed and has been cleaned away."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted

    def __str__(self) -> str:
        return f"{self.wanted} existed, but cleanup has removed it; choose a newer one"


class MissingExtra(RequestError):
    """A package that this needs is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(package, extra, purpose)
        self.package = package
        self.extra = extra
        self.purpose = purpose

    def __str__(self) -> str:
        remedy = f"pip install 'omnigraph[{self.extra}]'"
        return f"{self.purpose} needs {self.package}, which is not installed; {remedy}"
