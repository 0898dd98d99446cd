"""`omnigraph init` and `omnigraph snapshot`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.output import Json, counted, print_json, print_table, print_text, reports_errors, styled
from omnigraph.cli.sources import read_source
from omnigraph.cli.stores import Actor, Address, At, Store, open_graph, parse_at, resolve_store


@reports_errors
def init(
    schema: Annotated[
        Path, typer.Option("--schema", exists=True, dir_okay=False, readable=True, help="A .pg schema file.")
    ],
    uri: Annotated[
        str | None,
        typer.Argument(help="Where to create the graph: a path, file:// or s3://.", show_default=False),
    ] = None,
    store: Store = None,
    force: Annotated[bool, typer.Option("--force", help="Replace schema files that belong to no graph.")] = False,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Create a graph with a schema. Refuses a place that holds one."""
    from omnigraph.cluster.managed import require_unmanaged
    from omnigraph.opening import create_graph

    address = resolve_store(uri, store)
    require_unmanaged(address, "which graphs there are")
    graph = create_graph(address, read_source(schema), actor=actor, force=force)
    snapshot = graph.snapshot()
    if as_json:
        print_json({"uri": graph.address, **snapshot.as_json()})
    else:
        print_text(styled("created ", "green"), f"{graph.address} with {counted(len(snapshot.tables), 'table')}")


@reports_errors
def snapshot(
    uri: Address = None,
    store: Store = None,
    branch: Annotated[
        str | None, typer.Option("--branch", help="The branch to look at. Default: main.", show_default=False)
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Show where every table stands, now or at an earlier commit."""
    state = parse_at(at)
    found = open_graph(uri, store, read_only=True).snapshot(branch, at=state)
    if as_json:
        print_json(found.as_json())
        return
    commit = "no commit" if found.commit is None else f"commit {found.commit.graph_commit_id}"
    print_text(styled(found.branch, "bold"), f" at manifest version {found.manifest_version}, {commit}")
    print_table(
        ("table", "version", "branch", "rows"),
        [
            (pin.table_key, str(pin.table_version), _branch_of(pin.table_branch), str(pin.row_count))
            for pin in found.tables.values()
        ],
    )


def _branch_of(native: str | None) -> str:
    """The branch a table was last written on, without the incarnation that its native branch carries."""
    return "main" if native is None else native.rpartition(".")[0]
