"""Ways to build indexes in tests and to look at what was built."""

from __future__ import annotations

from lance import LanceDataset

from omnigraph import Graph
from omnigraph.maintenance.indices import IndexReport, ensure_indices
from omnigraph.storage.stage.indexes import existing_indexes
from omnigraph.storage.tables import TableRef


def ensure(graph: Graph, branch: str = "main", actor: str | None = None) -> IndexReport:
    """Build what a branch lacks."""
    repository = graph._repository
    return ensure_indices(repository, repository.branches.find(branch), actor)


def table(graph: Graph, table_key: str, branch: str = "main") -> LanceDataset:
    """A table as a branch has it."""
    pin = graph.snapshot(branch).tables[table_key]
    return graph._repository.tables.open(TableRef(pin.location, pin.table_branch, pin.table_version))


def indexed(graph: Graph, table_key: str, branch: str = "main") -> dict[str, int]:
    """The names of a table's indexes, and how many rows each answers for."""
    return {index.name: index.rows for index in existing_indexes(table(graph, table_key, branch))}


def plan(graph: Graph, table_key: str, where: str, branch: str = "main") -> str:
    """How Lance would look for rows."""
    return str(table(graph, table_key, branch).scanner(columns=["id"], filter=where).explain_plan())


def ids(graph: Graph, table_key: str, where: str, branch: str = "main") -> list[str]:
    """The rows a filter finds."""
    found = table(graph, table_key, branch).scanner(columns=["id"], filter=where).to_table()
    return sorted(found["id"].to_pylist())


def reasons(report: IndexReport) -> dict[str, set[str]]:
    """Why indexes wait, by table."""
    found: dict[str, set[str]] = {}
    for deferred in report.deferred:
        found.setdefault(deferred.table_key, set()).add(deferred.reason)
    return found
