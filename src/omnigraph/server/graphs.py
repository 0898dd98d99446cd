"""The graphs that a server serves: one, or those of a directory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from omnigraph.errors import GraphNotServed, OmniError, RequestError
from omnigraph.graph import Graph
from omnigraph.opening import open as open_graph
from omnigraph.policy.policy import Policy
from omnigraph.settings import Settings
from omnigraph.storage import layout

DEFAULT_NAME: Final = "default"
RESERVED: Final = "policies"
"""A name that no graph has."""
_NAME: Final = re.compile("[a-zA-Z0-9-]{1,64}")
_OPENED_TOGETHER: Final = 4


@dataclass(frozen=True, slots=True)
class ServedGraphs:
    """The open graphs by their names, and why others of the directory are not served."""

    graphs: Mapping[str, Graph]
    unusable: Mapping[str, OmniError]

    def find(self, name: str) -> Graph:
        """The graph of that name; GraphNotServed if there is none."""
        found = self.graphs.get(name)
        if found is None:
            raise GraphNotServed(name[:80])
        return found

    def close(self) -> None:
        """Close all graphs."""
        for graph in self.graphs.values():
            graph.close()


def addresses(place: str, name: str | None) -> dict[str, str]:
    """The graphs at a place by their names: the place itself, or the `*.omni` of a directory."""
    folder = Path(place.removeprefix("file://"))
    is_local = "://" not in place.removeprefix("file://")
    if is_local and folder.is_dir() and not (folder / layout.MANIFEST).exists():
        found = {path.stem: str(path) for path in sorted(folder.glob("*.omni"))}
        if found:
            if name is not None:
                raise RequestError(
                    f"{place} has several graphs, which are named by their files; leave out --graph"
                )
            for each in found:
                check_name(each)
            return found
    return {check_name(name or DEFAULT_NAME): place}


def check_name(name: str) -> str:
    """The name of a served graph; RequestError if it cannot stand in a path."""
    if name == RESERVED:
        raise RequestError(f"'{name}' cannot name a graph of a server: that name is reserved")
    if _NAME.fullmatch(name) is None:
        raise RequestError(f"'{name[:80]}' cannot name a graph of a server: use 1 to 64 of a-z, A-Z, 0-9 and '-'")
    return name


def open_graphs(
    found: Mapping[str, str],
    *,
    read_only: bool,
    require_all: bool,
    policies: Mapping[str, Policy] | None = None,
    settings: Settings | None = None,
) -> ServedGraphs:
    """Open graphs, a few at a time, each with its policy if there are some. One that cannot be opened is left out,
    unless all are required."""

    def opened(name: str) -> Graph:
        policy = None if policies is None else policies[name]
        return open_graph(found[name], read_only=read_only, policy=policy, settings=settings)

    served = open_each({name: partial(opened, name) for name in found})
    if served.unusable and (require_all or not served.graphs):
        served.close()
        raise next(iter(served.unusable.values()))
    return served


def open_each(openers: Mapping[str, Callable[[], Graph]]) -> ServedGraphs:
    """Open graphs, a few at a time, each in its own way, and note which ones cannot be opened."""

    def tried(opener: Callable[[], Graph]) -> Graph | OmniError:
        try:
            return opener()
        except OmniError as error:
            return error

    with ThreadPoolExecutor(_OPENED_TOGETHER) as pool:
        ends = dict(zip(openers, pool.map(tried, openers.values()), strict=True))
    graphs = {name: end for name, end in ends.items() if isinstance(end, Graph)}
    return ServedGraphs(graphs, {name: end for name, end in ends.items() if isinstance(end, OmniError)})
