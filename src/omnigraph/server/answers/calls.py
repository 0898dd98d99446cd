"""A call: one request that is ready to be answered, and what answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, Protocol

from omnigraph.graph import Graph, with_instead
from omnigraph.history.feed.pages import ChangePage
from omnigraph.policy.actions import Action
from omnigraph.read.limits import Cancellation
from omnigraph.server.answers.stored import Stored, StoredQuery
from omnigraph.server.transfer.events import Poll
from omnigraph.server.transfer.spool import Content

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
BYTES: Final = "application/octet-stream"
ARROW: Final = "application/vnd.apache.arrow.stream"


class ServerState(Protocol):
    """What routes that are about no single graph tell of their server."""

    @property
    def graphs(self) -> Mapping[str, Graph]: ...

    @property
    def stored(self) -> Stored: ...

    @property
    def is_stopping(self) -> bool: ...

    @property
    def is_managed(self) -> bool: ...

    def graph_for(self, name: str, actor: str | None) -> Graph: ...

    def metrics_text(self) -> str: ...

    def openapi(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Call:
    """One request: who calls, which graph, the values of the route's parameters, and the records of a load.

    ``media_type`` is the form that the caller wants the answer in, ``route`` the name of the route.
    """

    server: ServerState
    actor: str | None
    values: Mapping[str, Any]
    media_type: str = JSON
    content: Content = b""
    route: str = ""
    cancellation: Cancellation = field(default_factory=Cancellation)
    instead: Mapping[Action, Action | None] = field(default_factory=dict)
    """Which actions a policy is asked about in place of others."""

    @property
    def graph(self) -> Graph:
        """The graph that the path names."""
        found = self.server.graph_for(self.values["graph"], self.actor)
        return with_instead(found, self.instead) if self.instead else found

    @property
    def stored(self) -> Mapping[str, StoredQuery]:
        """The stored queries of the graph, by name."""
        return self.server.stored.get(self.values["graph"], {})

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a parameter that may be left out."""
        return self.values.get(name, default)


@dataclass(frozen=True, slots=True)
class Found:
    """An answer in memory: a Python value for remote graphs of this program, and its JSON for all others."""

    value: Any
    json: Callable[[], dict[str, Any]]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Text:
    """An answer that is a text of its own form."""

    text: str
    media_type: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """An answer as bytes. One that goes out ``as_is`` is not packed."""

    content: bytes
    media_type: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    as_is: bool = False


@dataclass(frozen=True, slots=True)
class Streamed:
    """An answer that is written piece by piece, in a thread of its own, as fast as the caller takes it."""

    write: Callable[[BinaryIO], None]
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    as_is: bool = False


@dataclass(frozen=True, slots=True)
class Followed:
    """An answer that goes on: the first page of changes, and the way to those that follow."""

    first: ChangePage
    poll: Poll


Answer = Found | Text | Rendered | Streamed | Followed
