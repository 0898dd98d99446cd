"""The handle of a remote graph: its lifetime, its default branch, and the states it can see."""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Mapping
from typing import Any, Final, NoReturn, Self

from omnigraph.arguments import optional_text, text_argument
from omnigraph.errors import GraphClosed, InvalidArgument, RequestError
from omnigraph.history.schemas import SchemaVersion
from omnigraph.keywords import At, shown_state
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.refs.names import moment_named
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import MAIN
from omnigraph.remote.transport import Transport

DIRECT: Final = frozenset(
    {
        "backup",
        "clean_jobs",
        "cleanup",
        "clone",
        "diff",
        "doctor",
        "embed",
        "ensure_indices",
        "jobs",
        "maintain",
        "optimize",
        "optimize_all",
        "refresh",
        "repair",
        "repair_all",
        "spark",
        "stream",
        "apply_merge",
        "apply_schema_to_all",
        "as_actor",
    }
)
"""Methods that work on the store itself, which a server does for no caller."""


class _Anything:
    """Every value: a server tells no listener anything, and the work is the same without."""

    def __contains__(self, _: object) -> bool:
        return True


_NOT_GIVEN: Final[Container[Any]] = (None, {}, False)
_DIRECT_KEYWORDS: Final[Mapping[str, Container[Any]]] = {
    "actor": _NOT_GIVEN,
    "bad_records": _NOT_GIVEN,
    "cancellation": _Anything(),
    "edges": _NOT_GIVEN,
    "engine": ("auto", "local"),
    "listener": _Anything(),
    "nodes": _NOT_GIVEN,
    "spark": _NOT_GIVEN,
    "storage_options": _NOT_GIVEN,
}
"""Keywords of an embedded graph, and the values with which they say nothing."""


class RemoteHandle:
    """An open remote graph: what `RemoteGraph` builds on."""

    def __init__(self, transport: Transport, branch: str = MAIN) -> None:
        self._transport = transport
        self._branch = branch
        self._closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r}, branch={self._branch!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> NoReturn:
        if name in DIRECT:
            raise RequestError(
                f"'{name}' works on the store itself, which no server does; open the graph where it is stored"
            )
        raise AttributeError(f"a remote graph has no attribute '{name}'")

    def close(self) -> None:
        """Close the connections; the graph cannot be used any more."""
        self._closed = True
        self._transport.close()

    @property
    def is_closed(self) -> bool:
        """Was it closed?"""
        return self._closed

    @property
    def address(self) -> str:
        """Where the graph is served."""
        return self._transport.url

    @property
    def schema(self) -> str:
        """The accepted schema of this handle's branch, as its author wrote it."""
        return self.schema_source()

    @property
    def catalog(self) -> Catalog:
        """The accepted schema of this handle's branch, for looking things up."""
        return self.snapshot().catalog

    def branch(self, name: str) -> Self:
        """The same graph, with another default branch."""
        wanted = text_argument("name", name).strip()
        return type(self)(self._open, self.snapshot(wanted).branch)

    @property
    def _open(self) -> Transport:
        if self._closed:
            raise GraphClosed(self.address)
        return self._transport

    def _named(self, branch: str | None, argument: str = "branch") -> str:
        return optional_text(argument, branch) or self._branch

    def _state(self, branch: str | None, at: At) -> dict[str, Any]:
        """The parameters that name a state: a branch, or an older state, perhaps of a branch."""
        if isinstance(at, Snapshot):
            known = at.graph_commit_id
            return {"snapshot": known} if known else {"snapshot": at.manifest_version, "branch": at.branch}
        if isinstance(at, dt.datetime):
            return {"branch": self._named(branch), "snapshot": shown_state(at)}
        is_moment = isinstance(at, str) and moment_named(at.strip()) is not None
        if at is None or is_moment or (isinstance(at, int) and not isinstance(at, bool)):
            return {"branch": self._named(branch), "snapshot": at}
        return {"branch": optional_text("branch", branch), "snapshot": text_argument("at", at)}

    def snapshot(self, branch: str | None = None, *, at: At = None) -> Snapshot:
        """The newest state of a branch, or its state at a manifest version or moment, or the state of a commit."""
        found: Snapshot = self._open.value("GET", "/snapshot", query=self._state(branch, at))
        return found

    def schema_source(self, branch: str | None = None, *, at: At = None) -> str:
        """The accepted schema of a branch or of an older state, as its author wrote it."""
        return str(self._open.value("GET", "/schema", query=self._state(branch, at))["schema_source"])

    def schema_history(self, branch: str | None = None) -> list[SchemaVersion]:
        """The schemas that a branch has had, newest first, with the commits that brought them."""
        query = {"branch": self._named(branch)}
        found: list[SchemaVersion] = self._open.value("GET", "/schema/history", query=query)
        return found


def refuse_direct(given: Mapping[str, Any]) -> None:
    """Refuse keywords of an embedded graph that a server has no use for: who writes, and where work runs."""
    for name, value in given.items():
        if name not in _DIRECT_KEYWORDS:
            raise TypeError(f"a remote graph has no keyword '{name}'")
        if value not in _DIRECT_KEYWORDS[name]:
            raise InvalidArgument(name, "it is for a graph that this process has opened itself; leave it out")
