"""The operations that faults interrupt, and what can be seen of a graph before and after them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.recovery.scenes import (
    KNOWS,
    LIVES_IN,
    PERSON,
    SCHEMA,
    WRITES,
    Contents,
    contents,
    edge,
    found_city,
    new_graph,
    person,
)
from tests.recovery.victims import connect, kill_at
from tests.stores import Store
from tests.write.support import change, put

import omnigraph
from omnigraph import Graph
from omnigraph.storage.tables import LOG_FILES

View = Mapping[str, Contents]
"""What each branch holds."""

_SCHEMA = "schema"
"""Under which a view of a branch has its schema, as if it were a row of a table."""

OTHER_SCHEMA = SCHEMA.replace("age: I32?", "age: I64?  mail: String?")
"""A schema for which one property is widened, and one added without values."""

OTHER_TYPES = (
    SCHEMA.replace("edge LivesIn: Person -> City", 'edge Inhabits: Person -> City @rename_from("LivesIn")')
    + "node Pet { name: String @key }\nedge Owns: Person -> Pet\n"
)
"""A schema with more tables, one of which gets another key."""

KILLED_AT = {"rolled back": "write.between_tables", "rolled forward": "write.after_tables"}
"""Where a write has to die for recovery to have something to do."""

QUERIES = {
    "query people() { match { $p: Person } return { $p.name, $p.age } }": 2,
    "query friends() { match { $p: Person $p knows $q } return { $p.name, $q.name } }": 2,
    "query homes() { match { $p: Person $p livesIn $c } return { $p.name, $c.name } }": 1,
}
"""What the operation `query` asks, and how many rows there are."""


@dataclass(frozen=True)
class Operation:
    """Something that is done to a graph, which was opened before, except where opening is what is done."""

    prepare: Callable[[Store], None]
    run: Callable[[Store, Graph | None], object]
    branch: str = "main"
    opens: bool = False
    halfway: Callable[[Store, Graph | None], object] | None = None
    """Does the part that a reader may see before the rest."""
    forks: str | None = None
    """The branch it makes first, which stays empty if the disk fails before the rest and for good."""


def look(graph: Graph) -> View:
    """All that a reader sees: what each branch holds, its schema, and the tags by name."""
    tags: View = {f"tag {tag.name}": {} for tag in graph.tags()}
    branches: View = {
        branch.name: {**contents(graph, branch.name), _SCHEMA: [(graph.schema_source(branch.name),)]}
        for branch in graph.branches()
    }
    return {**branches, **tags}


def _a_graph(store: Store) -> None:
    new_graph(store)


def _a_graph_with_branch_written(store: Store) -> None:
    WRITES["mutation"].run(new_graph(store), "dev")


def _a_graph_with_branches_deleted(store: Store) -> None:
    """The next deleted branch makes so many files of archived commits that they are put together."""
    graph = new_graph(store)
    for number in range(LOG_FILES - 1):
        graph.create_branch(f"gone{number}")
        WRITES["mutation"].run(graph, f"gone{number}")
        graph.delete_branch(f"gone{number}")
    WRITES["mutation"].run(graph, "dev")


def _an_interrupted_write(store: Store, failpoint: str, name: str, branch: str) -> None:
    new_graph(store)
    kill_at(failpoint, "write", store, name, branch)


def _write(store: Store, graph: Graph | None, name: str, branch: str) -> object:
    return WRITES[name].run(_given(graph), branch)


def _open(store: Store, graph: Graph | None) -> object:
    return omnigraph.open(store.uri, storage_options=store.options)


def _query(store: Store, graph: Graph | None) -> object:
    found = {
        (branch, text): _given(graph).query(text, branch=branch).rows
        for branch in ("main", "dev")
        for text in QUERIES
    }
    assert all(len(rows) == count for (_, text), rows in found.items() for count in [QUERIES[text]])
    return found


def _next_write(store: Store, graph: Graph | None, branch: str) -> object:
    found_city(_given(graph), branch)
    return None


def _create_branch(store: Store, graph: Graph | None) -> object:
    return _given(graph).create_branch("new")


def _delete_branch(store: Store, graph: Graph | None) -> object:
    return _given(graph).delete_branch("dev")


def _two_branches(store: Store) -> None:
    """Main and dev have each changed nodes and edges."""
    graph = new_graph(store)
    WRITES["mutation"].run(graph, "dev")
    WRITES["merge"].run(graph, "main")


def _merge_branch(store: Store, graph: Graph | None) -> object:
    return _given(graph).merge("dev")


def _revert(store: Store, graph: Graph | None) -> object:
    opened = _given(graph)
    return opened.revert(opened.commits(kind="load")[0].graph_commit_id)


def _cherry_pick(store: Store, graph: Graph | None) -> object:
    opened = _given(graph)
    return opened.cherry_pick(opened.commits("dev")[0].graph_commit_id)


def _reset(store: Store, graph: Graph | None) -> object:
    opened = _given(graph)
    return opened.reset(opened.commits()[-2].graph_commit_id)


def _optimize(store: Store, graph: Graph | None) -> object:
    return _given(graph).optimize()


def _cleanup(store: Store, graph: Graph | None) -> object:
    return _given(graph).cleanup(keep=1, grace="0s", confirm=True)


def _create_tag(store: Store, graph: Graph | None) -> object:
    return _given(graph).tag("v1")


def _delete_tag(store: Store, graph: Graph | None) -> object:
    return _given(graph).delete_tag("v1")


def _a_graph_with_a_tag(store: Store) -> None:
    new_graph(store).tag("v1")


def _change_schema(store: Store, graph: Graph | None, branch: str, schema: str = OTHER_SCHEMA) -> object:
    return _given(graph).apply_schema(schema, branch=branch)


def _change_all_schemas(store: Store, graph: Graph | None) -> object:
    return _given(graph).apply_schema_to_all(OTHER_SCHEMA)


def _two_schemas(store: Store) -> None:
    """Dev has another schema and other rows than main."""
    graph = new_graph(store)
    graph.apply_schema(OTHER_SCHEMA, branch="dev")
    WRITES["mutation"].run(graph, "dev")


def _ensure_indices(store: Store, graph: Graph | None, branch: str) -> object:
    return _given(graph).ensure_indices(branch=branch)


def _ingest(store: Store, graph: Graph | None) -> object:
    rows = [person("Eve", 3), edge("Knows", "Eve", "Ada")]
    return _given(graph).ingest(rows, "new")


def _several_files(store: Store, graph: Graph | None) -> object:
    opened = _given(graph)
    names = [f"p{number}" for number in range(20)]
    people = [{"id": name, "name": name, "age": age} for age, name in enumerate(names)]
    edges = [{"id": f"k-{name}", "src": name, "dst": "Ada"} for name in names]
    put(
        opened,
        change(opened.catalog, PERSON, people, strict=True),
        change(opened.catalog, KNOWS, edges, fresh=True),
        rows_per_file=7,
    )
    return None


def _bulk_load(store: Store, graph: Graph | None) -> object:
    """What a job on Spark does, with its tasks in this process; one file each."""
    from tests.bulk.faults import load_here  # most processes that import this module have no need of Spark

    parts = [
        [person("Ada", 99), person("Eve", 3), edge("Knows", "Eve", "Ada", id="eve-ada")],
        [person("Flo", 4), edge("LivesIn", "Flo", "Paris", id="flo-paris")],
        [person("Gil", 5), edge("Knows", "Gil", "Flo", id="gil-flo")],
    ]
    with tempfile.TemporaryDirectory() as folder:
        for number, rows in enumerate(parts):
            Path(folder, f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        load_here(_given(graph), folder)
    return None


def _given(graph: Graph | None) -> Graph:
    assert graph is not None
    return graph


OPERATIONS: dict[str, Operation] = {
    "open": Operation(_a_graph, _open, opens=True),
    "query": Operation(_a_graph, _query),
    **{
        f"{name} on {branch}": Operation(_a_graph, partial(_write, name=name, branch=branch), branch)
        for branch in ("main", "dev")
        for name in WRITES
    },
    **{
        f"{how} by opening": Operation(
            partial(_an_interrupted_write, failpoint=failpoint, name="merge", branch="main"), _open, opens=True
        )
        for how, failpoint in KILLED_AT.items()
    },
    **{
        f"{how} by the next write on {branch}": Operation(
            partial(_an_interrupted_write, failpoint=failpoint, name="merge", branch=branch),
            partial(_next_write, branch=branch),
            branch,
        )
        for how, failpoint in KILLED_AT.items()
        for branch in ("main", "dev")
    },
    "branch create": Operation(_a_graph, _create_branch),
    "branch delete": Operation(_a_graph_with_branch_written, _delete_branch),
    "tag create": Operation(_a_graph, _create_tag),
    "tag delete": Operation(_a_graph_with_a_tag, _delete_tag),
    "branch delete that compacts the archive": Operation(_a_graph_with_branches_deleted, _delete_branch),
    "ensure indices on main": Operation(_a_graph, partial(_ensure_indices, branch="main")),
    "ensure indices on dev": Operation(_a_graph, partial(_ensure_indices, branch="dev"), "dev"),
    "merge of a branch": Operation(_two_branches, _merge_branch),
    "revert": Operation(_two_branches, _revert),
    "cherry-pick": Operation(_two_branches, _cherry_pick),
    "reset": Operation(_two_branches, _reset),
    "schema change on main": Operation(_two_branches, partial(_change_schema, branch="main")),
    "schema change on dev": Operation(_two_branches, partial(_change_schema, branch="dev"), "dev"),
    "schema with other types on dev": Operation(
        _two_branches, partial(_change_schema, branch="dev", schema=OTHER_TYPES), "dev"
    ),
    "schema change on all branches": Operation(
        _two_branches, _change_all_schemas, halfway=partial(_change_schema, branch="main")
    ),
    "merge that adopts a schema": Operation(
        _two_schemas, _merge_branch, halfway=partial(_change_schema, branch="main")
    ),
    "optimize": Operation(_two_branches, _optimize),
    "cleanup": Operation(_two_branches, _cleanup),
    "ingest into a missing branch": Operation(_a_graph, _ingest, forks="new"),
    "a load of several files": Operation(_a_graph, _several_files),
    "a bulk load": Operation(_a_graph, _bulk_load),
}


def opened(operation: Operation, store: Store) -> Graph | None:
    """The graph as the operation finds it: nothing has been healed."""
    return None if operation.opens else connect(store)


def write_every_type(graph: Graph, branch: str) -> None:
    """A write after the trouble, which touches all tables."""
    lives_in = "LivesIn" if LIVES_IN in graph.snapshot(branch).tables else "Inhabits"
    graph.load(
        [
            person("Last", 1),
            {"type": "City", "data": {"name": "Last"}},
            edge("Knows", "Last", "Last"),
            edge(lives_in, "Last", "Last"),
        ],
        mode="append",
        branch=branch,
    )


def with_every_type(seen: Contents) -> Contents:
    """What a branch holds after `write_every_type`."""
    more: dict[str, tuple[Any, ...]] = {
        "node:Person": ("Last", 1),
        "node:City": ("Last",),
        "edge:Knows": ("Last", "Last"),
        "edge:LivesIn": ("Last", "Last"),
        "edge:Inhabits": ("Last", "Last"),
    }
    return {key: sorted([*rows, more[key]]) if key in more else rows for key, rows in seen.items()}
