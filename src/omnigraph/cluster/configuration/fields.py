"""Reading fields of a document: each of the kind that it has to be, or a problem with its line."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from omnigraph.cluster.codes import problem
from omnigraph.cluster.configuration.document import FILE, Value, at_line
from omnigraph.errors import ClusterProblem

GRAPH_ID: Final = re.compile("[a-zA-Z0-9-]{1,64}")
_NAME: Final = re.compile("[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}")
_RESERVED: Final = frozenset({"policies"})


class Fields:
    """Reads fields, and adds what is wrong with them to a list. ``later`` are keys of a later release."""

    def __init__(self, problems: list[ClusterProblem], later: Collection[str]) -> None:
        self._problems = problems
        self._later = later

    def mapping(self, where: str, given: Value | None, known: Collection[str] | None) -> Mapping[str, Value]:
        """A mapping of names, of which each one that is not known is a problem."""
        if given is None or given.found is None:
            return {}
        if not isinstance(given.found, dict) or not all(isinstance(key, str) for key in given.found):
            self.wrong(where or FILE, given, "it is a mapping of names")
            return {}
        for key, each in given.found.items() if known is not None else ():
            path = f"{where}.{key}".lstrip(".")
            if key in self._later and key not in (known or ()):
                self.refuse("future_phase_field", path, each, f"'{key}' is kept for a later release")
            elif known is not None and key not in known:
                self.refuse("unknown_key", path, each, f"'{key}' means nothing; there are {', '.join(known)}")
        return given.found

    def named(self, where: str, given: Value | None) -> list[tuple[str, Value]]:
        """The members of a mapping whose names are ids of graphs, or names of policies and providers."""
        is_graph = where == "graphs"
        made = []
        for name, each in self.mapping(where, given, None).items():
            if is_graph and (GRAPH_ID.fullmatch(name) is None or name in _RESERVED):
                said = f"'{name[:80]}' cannot be the id of a graph: use 1 to 64 of a-z, A-Z, 0-9 and '-'"
                self.refuse("graph_id_invalid", f"{where}.{name[:80]}", each, said)
            elif not is_graph and _NAME.fullmatch(name) is None:
                said = f"'{name[:80]}' cannot be a name: use 1 to 64 of a-z, A-Z, 0-9, '_' and '-'"
                self.refuse("resource_name_invalid", f"{where}.{name[:80]}", each, said)
            else:
                made.append((name, each))
        return made

    def text(self, where: str, given: Value | None) -> str | None:
        """A text; None if there is none."""
        if given is None:
            return None
        if not isinstance(given.found, str) or not given.found.strip() or "\0" in given.found:
            self.wrong(where, given, "it is a text")
            return None
        return given.found

    def texts(self, where: str, given: Value) -> list[str]:
        """A text, or a list of them."""
        listed = [given] if isinstance(given.found, str) else given.found
        if not isinstance(listed, list):
            self.wrong(where, given, "it is a list of texts")
            return []
        found = [self.text(f"{where}[{index}]", each) for index, each in enumerate(listed)]
        return [each for each in found if each is not None]

    def wrong(self, where: str, given: Value, message: str) -> None:
        """Note a value of the wrong kind."""
        self.refuse("cluster_yaml_invalid", where, given, message)

    def refuse(self, code: str, where: str, given: Value, message: str) -> None:
        """Note a value that cannot be used."""
        self._problems.append(problem(code, where, at_line(given.line, message)))
