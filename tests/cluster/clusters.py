"""Clusters for tests: folders of files, and looking at what commands make of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.cli.command import Ran, omnigraph

from omnigraph.cluster.changes.applying import Applying, apply_cluster
from omnigraph.cluster.state.ledger import Ledgered, require_ledger
from omnigraph.cluster.state.lock import force_unlock, read_lock
from omnigraph.cluster.state.places import ClusterPlace, place_at

SCHEMA = "node Person { name: String @key  age: I32? }\n"
WIDER = "node Person { name: String @key  age: I32?  mail: String? }\n"
NARROWER = "node Person { name: String @key }\n"
IMPOSSIBLE = "node Person { name: String @key  age: Bool? }\n"
QUERIES = "query names() { match { $p: Person } return { $p.name as name } }\n"
MORE = "query mails() { match { $p: Person } return { $p.mail as mail } }\n"
READS = """
version: 1
rules:
  - {id: r, allow: {actors: {actor: ada}, actions: [read, change, invoke_query, schema_apply]}}
"""
LISTS = "{version: 1, rules: [{id: l, allow: {actors: {actor: ada}, actions: [graph_list]}}]}\n"


@dataclass
class Cluster:
    """A configuration in a folder. What its files say can be changed by `write` and `edit`."""

    folder: Path
    config: dict[str, Any] = field(default_factory=dict)
    root: str = ""

    def edit(self, **more: Any) -> Cluster:
        """Change keys of cluster.yaml; None removes one."""
        self.config |= more
        kept = {key: value for key, value in self.config.items() if value is not None}
        return self.write({"cluster.yaml": yaml.safe_dump(kept, sort_keys=False)})

    def write(self, files: Mapping[str, str]) -> Cluster:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return self

    @property
    def place(self) -> ClusterPlace:
        return place_at(self.root or str(self.folder))

    @property
    def ledger(self) -> Ledgered:
        return require_ledger(self.place)

    def graph(self, name: str = "g") -> str:
        return self.place.graph_uri(name)

    def apply(self) -> Applying:
        return apply_cluster(self.folder, "ada")

    def unlock(self) -> None:
        """Remove the lock of a process that was killed; there must be one."""
        held = read_lock(self.place)
        assert held is not None
        force_unlock(self.place, held.lock_id)

    def run(self, *words: str) -> Ran:
        """Run a verb of `omnigraph cluster`."""
        return omnigraph("cluster", *words, "--config", str(self.folder))

    def json(self, *words: str, code: int = 0) -> Any:
        """What a verb prints as JSON."""
        ran = self.run(*words, "--json")
        assert ran.code == code, ran.out + ran.err
        return json.loads(ran.out)

    def codes(self, *words: str, code: int = 0) -> list[str]:
        """The codes of what a verb has to say."""
        return [each["code"] for each in self.json(*words, code=code)["diagnostics"]]


def new_cluster(folder: Path, **more: Any) -> Cluster:
    """A cluster of one graph `g` with a schema and a stored query; nothing is applied."""
    made = Cluster(folder, {"version": 1, "graphs": {"g": {"schema": "g.pg", "queries": "queries/"}}})
    made.write({"g.pg": SCHEMA, "queries/all.gq": QUERIES, "reads.yaml": READS, "lists.yaml": LISTS})
    return made.edit(**more)
