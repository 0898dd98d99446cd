"""Connecting: which graph of which server."""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import quote, urlsplit

from omnigraph.arguments import text_argument
from omnigraph.errors import InvalidAddress, InvalidArgument, PolicyDenied
from omnigraph.remote.graph import RemoteGraph
from omnigraph.remote.transport import Transport

TOKEN: Final = "OMNIGRAPH_BEARER_TOKEN"  # noqa: S105  the name of a variable
_GRAPHS: Final = "/graphs/"


def connect(
    url: str,
    *,
    token: str | None = None,
    graph: str | None = None,
    timeout: float = 300.0,
    certificates: str | None = None,
) -> RemoteGraph:
    """A graph of a server, with the methods of an embedded one.

    The URL is the server's, or that of one of its graphs, which ends in `/graphs/NAME`; ``graph`` names it too,
    and can be left out if the server has only one. Without a ``token`` the one of `OMNIGRAPH_BEARER_TOKEN` is
    sent, if there is one. ``timeout`` is how many seconds a server may be silent, and ``certificates`` a file with
    those to trust.
    """
    server, named = _parsed(text_argument("url", url))
    if graph is not None and named is not None and graph != named:
        raise InvalidArgument("graph", f"the URL names graph '{named}'; leave out '{graph}'")
    sent = token if token is not None else os.environ.get(TOKEN)
    wanted = graph or named
    if wanted is None:
        wanted = _only(Transport(server, sent, timeout, certificates))
    found = Transport(f"{server}{_GRAPHS}{quote(wanted, safe='')}", sent, timeout, certificates)
    return RemoteGraph(found)


def list_graphs(
    url: str, *, token: str | None = None, timeout: float = 300.0, certificates: str | None = None
) -> list[dict[str, str]]:
    """The graphs of a server: the name and the address of each."""
    server, _ = _parsed(text_argument("url", url))
    sent = token if token is not None else os.environ.get(TOKEN)
    transport = Transport(server, sent, timeout, certificates)
    found: list[dict[str, str]] = transport.value("GET", "/graphs")["graphs"]
    transport.close()
    return found


def _parsed(url: str) -> tuple[str, str | None]:
    """The URL of a server, and the graph that it names behind that."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidAddress(url, "a server is named by http://HOST or https://HOST")
    if parts.username is not None or parts.query or parts.fragment:
        raise InvalidAddress(parts.hostname, "a server's URL has no user, no query and no fragment")
    before, graphs, name = parts.path.rpartition(_GRAPHS)
    path = (before if graphs else parts.path).rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}", name.strip("/") or None if graphs else None


def _only(server: Transport) -> str:
    """The graph of a server that has one."""
    try:
        names = [each["graph_id"] for each in server.value("GET", "/graphs")["graphs"]]
    except PolicyDenied:
        reason = f"the server at {server.url} does not tell you which graphs it has; name one"
        raise InvalidArgument("graph", reason) from None
    if len(names) != 1:
        listed = ", ".join(names) or "none"
        raise InvalidArgument("graph", f"the server at {server.url} has {listed}; name one")
    return str(names[0])
