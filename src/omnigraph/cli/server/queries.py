"""`omnigraph queries`: stored queries, on a server or in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from omnigraph.cli.output import (
    Json,
    counted,
    diagnostic_text,
    print_json,
    print_table,
    print_text,
    reports_errors,
    styled,
)
from omnigraph.cli.scope.options import said
from omnigraph.cli.sources import read_catalog
from omnigraph.cli.stores import Address, Store, cluster_place, open_graph, open_target, resolve_target

if TYPE_CHECKING:
    from omnigraph.cli.scope.target import Target
    from omnigraph.lang.query.compile import CompiledQuery
    from omnigraph.lang.query.lint import LintReport
    from omnigraph.lang.schema.catalog import Catalog
    from omnigraph.lang.source import Source
    from omnigraph.remote.graph import RemoteGraph

app = typer.Typer(help="List and check stored queries.", no_args_is_help=True)
Schema = Annotated[
    Path | None,
    typer.Option("--schema", exists=True, dir_okay=False, readable=True, help="A .pg file instead of a graph."),
]


@app.command("list")
@reports_errors
def list_(as_json: Json = False) -> None:
    """List the stored queries of a server's graph, or of a cluster's, with their parameters."""
    target = resolve_target()
    cluster = said().get("cluster")
    if target.is_server:
        found = cast("RemoteGraph", open_target(target, read_only=True)).queries()
    elif cluster is not None:
        found = [each.as_json() for each in _compiled(target, cluster)]
    else:
        raise typer.BadParameter("stored queries are those of a server, or of a cluster; name it with --server")
    if as_json:
        print_json({"queries": found})
        return
    rows = [
        (
            each["name"],
            "mutation" if each["mutation"] else "read",
            ", ".join(f"${one['name']}: {one['kind']}{'?' if one['nullable'] else ''}" for one in each["params"]),
            each["description"] or "",
        )
        for each in found
    ]
    print_table(("query", "kind", "parameters", "description"), rows)


@app.command()
@reports_errors
def validate(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER", help="A folder of *.gq files. Without it: those a cluster has.", show_default=False
        ),
    ] = None,
    uri: Address = None,
    store: Store = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Check every stored query of a folder, or of a cluster, against a graph or a schema. Exit code 1 if one is
    wrong."""
    from omnigraph.lang.query.lint import lint_queries
    from omnigraph.lang.source import decode

    cluster: str = said().get("cluster", "")
    if folder is None and not cluster:
        raise typer.BadParameter("name a folder of *.gq files, or a cluster with --cluster")
    if folder is not None and not folder.is_dir():
        raise typer.BadParameter(f"there is no folder {folder}")
    catalog, against = _catalog(schema, uri, store)
    if folder is None:
        sources = list(dict.fromkeys(_applied(resolve_target(uri, store), cluster).values()))
    else:
        sources = [decode(path.read_bytes(), str(path)) for path in sorted(folder.glob("*.gq"))]
    reports = [lint_queries(each.text, catalog, each.name, against) for each in sources]
    names = [result.name for report in reports for result in report.results]
    twice = sorted({name for name in names if names.count(name) > 1})
    is_ok = all(report.ok for report in reports) and not twice
    if as_json:
        files = [report.as_json() for report in reports]
        print_json({"status": "ok" if is_ok else "failed", "duplicates": twice, "files": files})
    else:
        for report in reports:
            _print(report)
        for name in twice:
            print_text(styled("error", "bold red"), f"  two queries are called '{name}'; rename one of them")
        checked = f"{counted(len(names), 'query', 'queries')} in {counted(len(reports), 'file')}"
        print_text(f"{checked}: {'ok' if is_ok else 'not ok'}")
    if not is_ok:
        raise typer.Exit(1)


def _applied(target: Target, cluster: str) -> dict[str, Source]:
    """The stored queries of a cluster's graph by their names. Those of one file have one text."""
    from omnigraph.cluster.serving import applied_queries
    from omnigraph.lang.source import Source

    graph = target.address.rpartition("/")[2].removesuffix(".omni")
    found = applied_queries(cluster_place(cluster), graph)
    named = {each.text: each.source for each in found.values()}
    return {name: Source(each.text, named[each.text]) for name, each in found.items()}


def _compiled(target: Target, cluster: str) -> list[CompiledQuery]:
    """The stored queries of a cluster's graph, as they fit the schema it has."""
    from omnigraph.lang.query.compile import compile_query

    catalog = open_target(target, read_only=True).catalog
    return [compile_query(each.text, catalog, name, each.name) for name, each in _applied(target, cluster).items()]


def _catalog(schema: Path | None, uri: str | None, store: str | None) -> tuple[Catalog, str]:
    if schema is not None:
        return read_catalog(schema), str(schema)
    graph = open_graph(uri, store, read_only=True)
    return graph.catalog, graph.address


def _print(report: LintReport) -> None:
    errors: list[Any] = list(report.parse_errors)
    for result in report.results:
        errors += [] if result.error is None else result.error.diagnostics
    for each in errors:
        print_text(diagnostic_text(each), "\n")
