"""Which route a request is about. Most are found by looking up what follows the graph's name in the path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from omnigraph.server.routes.route import PREFIX, Route

_SLASHED: Final = ("branch", "tag", "commit")
"""Names that may have slashes in them."""
_PARAMETER: Final = re.compile(r"\{([a-z]+)\}")
_GRAPHS: Final = PREFIX.partition("{")[0]
_GRAPH: Final = PREFIX.partition("{")[2].rstrip("}")


@dataclass(frozen=True, slots=True)
class _Place:
    """What can be asked with paths of one form."""

    pattern: re.Pattern[str]
    methods: Mapping[str, Route]


class RouteFinder:
    """The routes of a server, ready to be found."""

    def __init__(self, routes: Sequence[Route]) -> None:
        by_path: dict[str, dict[str, Route]] = {}
        for route in routes:
            methods = by_path.setdefault(route.path, {})
            methods[route.method] = route
        for methods in by_path.values():
            if "GET" in methods:
                methods.setdefault("HEAD", methods["GET"])
        self._methods = {method for methods in by_path.values() for method in methods}
        self._plain = {path: methods for path, methods in by_path.items() if "{" not in path.removeprefix(PREFIX)}
        """Paths that have nothing but the name of a graph to fill in."""
        self._patterned = [_Place(_pattern(path), by_path[path]) for path in by_path if path not in self._plain]

    def find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]] | None:
        """The route of a request and what its path names; None if there is none."""
        graph, slash, rest = path.removeprefix(_GRAPHS).partition("/")
        is_about_a_graph = slash and graph and path.startswith(_GRAPHS)
        plain = self._plain.get(f"{PREFIX}/{rest}" if is_about_a_graph else path, {})
        if method in plain:
            return plain[method], {_GRAPH: graph} if is_about_a_graph else {}
        for place in self._patterned:
            if method in place.methods and (matched := place.pattern.fullmatch(path)):
                return place.methods[method], matched.groupdict()
        return None

    def allowed(self, path: str) -> list[str]:
        """The methods that a path can be asked with; none if there is no such path."""
        return sorted(method for method in self._methods if self.find(method, path) is not None)


def _pattern(path: str) -> re.Pattern[str]:
    """The paths of a route as a pattern that names its parameters."""
    pieces = _PARAMETER.split(path)
    names = [f"(?P<{name}>{'.*' if name in _SLASHED else '[^/]+'})" for name in pieces[1::2]]
    texts = [re.escape(text) for text in pieces[::2]]
    return re.compile("".join(text + name for text, name in zip(texts, [*names, ""], strict=True)), re.DOTALL)
