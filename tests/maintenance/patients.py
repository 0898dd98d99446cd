"""A graph for the doctor with something of everything, and ways to damage it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from tests.stores import Store

import omnigraph
from omnigraph import DoctorReport, Finding, Graph
from omnigraph.manifest.drafts import BranchName
from omnigraph.manifest.state import ManifestState, TablePin
from omnigraph.storage.control.sealed import seal, unseal

PERSON, KNOWS = "node:Person", "edge:Knows"

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  mail: String? @unique
  bio: String? @index
  mood: enum(good, bad)?
  @range(age, 0..150)
  @check(mail, ".+@.+")
}
edge Knows: Person -> Person @card(0..3) { since: I64? }
"""
LATER = SCHEMA + "node City { name: String @key }\n"


def healthy(store: Store) -> Graph:
    """A graph with branches, a tag, deleted and changed rows, indexes, compaction and a change of the schema."""
    graph = omnigraph.init(store.uri, SCHEMA, actor="ada", storage_options=store.options)
    people = [person(f"p{n}", age=n, mail=f"{n}@x.org", bio=f"likes number {n}", mood="good") for n in range(12)]
    graph.load([*people, *(knows(f"p{n}", f"p{n + 1}") for n in range(11))], mode="append")
    graph.mutate('query q() { update Person set { age: 99 } where name = "p3" }')
    graph.tag("first")
    graph.mutate('query q() { delete Person where name = "p7" }')
    graph.ensure_indices()
    graph.create_branch("dev")
    graph.mutate('query q() { insert Person { name: "dev", age: 1 } }', branch="dev")
    graph.create_branch("nested", "dev")
    graph.apply_schema(LATER)
    graph.load([{"type": "City", "data": {"name": "Rome"}}], mode="append")
    graph.load([person("late")], mode="append")
    graph.optimize()
    graph.merge("dev", "main")
    return graph


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def knows(source: str, target: str) -> dict[str, Any]:
    return {"edge": "Knows", "from": source, "to": target}


def codes(report: DoctorReport) -> set[str]:
    return {finding.code for finding in report.findings}


def only(report: DoctorReport, code: str) -> Finding:
    """The one finding there is, which has this code."""
    assert [finding.code for finding in report.findings] == [code], report.findings
    return report.findings[0]


def examined(store: Store, **options: Any) -> DoctorReport:
    """What the doctor says to a newcomer."""
    return omnigraph.doctor(store.uri, storage_options=store.options, **options)


def pin(graph: Graph, table_key: str = PERSON, branch: str = "main") -> TablePin:
    return graph.snapshot(branch).tables[table_key]


def folder(graph: Graph, table_key: str = PERSON, branch: str = "main") -> Path:
    """Where a table of a branch lies on the disk."""
    found = pin(graph, table_key, branch)
    return Path(graph._repository.tables.uri(found.location, found.table_branch))


def dataset(graph: Graph, table_key: str = PERSON, branch: str = "main") -> lance.LanceDataset:
    """A table as a person opens it who knows nothing of graphs."""
    found, options = pin(graph, table_key, branch), graph._repository.tables.options
    return lance.dataset(graph._repository.tables.uri(found.location, found.table_branch), storage_options=options)


def slip_in(graph: Graph, table_key: str, *rows: dict[str, Any]) -> None:
    """Add rows with Lance itself, past all rules, and publish them by force."""
    handle = dataset(graph, table_key)
    lance.write_dataset(rows_for(handle, *rows), handle, mode="append")
    graph.repair(confirm=True, force=True)


def rows_for(handle: lance.LanceDataset, *rows: dict[str, Any]) -> pa.Table:
    """Rows with the columns of a table; what they lack is null."""
    return pa.Table.from_pylist(
        [{name: row.get(name) for name in handle.schema.names} for row in rows], handle.schema
    )


def flip(path: Path, place: int = -20) -> None:
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))


def forged(key: str, content: bytes, **changes: Any) -> bytes:
    """A control object with other fields, and a checksum that fits them."""
    return seal({**unseal(key, content), **changes})


def publish(graph: Graph, state: ManifestState) -> None:
    """Make a state the newest one of main, whatever it says."""
    graph._repository.manifest.write(BranchName("main", None), state)


def put(store: Store, key: str, value: object) -> None:
    """Write a control object that is no good."""
    store.objects().put(key, value if isinstance(value, bytes) else json.dumps(value).encode())
