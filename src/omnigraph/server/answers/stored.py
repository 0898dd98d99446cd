"""Stored queries: `*.gq` files that a server has checked when it started, and that callers invoke by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omnigraph.errors import RequestError
from omnigraph.graph import Graph, with_instead
from omnigraph.lang.query.compile import CompiledMutation, CompiledQuery, compile_query, parse_query_file
from omnigraph.policy.actions import Action

_SUFFIX: Final = "*.gq"


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """One query of a file. ``compiled`` is how it fitted the schema of main when the server started."""

    name: str
    text: str
    compiled: CompiledQuery

    @property
    def is_mutation(self) -> bool:
        """Does it write?"""
        return isinstance(self.compiled, CompiledMutation)


Stored = Mapping[str, Mapping[str, StoredQuery]]
"""Stored queries by the name of their graph, then by their own."""


def read_stored(folder: Path, graphs: Mapping[str, Graph]) -> Stored:
    """The stored queries of each graph: those of the folder, and those of its sub-folder with the graph's name.

    A query that does not fit the schema is a QueryError, and two of one name are a RequestError.
    """
    if not folder.is_dir():
        raise RequestError(f"there is no folder {folder} with stored queries")
    return {name: _of_graph(graph, [folder, folder / name]) for name, graph in graphs.items()}


def stored_query(graph: Graph, name: str, text: str, source: str) -> StoredQuery:
    """One query of a text; QueryError if it does not fit the schema of the graph's main."""
    catalog = with_instead(graph, {Action.READ: None}).catalog
    return StoredQuery(name, text, compile_query(text, catalog, name, source))


def _of_graph(graph: Graph, folders: list[Path]) -> dict[str, StoredQuery]:
    found: dict[str, StoredQuery] = {}
    catalog = with_instead(graph, {Action.READ: None}).catalog
    for path in (path for folder in folders for path in sorted(folder.glob(_SUFFIX))):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RequestError(f"the stored queries of {path} cannot be read: {error}") from None
        for query in parse_query_file(text, str(path)).queries:
            name = query.name.text
            if name in found:
                raise RequestError(f"{path}: there is another stored query '{name}'; rename one of them")
            found[name] = StoredQuery(name, text, compile_query(text, catalog, name, str(path)))
    return found
