"""A consumer of changes as programs outside of Python would be: it reads JSON, and keeps a copy of the graph."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from omnigraph import Graph

SCHEMA = """
node Person { name: String @key  age: I32?  city: String? }
node Place { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""
Entities = dict[str, dict[str, Any]]
"""Records by kind, type and id, without nulls."""


def person(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **more}}


def place(name: str) -> dict[str, Any]:
    return {"type": "Place", "data": {"name": name}}


def knows(source: str, target: str, **more: Any) -> dict[str, Any]:
    return {"edge": "Knows", "from": source, "to": target, "data": more}


def in_records(lines: Iterable[str]) -> Entities:
    """The entities of an export or a baseline."""
    found: Entities = {}
    for record in map(json.loads, lines):
        kind = "node" if "type" in record else "edge"
        values = dict(record["data"])
        key = f"{kind}:{record.get('type') or record['edge']}/{values.pop('id')}"
        found[key] = {"properties": values}
        if kind == "edge":
            found[key]["endpoints"] = {"from": record["from"], "to": record["to"]}
    return found


def exported(graph: Graph, branch: str = "main") -> Entities:
    """The newest state of a branch."""
    sink = io.BytesIO()
    graph.export(sink, branch=branch)
    return in_records(sink.getvalue().decode().splitlines())


def apply(entities: Entities, changes: Iterable[dict[str, Any]]) -> None:
    """Make the changes of a block, each checked against what it says was there."""
    for change in changes:
        key = f"{change['kind']}:{change['type']['name']}/{change['id']}"
        assert entities.get(key) == _image(change.get("before")), change
        match change["op"]:
            case "delete":
                assert "after" not in change
                del entities[key]
            case _:
                assert ("before" in change) == (change["op"] == "update")
                entities[key] = _image(change["after"]) or {}


def _image(stored: dict[str, Any] | None) -> dict[str, Any] | None:
    if stored is None:
        return None
    properties = {name: value for name, value in stored["properties"].items() if value is not None}
    return {**stored, "properties": properties}


class Replica:
    """A copy of a branch in a folder: its entities, the commits that were applied, and the cursor behind them.

    All three are one file that is replaced at once, as one transaction of a database would.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "replica.json"
        stored = json.loads(self._file.read_text()) if self._file.exists() else {}
        self.entities: Entities = stored.get("entities", {})
        self.applied: list[str] = stored.get("applied", [])
        self.cursor: str | None = stored.get("cursor")

    def save(self, cursor: str | None = None) -> None:
        self.cursor = cursor or self.cursor
        stored = {"entities": self.entities, "applied": self.applied, "cursor": self.cursor}
        partial = self._file.with_suffix(".partial")
        partial.write_text(json.dumps(stored))
        partial.replace(self._file)

    def take(self, block: dict[str, Any], pending: list[dict[str, Any]]) -> None:
        """Apply a commit once all of its changes are there, unless it was applied before."""
        pending += block["changes"]
        if block["complete"]:
            commit = block["cause"]["graph_commit_id"]
            if commit not in self.applied:
                apply(self.entities, pending)
                self.applied.append(commit)
            pending.clear()

    def follow(self, graph: Graph, **options: Any) -> None:
        """Read all changes up to now, and store what was read after each page with a cursor."""
        begin: dict[str, Any] = {"start": "beginning"} if self.cursor is None else {"cursor": self.cursor}
        pending: list[dict[str, Any]] = []
        for page in graph.change_pages(**begin, **options):
            for block in page.blocks:
                self.take(json.loads(json.dumps(block.as_json())), pending)
            if page.cursor is not None:
                self.save(page.cursor)
